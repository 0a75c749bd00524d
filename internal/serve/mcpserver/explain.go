package mcpserver

import (
	"context"
	"encoding/json"
	"errors"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
)

type explainArguments struct {
	RunID      string `json:"run_id"`
	Record     uint64 `json:"record"`
	Agent      string `json:"agent"`
	Capability string `json:"capability"`

	at uint64 // the record, by its number in the log
}

// readExplain asks why something is decided as it is. The answer is passed on as it
// is, within bounds.
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
	if a.RunID != "" {
		if a.RunID, err = service.WholeRun(ctx, ss.of.opt.Service, ss.of.opt.Host, c, a.RunID); err != nil {
			return nil, wrongRun(err)
		}
		if err := ss.asked(ctx, c, &a); err != nil {
			return nil, err
		}
	}
	q := ask.Query{Text: a.Capability, Run: a.RunID, At: a.at}
	if a.Record > 0 {
		q.Text = "" // what is told of the record may be less than it has
	}
	e, err := ss.of.opt.Host.Explain(ctx, c, a.Agent, q)
	if errors.Is(err, service.ErrNotFound) {
		return nil, wrongf("agent: %q is not installed, and only what is can be explained", short(oneLine(a.Agent), mostID))
	}
	if err != nil {
		return nil, err
	}
	if p, err = json.Marshal(e); err != nil {
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
		a.Agent, a.Capability, a.at = r.Head.Agent, ask.About(r.Decision), r.Seq
		return nil
	}
	if found {
		return wrongf("record: the run has no record %d", a.Record)
	}
	return wrongf("run_id: the log has no such run; rlp_runs lists them")
}
