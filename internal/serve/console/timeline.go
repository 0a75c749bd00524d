package console

import (
	"strconv"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/printable"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/launcher/runs"
)

// A call is one line of a run's timeline: a decision, with what came of it, or
// what else happened to the run.
type call struct {
	Seq, RunSeq    uint64
	At             int64 // ms since the run began
	Kind           string
	Word           string // allowed, denied, began, narrowed, ended
	Cap, Op, Tool  string
	Target, Reason string
	By             string // the grant that holds it, or the layer that refused it
	Done           bool   // its end is recorded
	Took           float64
	Failed         string
	Bytes          int64
	X, W           string // where on the way of the run, in hundredths
	Why            string // the page that explains it
	Again          int    // so many more of the same came right behind it
}

// A timeline puts records of a run together.
type timeline struct {
	from   time.Time
	span   int64
	run    string
	grants []caps.Grant
	calls  []call
	last   uint64
}

func (t *timeline) add(r *audit.Record) {
	t.last = r.Seq
	at := since(t.from, r.Time)
	k := call{Seq: r.Seq, RunSeq: r.RunSeq, At: at, Kind: r.Kind()}
	switch d, e := r.Decision, r.Event; {
	case d != nil:
		k.Cap, k.Op, k.Tool, k.Target, k.Reason = d.Cap, d.Op, d.Tool, d.Target, d.Reason
		if k.Word = "allowed"; d.AtStart() {
			k.Word = "at the language's start"
		} else if d.Deny {
			k.Word, k.By = "denied", voter(d)
			k.Why = whyLink(t.run, r.Seq)
		} else {
			k.By = runs.Holder(t.grants, d.Cap, d.Target)
		}
		if t.same(&k) {
			return
		}
	case e == nil:
		return
	case e.Kind == audit.KindCallDone:
		if t.done(e) {
			return
		}
		k.Word, k.Op, k.Done, k.Took, k.Bytes, k.Failed = "ended", e.Verb, true, e.DurationMS, e.Bytes, failure(e)
	case e.Kind == audit.KindRunStart:
		k.Word, k.Target = "began", printable.Count(len(e.Effective), "grant")
	case e.Kind == audit.KindCapsSwap:
		k.Word, k.Op, k.Target = "narrowed", e.Source, e.Label
	default:
		k.Word, k.Op, k.Target = "ended", e.Outcome, e.Message
	}
	t.place(&k)
	t.calls = append(t.calls, k)
}

// same joins a decision with the one before when nobody could tell them apart.
func (t *timeline) same(k *call) bool {
	if len(t.calls) == 0 {
		return false
	}
	p := &t.calls[len(t.calls)-1]
	if p.Done || p.Word != k.Word || p.Cap != k.Cap || p.Op != k.Op || p.Target != k.Target || p.Reason != k.Reason ||
		p.By != k.By {
		return false
	}
	p.Again++
	return true
}

// done is the end of the last call of the same name that has none.
func (t *timeline) done(e *audit.Event) bool {
	for i := len(t.calls) - 1; i >= 0; i-- {
		k := &t.calls[i]
		if k.Kind != audit.KindDecision || k.Done || k.Word != "allowed" || k.Op != e.Verb && k.Tool != e.Verb {
			continue
		}
		k.Done, k.Took, k.Bytes, k.Failed = true, e.DurationMS, e.Bytes, failure(e)
		t.place(k)
		return true
	}
	return false
}

// voter is the layer that a denial is by; "": no layer's vote, but a rate or
// what is not there.
func voter(d *audit.DecisionRecord) string { return voterOf(d.Layer, d.Reason) }

func voterOf(layer, reason string) string {
	if audit.ByBase(layer, reason) {
		return "base"
	}
	return layer
}

func failure(e *audit.Event) string {
	switch {
	case e.Status == "ok":
		return ""
	case e.ErrorSummary != "":
		return e.ErrorSummary
	}
	return e.Status
}

// whyLink is the page that explains a record of a run.
func whyLink(run string, seq uint64) string {
	return runLink(run) + "/why/" + strconv.FormatUint(seq, 10)
}

// place says where a call lies in the run's time.
func (t *timeline) place(k *call) {
	x := min(99, 100*float64(k.At)/float64(t.span))
	w := max(1, min(100-x, 100*k.Took/float64(t.span)))
	k.X, k.W = strconv.FormatFloat(x, 'f', 1, 64), strconv.FormatFloat(w, 'f', 1, 64)
}
