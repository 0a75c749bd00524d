package mcpserver

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/audit"
	"runloop.dev/rlp/internal/service"
	"runloop.dev/rlp/kb"
)

type explainArguments struct {
	RunID      string `json:"run_id"`
	Record     uint64 `json:"record"`
	Agent      string `json:"agent"`
	Capability string `json:"capability"`
}

// readExplain asks rlp caps explain. Its document is passed on as it is, within
// bounds.
func (ss *session) readExplain(ctx context.Context, c *service.Caller, p []byte) (any, error) {
	a, err := arguments[explainArguments](p)
	if err != nil {
		return nil, wrongf("%s", err)
	}
	switch {
	case a.RunID == "" && (a.Agent == "" || a.Record > 0):
		return nil, wrongf("give a run_id and a record or capability, or an agent and a capability")
	case (a.Capability == "") == (a.Record == 0):
		return nil, wrongf("give either the record of the run or a capability such as kb:write:drafts")
	case len(a.RunID) > mostID, len(a.Agent) > mostID, len(a.Capability) > mostText:
		return nil, wrongf("run_id, agent or capability is too long")
	}
	args := []string{"caps", "explain"}
	if a.RunID != "" {
		if err := ss.asked(ctx, c, &a); err != nil {
			return nil, err
		}
		args = append(args, "--run", a.RunID)
		if a.Record > 0 {
			args = append(args, "--at", strconv.FormatUint(a.Record, 10))
		}
	} else {
		s, err := ss.of.opt.Host.Surface(ctx, c, service.MCP)
		if err != nil {
			return nil, err
		}
		args = append(args, "--profile", s.Grant)
	}
	path, err := ss.installed(ctx, c, a.Agent)
	if err != nil {
		return nil, err
	}
	p, err = ss.of.opt.Host.Ask(ctx, c, nil, append(args, "--", path, a.Capability)...)
	if err != nil {
		return nil, err
	}
	if len(p) > mostSaid {
		return nil, wrongf("the explanation has %d KiB, which is more than is told: rlp caps explain prints it", len(p)>>10)
	}
	answer := map[string]any{"agent": a.Agent, "capability": a.Capability, "explanation": json.RawMessage(p)}
	if a.RunID == "" && len(c.Layers) > 0 {
		answer["note"] = "what your own token narrows is not in this explanation; that of a run has it"
	}
	return answer, nil
}

// asked fills in the agent of a run, and what one of its records was about.
func (ss *session) asked(ctx context.Context, c *service.Caller, a *explainArguments) error {
	log, err := ss.of.opt.Host.Log(ctx, c)
	if err != nil {
		return err
	}
	found := false
	for r, err := range log.Audit(ctx, kb.Filter{Run: a.RunID}) {
		if err != nil {
			return err
		}
		if found = true; a.Record == 0 {
			a.Agent = r.Head.Agent
			return nil
		}
		if r.RunSeq < a.Record {
			continue
		}
		if r.RunSeq != a.Record || r.Decision == nil {
			return wrongf("record: record %d of the run is no decision; rlp_audit lists them", a.Record)
		}
		a.Agent, a.Capability = r.Head.Agent, requestOf(r.Decision)
		return nil
	}
	if found {
		return wrongf("record: the run has no record %d", a.Record)
	}
	return wrongf("run_id: the log has no such run; rlp_runs lists them")
}

// installed is where the bundle of an agent lies.
func (ss *session) installed(ctx context.Context, c *service.Caller, agent string) (string, error) {
	list, err := ss.of.opt.Host.Agents(ctx, c)
	if err != nil {
		return "", err
	}
	for _, a := range list {
		if a.Name == agent && a.Path != "" {
			return a.Path, nil
		}
	}
	return "", wrongf("agent: %q is not installed, and only what is can be explained", short(oneLine(agent), mostID))
}

// requestOf is what a record was about in a form that explain takes.
func requestOf(d *audit.DecisionRecord) string {
	if strings.HasPrefix(d.Target, "http://") || strings.HasPrefix(d.Target, "https://") {
		return d.Target
	}
	for f := range caps.NumFamilies {
		for m := range caps.Mode(64) {
			if !caps.AllModes(f).Has(m) || caps.AuditName(f, m) != d.Cap {
				continue
			}
			name := d.Target
			switch f {
			case caps.Time:
				name = "*"
			case caps.KBRead, caps.KBWrite, caps.MCP:
				name, _, _ = strings.Cut(name, "/")
			}
			if name != "" {
				return caps.Request{Family: f, Mode: m, Name: name}.String()
			}
		}
	}
	if d.Tool != "" {
		return d.Tool
	}
	return d.Op
}
