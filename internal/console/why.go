package console

import (
	"net/http"
	"strconv"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/audit"
	"runloop.dev/rlp/internal/service"
	"runloop.dev/rlp/kb"
)

// An explained is what rlp caps explain prints.
type explained struct {
	Capability string `json:"capability"`
	Decision   string `json:"decision"`
	Reason     string `json:"reason"`
	Scope      string `json:"scope"`
	Layer      string `json:"layer"`
	Kind       string `json:"kind"`
	Votes      []struct {
		Layer  string `json:"layer"`
		Allow  bool   `json:"allow"`
		Source string `json:"source"`
	} `json:"votes"`
	Leases   []string `json:"leases"`
	Hidden   []string `json:"hidden_tools"`
	Edits    []edit   `json:"edits"`
	Verified bool     `json:"verified"`
	Run      struct {
		Notes []string `json:"notes"`
	} `json:"run"`
}

type edit struct {
	Layer  string `json:"layer"`
	Do     string `json:"do"`
	What   string `json:"what"`
	Source string `json:"source"`
	Text   string `json:"text"`
}

// shownWhy is the page that explains a decision.
type shownWhy struct {
	auditRow
	RunLink string
	ByBase  bool // the agent's own policy does not hold it
	Request string
	E       *explained // nil: it could not be explained
	Problem string
	Policy  string // the page on which the edit can be made; "" where it cannot
}

func (c *console) whyPage(r *http.Request, caller *service.Caller) (*view, error) {
	id := r.PathValue("id")
	seq, err := cursor(r.PathValue("seq"))
	if err != nil || seq == 0 || !whole(id, lowerHex) || len(id) != 36 {
		return nil, service.ErrNotFound
	}
	d, err := c.why(r, caller, id, seq)
	if err != nil {
		return nil, err
	}
	return &view{Page: "why", Title: "Why", Nav: "runs", Data: d}, nil
}

// why reads a record of a run and asks for its explanation.
func (c *console) why(r *http.Request, caller *service.Caller, id string, seq uint64) (*shownWhy, error) {
	log, err := c.Host.Log(r.Context(), caller)
	if err != nil {
		return nil, err
	}
	rec, err := one(r.Context(), log, kb.Filter{Run: id, After: seq - 1})
	if err != nil {
		return nil, err
	}
	if rec == nil || rec.Seq != seq || rec.Decision == nil {
		return nil, service.ErrNotFound
	}
	d := &shownWhy{auditRow: rowOf(rec), RunLink: runLink(id), ByBase: audit.ByBase(rec.Decision.Layer, rec.Decision.Reason), Request: requestOf(rec.Decision)}
	b, err := c.bundle(r.Context(), caller, rec.Head.Agent)
	if err != nil {
		d.Problem = rec.Head.Agent + " is not installed here, and only what is installed can be explained on a page: rlp caps explain BUNDLE --run " + id
		return d, nil
	}
	var e explained
	err = c.ask(r.Context(), caller, nil, &e, "caps", "explain", "--run", id, "--at", strconv.FormatUint(rec.RunSeq, 10), b.Path, d.Request)
	if err == nil {
		d.E = &e
		d.Policy = policyLink(b.Name) + "?run=" + id + "&record=" + strconv.FormatUint(seq, 10) + "#editor"
		return d, nil
	}
	d.Problem, err = told(err)
	return d, err
}

// requestOf is what a record was about in a form that explain takes.
func requestOf(d *audit.DecisionRecord) string {
	if strings.HasPrefix(d.Target, "http://") || strings.HasPrefix(d.Target, "https://") {
		return d.Target
	}
	for f := range caps.NumFamilies {
		m, ok := modeOf(f, d.Cap)
		if !ok {
			continue
		}
		name := d.Target
		switch f {
		case caps.Time:
			name = "*"
		case caps.KBRead, caps.KBWrite, caps.MCP:
			name, _, _ = strings.Cut(name, "/")
		}
		if text := (caps.Request{Family: f, Mode: m, Name: name}).String(); name != "" && !strings.HasPrefix(text, "-") {
			return text
		}
	}
	if d.Tool != "" && !strings.HasPrefix(d.Tool, "-") {
		return d.Tool
	}
	return strings.TrimLeft(d.Op, "-")
}
