package analysis

import (
	"cmp"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
)

// A Run is what the record of a run's beginning says.
type Run struct {
	ID   string
	Held caps.Set // what was left of the policy at its start
}

// A Learner gathers what runs used and what they were denied.
type Learner struct {
	runs   map[string]*learning
	order  []string
	used   map[want]*tally
	denied map[want]*tally
	unsaid map[want]*tally // allowed, and not wholly recorded
}

type learning struct {
	reader Reader
	held   caps.Set
}

// A want is one thing in one mode; text is what stands for it where it has no name.
type want struct {
	family caps.Family
	mode   caps.Mode
	name   string
	text   string
	why    string // of a denial: reason and layer
}

// A tally says how often, by which functions, and where first.
type tally struct {
	want
	ops    map[string]int
	count  int
	run    string
	runSeq uint64
	doubt  Doubt
}

// NewLearner has seen nothing.
func NewLearner() *Learner {
	return &Learner{
		runs: map[string]*learning{}, used: map[want]*tally{}, denied: map[want]*tally{},
		unsaid: map[want]*tally{},
	}
}

// Begin says what a run held.
func (l *Learner) Begin(r Run) {
	run := l.of(r.ID)
	run.held = r.Held
}

func (l *Learner) of(id string) *learning {
	run := l.runs[id]
	if run == nil {
		id = strings.Clone(id)
		run = new(learning)
		l.runs[id] = run
		l.order = append(l.order, id)
	}
	return run
}

// Runs are the runs that were seen, in order.
func (l *Learner) Runs() []string { return slices.Clone(l.order) }

// Decide takes in one decision of a run; runSeq is its number there.
func (l *Learner) Decide(run string, runSeq uint64, d *Decision) {
	r := l.of(run)
	a, ok := r.reader.Ask(d)
	if !ok {
		return
	}
	first := tally{run: run, runSeq: runSeq, doubt: a.Doubt}
	switch {
	case d.Deny:
		w := want{family: a.Family, mode: lowest(a.Modes), text: d.Target, why: d.Reason}
		if d.Layer != "" {
			w.why += ", " + d.Layer
		}
		note(l.denied, w, d.Op, first)
	case a.Doubt == Name:
		note(l.unsaid, want{family: a.Family, mode: lowest(a.Modes), text: d.Target}, d.Op, first)
	default:
		modes := narrowed(r.held, a)
		op := d.Op
		for m := range caps.Mode(32) {
			if modes.Has(m) {
				note(l.used, want{family: a.Family, mode: m, name: a.Name}, op, first)
				op = "" // one call, in whichever mode: it is counted once
			}
		}
	}
}

func note(in map[want]*tally, w want, op string, first tally) {
	t := in[w]
	if t == nil {
		w.name, w.text, w.why = strings.Clone(w.name), strings.Clone(w.text), strings.Clone(w.why)
		first.want, first.ops = w, map[string]int{}
		first.run = strings.Clone(first.run)
		t = &first
		in[w] = t
	}
	if op != "" {
		t.count++
		t.ops[strings.Clone(op)]++
	}
}

// narrowed is the modes in which a can have been allowed by what was held.
func narrowed(held caps.Set, a Ask) caps.ModeSet {
	var some caps.ModeSet
	for m := range caps.Mode(32) {
		if a.Modes.Has(m) && held.Check(caps.Request{Family: a.Family, Mode: m, Name: a.Name}).Allow {
			some |= 1 << m
		}
	}
	if some == 0 {
		return a.Modes
	}
	return some
}

func lowest(s caps.ModeSet) caps.Mode {
	for m := range caps.Mode(32) {
		if s.Has(m) {
			return m
		}
	}
	return 0
}

// sorted are tallies in the order of families, names and modes.
func sorted(in map[want]*tally) []*tally {
	var list []*tally
	for _, t := range in {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *tally) int {
		return cmp.Or(cmp.Compare(a.family, b.family), strings.Compare(a.name, b.name),
			cmp.Compare(a.mode, b.mode), strings.Compare(a.text, b.text), strings.Compare(a.why, b.why))
	})
	return list
}
