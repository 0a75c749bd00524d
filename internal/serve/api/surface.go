package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"runloop.dev/rlp/internal/serve/service"
)

// getCapabilities tells what requests of the caller could be left at most.
func (s *server) getCapabilities(w http.ResponseWriter, r *http.Request, c *service.Caller) error {
	door := service.HTTP
	switch text := r.URL.Query().Get("door"); text {
	case "", string(service.HTTP):
	case string(service.MCP):
		door = service.MCP
	default:
		return invalid("door", "must be http or mcp")
	}
	surface, err := s.Host.Surface(r.Context(), c, door)
	if err != nil {
		return err
	}
	s.json(w, r, http.StatusOK, surface)
	return nil
}

// An agent is an installed one, as it is told.
type agent struct {
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Description string          `json:"description"`
	Digest      string          `json:"digest"`
	Signature   string          `json:"signature"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
	Families    []string        `json:"families"`
	Destructive bool            `json:"destructive"`
	ReadOnly    bool            `json:"read_only"`
	OpenWorld   bool            `json:"open_world"`
	Problem     string          `json:"problem,omitempty"`
}

func (s *server) getAgents(w http.ResponseWriter, r *http.Request, c *service.Caller) error {
	all, err := s.Host.Agents(r.Context(), c)
	if err != nil {
		return err
	}
	list := make([]agent, 0, len(all))
	for _, a := range all {
		t := agent{
			Name: a.Name, Version: a.Version, Description: a.Description, Digest: a.Digest, Signature: a.Signature,
			Families:    a.Families,
			Destructive: a.Destructive, ReadOnly: a.ReadOnly, OpenWorld: a.OpenWorld, Problem: a.Problem,
		}
		if t.Families == nil {
			t.Families = []string{}
		}
		if json.Valid(a.InputSchema) {
			t.InputSchema = a.InputSchema
		}
		list = append(list, t)
	}
	s.json(w, r, http.StatusOK, list)
	return nil
}

// A health is whether the service is there, or takes runs.
type health struct {
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`  // why not, for the operator alone: it speaks of the host
	Waiting *int   `json:"waiting,omitempty"` // journals of runs that are over and not in the log yet
	// Tenants are those that were asked for, for the operator alone.
	Tenants []service.TenantState `json:"tenants,omitempty"`
}

func (s *server) getHealth(w http.ResponseWriter, r *http.Request, _ *service.Caller) error {
	s.json(w, r, http.StatusOK, health{Status: "ok"})
	return nil
}

func (s *server) getReady(w http.ResponseWriter, r *http.Request, c *service.Caller) error {
	status, h := http.StatusOK, health{Status: "ready"}
	switch {
	case s.Service.Load().Draining:
		status, h.Status, h.Reason = http.StatusServiceUnavailable, "draining",
			"it takes no more runs, and ends when those under way have ended"
	case s.Ready != nil:
		ctx, cancel := context.WithTimeout(r.Context(), s.Patience)
		defer cancel()
		h.Tenants = s.Ready(ctx)
		if h.Reason = whyNot(h.Tenants); h.Reason != "" {
			status, h.Status = http.StatusServiceUnavailable, "unavailable"
		}
	}
	if !c.Can(service.Operate) || !c.EveryTenant { // anybody may ask
		h.Reason, h.Tenants = "", nil
	}
	if s.Waiting != nil {
		n := s.Waiting()
		h.Waiting = &n
	}
	s.json(w, r, status, h)
	return nil
}

// whyNot is why runs cannot be taken, those of one tenant at least; "": they can.
func whyNot(tenants []service.TenantState) string {
	var all []string
	for _, t := range tenants {
		if t.Reason != "" {
			all = append(all, "tenant "+t.Tenant+": "+t.Reason)
		}
	}
	return strings.Join(all, "; ")
}

func (s *server) getMetrics(w http.ResponseWriter, r *http.Request, _ *service.Caller) error {
	if s.Metrics == nil {
		return errNoPath
	}
	s.Metrics.ServeHTTP(w, r)
	return nil
}

// getOpenAPI describes the routes; to those who may list agents, with their inputs.
func (s *server) getOpenAPI(w http.ResponseWriter, r *http.Request, c *service.Caller) error {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	doc := s.openapi
	if c != nil && c.Tenant != "" && c.May&anyRight != 0 {
		if agents, err := s.Host.Agents(r.Context(), c); err == nil { // else GET /agents says why
			doc = document(routes(), agents)
		}
	}
	s.write(w, r, http.StatusOK, doc)
	return nil
}
