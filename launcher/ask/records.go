package ask

import (
	"context"
	"fmt"
	"iter"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/analysis"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/run"
)

// A Log is the audit log that questions about runs are asked of.
type Log interface {
	Audit(ctx context.Context, f kb.Filter) iter.Seq2[audit.Record, error]
	Glances(ctx context.Context, f kb.Filter) iter.Seq2[*audit.Glance, error]
}

// eachRecord calls decided for each decision that filter asks for, and event for
// the beginnings and ends of runs: a million of the former are looked at and not
// decoded. What decided gets is valid until the next.
func eachRecord(ctx context.Context, log Log, filter kb.Filter, decided func(*audit.Glance, *analysis.Record) error,
	event func(*audit.Record) error,
) error {
	codec, err := audit.NewCodec()
	if err != nil {
		return err
	}
	words := map[string]string{}
	word := func(p []byte) string { // the same few, very often
		w, ok := words[string(p)]
		if !ok {
			w = string(p)
			if len(words) < 1<<12 {
				words[w] = w
			}
		}
		return w
	}
	for g, err := range log.Glances(ctx, filter) {
		if err != nil {
			return err
		}
		switch kind := string(g.Kind); {
		case g.AtStart(): // counted nowhere
		case g.Decided:
			err = decided(g, &analysis.Record{Run: word(g.Run), Seq: g.Seq, RunSeq: g.RunSeq, Decision: analysis.Decision{
				Cap: word(g.Cap), Op: word(g.Op), Target: string(g.Target), Tool: word(g.Tool),
				Reason: word(g.Reason), Layer: word(g.Layer), Deny: g.Deny,
			}})
		case kind == audit.KindRunStart || audit.Ends(kind):
			var r audit.Record
			if r, err = codec.Decode(g.Stored); err != nil {
				return fmt.Errorf("record %d: %w", g.Seq, err)
			}
			err = event(&r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// heldAtStart is the set that a run's first record says it was left.
func heldAtStart(e *audit.Event) (caps.Set, error) {
	base, err := entriesOf(e.Effective)
	if err != nil {
		return caps.Set{}, err
	}
	holes, err := entriesOf(e.Except)
	if err != nil {
		return caps.Set{}, err
	}
	// Of the grants and holes that hold a request the deepest decides.
	plan, err := run.NewPlan(run.Policy{Base: base, Layers: []*caps.Layer{{Name: "except", Deny: holes, Spare: base}}})
	return plan.Effective, err
}

func entriesOf(strings []string) ([]caps.Entry, error) {
	var list []caps.Entry
	for _, s := range strings {
		g, err := caps.ParseGrant(s)
		if err != nil {
			return nil, fmt.Errorf("a record holds %w", err)
		}
		list = append(list, caps.Entry{Grant: g})
	}
	return list, nil
}
