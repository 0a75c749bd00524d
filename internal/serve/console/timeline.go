package console

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/printable"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/launcher/runs"
)

// A row is one line of a run's waterfall: what was asked, and answered alike, however
// often; or what else happened to the run.
type row struct {
	Seq, RunSeq    uint64 // of the first
	At             int64  // ms since the run began
	Kind           string
	Word           string // allowed, denied, began, narrowed, ended
	Cap            string
	Head, Tail     string // what it was about: the end tells it from others
	Target, Reason string
	By             string // the grant that holds it, or the layer that refused it
	Times          int
	Ops            string // by which calls it was asked
	Done           bool   // an end of it is recorded
	Took           float64
	Failed         string
	Fails          int
	Bytes          int64
	Bars           []bit
	Why            string // the page that explains it
	Inner          []row  // of which this one is made

	asked []asked
}

// asked is one call of a row.
type asked struct {
	op, tool string
	at       int64
	took     float64
	done     bool
}

// A bit is where on the way of the run something was, in hundredths.
type bit struct{ X, W string }

// A timeline puts records of a run together.
type timeline struct {
	from   time.Time
	span   int64
	run    string
	grants []caps.Grant
	rows   []row
	index  map[string]int // of rows, by what they say
	calls  []called
	weight int // of the rows as HTML, about
	noise  int // calls of the language's own start
	last   uint64
}

// called is a call by its row and its place there.
type called struct{ row, call int }

// Bounds of one page of a run: of rows, and of the bars in one row and in all.
const (
	mostRows = 80
	rowsRoom = 48 << 10
	rowBars  = 24
	allBars  = 400
)

// full reports whether a page has as many rows as it may.
func (t *timeline) full() bool { return len(t.rows) >= mostRows || t.weight > rowsRoom }

// room is about how much HTML a row is, without its bars.
func (k *row) room() int {
	target, by := min(weight(k.Target), cellRoom), min(weight(k.By), cellRoom)
	return 640 + 2*target + 3*by + min(weight(k.Failed), cellRoom)
}

func (t *timeline) add(r *audit.Record) {
	t.last = r.Seq
	k := row{Seq: r.Seq, RunSeq: r.RunSeq, At: since(t.from, r.Time), Kind: r.Kind(), Times: 1}
	call := asked{at: k.At}
	switch d, e := r.Decision, r.Event; {
	case d != nil && d.AtStart():
		t.noise++
		return
	case d != nil:
		k.Cap, k.Target, k.Reason, call.op, call.tool = d.Cap, d.Target, d.Reason, d.Op, d.Tool
		if k.Word = "allowed"; d.Deny {
			k.Word, k.By, k.Why = "denied", voter(d), whyLink(t.run, r.Seq)
		} else {
			k.By = runs.Holder(t.grants, d.Cap, d.Target)
		}
	case e == nil:
		return
	case e.Kind == audit.KindCallDone:
		if t.done(e) {
			return
		}
		k.Word, k.Done, k.Took, k.Bytes, k.Failed = "ended", true, e.DurationMS, e.Bytes, failure(e)
		call = asked{op: e.Verb, at: k.At, took: e.DurationMS, done: true}
	case e.Kind == audit.KindRunStart:
		k.Word, k.Target = "began", "with "+printable.Count(len(e.Effective), "grant")
	case e.Kind == audit.KindCapsSwap:
		k.Word, k.By, k.Target = "narrowed", e.Source, e.Label
	default:
		k.Word, k.Target = "ended", strings.TrimSuffix(e.Outcome+": "+e.Message, ": ")
	}
	t.put(&k, call)
}

// put adds a row, or a call to the row that says the same.
func (t *timeline) put(k *row, call asked) {
	key := ""
	if k.Kind == audit.KindDecision {
		key = strings.Join([]string{k.Word, k.Cap, k.Target, k.Reason, k.By}, "\x00")
	}
	i, known := t.index[key]
	if !known || key == "" {
		i = len(t.rows)
		k.Head, k.Tail = parted(k.Target)
		t.rows = append(t.rows, *k)
		t.weight += k.room()
		if key != "" {
			t.index[key] = i
		}
	} else {
		t.rows[i].Times++
	}
	t.rows[i].asked = append(t.rows[i].asked, call)
	t.calls = append(t.calls, called{i, len(t.rows[i].asked) - 1})
}

// parted is a path in two, the second of which is its last name.
func parted(target string) (head, tail string) {
	const most = 48
	i := strings.LastIndexByte(strings.TrimSuffix(target, "/"), '/')
	if i <= 0 || len(target)-i > most {
		return target, ""
	}
	return target[:i], target[i:]
}

// done is the end of the last call of the same name that has none.
func (t *timeline) done(e *audit.Event) bool {
	for _, c := range slices.Backward(t.calls) {
		k := &t.rows[c.row]
		call := &k.asked[c.call]
		if k.Kind != audit.KindDecision || call.done || k.Word != "allowed" || call.op != e.Verb && call.tool != e.Verb {
			continue
		}
		call.done, call.took = true, e.DurationMS
		k.Done, k.Took, k.Bytes = true, k.Took+e.DurationMS, k.Bytes+e.Bytes
		if why := failure(e); why != "" {
			k.Failed = why
			k.Fails++
		}
		return true
	}
	return false
}

// waterfall is the rows with their places on the way of the run.
func (t *timeline) waterfall() []row {
	left := allBars
	for i := range t.rows {
		k := &t.rows[i]
		k.Ops = opsOf(k.asked)
		for _, c := range k.asked[:min(len(k.asked), rowBars)] {
			if left--; left < 0 {
				break
			}
			k.Bars = append(k.Bars, t.place(c))
		}
	}
	return folded(t.rows)
}

// place says where a call lies in the run's time.
func (t *timeline) place(c asked) bit {
	x := min(99, 100*float64(c.at)/float64(t.span))
	w := max(0.8, min(100-x, 100*c.took/float64(t.span)))
	return bit{strconv.FormatFloat(x, 'f', 1, 64), strconv.FormatFloat(w, 'f', 1, 64)}
}

// opsOf names the calls of a row, those first that were made the most often.
func opsOf(list []asked) string {
	counts := map[string]int{}
	var names []string
	for _, c := range list {
		if counts[c.op]++; counts[c.op] == 1 && c.op != "" {
			names = append(names, c.op)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	for i, name := range names {
		if n := counts[name]; n > 1 {
			names[i] = fmt.Sprintf("%s ×%d", name, n)
		}
	}
	return few(names)
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
