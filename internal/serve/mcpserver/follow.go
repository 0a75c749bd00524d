package mcpserver

import (
	"context"
	"fmt"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
)

// mostDenials bounds how many denials that differ are told of one run.
const mostDenials = 50

// A denial is what a run was denied, once or more often.
type denial struct {
	Capability string `json:"capability"` // as the log has it, such as "fs.read"
	Op         string `json:"op"`
	Target     string `json:"target"`
	Tool       string `json:"tool,omitempty"`
	Reason     string `json:"reason"`
	Layer      string `json:"layer,omitempty"`
	Record     uint64 `json:"record"` // of the run, the first one
	Times      int    `json:"times"`
	Edit       string `json:"edit"` // whose it would be to let it
}

// A trail is what a run was denied.
type trail struct {
	list []*denial
	more int // that are not in the list
	seen map[denial]*denial

	clock int64 // denials of the clock
}

func (t *trail) add(seq uint64, agent string, d *audit.DecisionRecord) {
	if d.Op == "clock_time_get" {
		t.clock++
	}
	one := denial{
		Capability: d.Cap, Op: oneLine(d.Op), Target: short(oneLine(d.Target), mostLine), Tool: oneLine(d.Tool),
		Reason: d.Reason, Layer: oneLine(d.Layer),
	}
	if old := t.seen[one]; old != nil {
		old.Times++
		return
	}
	if len(t.list) == mostDenials {
		t.more++
		return
	}
	kept := one
	kept.Record, kept.Times, kept.Edit = seq, 1, edit(agent, d.Reason, d.Layer)
	if t.seen == nil {
		t.seen = map[denial]*denial{}
	}
	t.seen[one] = &kept
	t.list = append(t.list, &kept)
}

// A follower reads the records of a run as they are made.
type follower struct {
	of     *service.Service
	caller *service.Caller
	run    string
	teller *teller // nil: nobody is told
	trail  trail
}

// follow returns when the run has ended, or ctx has.
func (f *follower) follow(ctx context.Context) {
	for rec, err := range f.of.Records(ctx, f.caller, f.run, 0) {
		if err != nil || rec.Rec == nil {
			return
		}
		if rec.Rec.Denied() {
			f.trail.add(rec.RunSeq, rec.Rec.Head.Agent, rec.Rec.Decision)
		}
		if f.teller == nil {
			continue
		}
		one := told{rec.RunSeq, progress(f.run, rec.Rec)}
		if rec.Rec.Event != nil && rec.Kind != audit.KindCallDone {
			f.teller.tell(one)
		} else {
			f.teller.mention(one)
		}
	}
}

// progress is a record in one line.
func progress(run string, r *audit.Record) string {
	if d := r.Decision; d != nil {
		if d.AtStart() {
			return "the start of its language was given a clock of its own"
		}
		if d.Deny {
			return short(oneLine(fmt.Sprintf("denied %s %s: %s by %s", d.Cap, d.Target, d.Reason, d.Layer)), mostLine)
		}
		return short(oneLine(fmt.Sprintf("allowed %s %s", d.Cap, d.Target)), mostLine)
	}
	switch e := r.Event; e.Kind {
	case audit.KindRunStart:
		return fmt.Sprintf("run %s of %s has begun", run, r.Head.Agent)
	case audit.KindCallDone:
		return oneLine(e.Verb + ": " + e.Status)
	case audit.KindCapsSwap:
		return "what is left to it is less now: " + oneLine(e.Source)
	default:
		return "ended: " + e.Outcome
	}
}
