package mcpserver

import (
	"context"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
)

// A recordLine is a record of the log, as far as it is told.
type recordLine struct {
	Seq      uint64 `json:"seq"`
	Time     string `json:"ts"`
	Kind     string `json:"kind"`
	RunID    string `json:"run_id"`
	RunSeq   uint64 `json:"record"` // of the run
	Agent    string `json:"agent"`
	Cap      string `json:"capability,omitempty"`
	Op       string `json:"op,omitempty"`
	Target   string `json:"target,omitempty"`
	Tool     string `json:"tool,omitempty"`
	Decision string `json:"decision,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Layer    string `json:"layer,omitempty"`
	Outcome  string `json:"outcome,omitempty"`
	Message  string `json:"message,omitempty"`
}

func recordOf(r *audit.Record) recordLine {
	l := recordLine{
		Seq: r.Seq, Time: service.Time{Time: r.Time}.String(), Kind: r.Kind(), RunID: r.Head.RunID,
		RunSeq: r.RunSeq, Agent: r.Head.Agent,
	}
	if d := r.Decision; d != nil {
		l.Cap, l.Op, l.Target, l.Tool = d.Cap, oneLine(d.Op), short(oneLine(d.Target), mostLine), oneLine(d.Tool)
		l.Decision, l.Reason, l.Layer = "allow", d.Reason, oneLine(d.Layer)
		if d.Deny {
			l.Decision = "deny"
		}
		return l
	}
	if e := r.Event; e != nil {
		l.Op, l.Outcome, l.Reason, l.Message = oneLine(e.Verb), e.Outcome, oneLine(e.Reason), short(oneLine(e.Message),
			mostLine)
		if l.Outcome == "" {
			l.Outcome = e.Status
		}
	}
	return l
}

type auditArguments struct {
	RunID      string `json:"run_id"`
	Agent      string `json:"agent"`
	Capability string `json:"capability"`
	Decision   string `json:"decision"`
	After      uint64 `json:"after"`
	Limit      int    `json:"limit"`
}

const (
	someRecords = 50
	mostRecords = 200
)

func (ss *session) readAudit(ctx context.Context, c *service.Caller, p []byte) (any, error) {
	a, err := arguments[auditArguments](p)
	if err != nil {
		return nil, wrongf("%s", err)
	}
	if a.Decision != "" && a.Decision != "allow" && a.Decision != "deny" {
		return nil, wrongf("decision: allow or deny")
	}
	if a.Capability != "" {
		name, known, ok := caps.AuditWord(a.Capability)
		if !ok {
			return nil, wrongf("capability: a family, such as fs or kb_read, or one of %s", strings.Join(known, ", "))
		}
		a.Capability = name
	}
	if a.Limit == 0 {
		a.Limit = someRecords
	}
	if a.Limit < 1 || a.Limit > mostRecords {
		return nil, wrongf("limit: from 1 to %d", mostRecords)
	}
	if len(a.RunID) > mostID {
		return nil, wrongf("run_id is too long")
	}
	if a.RunID, err = service.WholeRun(ctx, ss.of.opt.Service, ss.of.opt.Host, c, a.RunID); err != nil {
		return nil, wrongRun(err)
	}
	log, err := ss.of.opt.Host.Log(ctx, c)
	if err != nil {
		return nil, err
	}
	list := []recordLine{}
	f := kb.Filter{
		Run: a.RunID, Agent: a.Agent, Cap: a.Capability, Decision: a.Decision, After: a.After, Limit: a.Limit,
	}
	for r, err := range log.Audit(ctx, f.OfAgents()) {
		if err != nil {
			return nil, err
		}
		list = append(list, recordOf(&r))
	}
	return map[string]any{"records": list, "more_before": len(list) == a.Limit}, nil
}

type searchArguments struct {
	Domain string `json:"domain"`
	Query  string `json:"query"`
	Limit  int    `json:"limit"`
}

const (
	someHits = 5
	mostHits = 20
)

func (ss *session) readKB(ctx context.Context, c *service.Caller, p []byte) (any, error) {
	a, err := arguments[searchArguments](p)
	if err != nil {
		return nil, wrongf("%s", err)
	}
	if a.Limit == 0 {
		a.Limit = someHits
	}
	switch {
	case a.Domain == "" || len(a.Domain) > mostID:
		return nil, wrongf("domain: the name of a domain, such as drafts")
	case a.Query == "" || len(a.Query) > mostText:
		return nil, wrongf("query: a text of at most %d bytes", mostText)
	case a.Limit < 1 || a.Limit > mostHits:
		return nil, wrongf("limit: from 1 to %d", mostHits)
	}
	hits, err := ss.of.opt.Host.Search(ctx, c, kb.Query{Domain: a.Domain, Text: a.Query, K: a.Limit})
	if err != nil {
		return nil, err
	}
	for i := range hits {
		hits[i].Key, hits[i].Snippet = short(oneLine(hits[i].Key), mostLine), short(oneLine(hits[i].Snippet), mostLine)
	}
	return map[string]any{"domain": a.Domain, "hits": hits}, nil
}
