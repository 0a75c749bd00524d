package runs

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
)

// A Refusal is what runs of one agent were denied again and again.
type Refusal struct {
	Agent, Cap, Target, Reason, Layer string

	Count int
	Runs  int
	Run   string // the newest of them
	Seq   uint64 // its record of it
	Last  time.Time
}

// An Unused is what no recent run of an agent used of what each held.
type Unused struct {
	Agent  string
	Grants []string
	Runs   int // of which each allowed call is in the log
}

// enoughRuns is how many runs have to leave a grant unused before it is told.
const enoughRuns = 3

// A tally counts the records of a window.
type tally struct {
	refusals map[Refusal]*Refusal
	counted  map[string]bool // refusal and run
	open     map[string]*held
	agents   map[string]*usedBy
}

// held is what a run holds, and what it used of it.
type held struct {
	grants  []caps.Grant
	words   []string
	used    map[string]bool
	allowed int64
}

// usedBy is the same of the runs of an agent.
type usedBy struct {
	runs int
	now  []string // what the newest of them held
	used map[string]bool
}

// records counts what was denied and used in the newest records of the window.
func (a *Activity) records(ctx context.Context, log Log) error {
	head, err := log.Head(ctx)
	if err != nil {
		return err
	}
	after := head.Size - min(head.Size, uint64(a.MostRecords))
	t := tally{map[Refusal]*Refusal{}, map[string]bool{}, map[string]*held{}, map[string]*usedBy{}}
	first := true
	for r, err := range log.Audit(ctx, kb.Filter{After: after}) {
		if err != nil {
			return err
		}
		if first && after > 0 && r.Time.After(a.Since) {
			a.SeenAt = r.Time
		}
		first = false
		if a.Records == a.MostRecords { // others came meanwhile
			break
		}
		if a.Records++; !r.Time.Before(a.Since) {
			t.add(&r)
		}
	}
	for _, f := range t.refusals {
		a.Top = append(a.Top, *f)
	}
	slices.SortFunc(a.Top, func(x, y Refusal) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), cmp.Compare(y.Seq, x.Seq))
	})
	a.Unused = t.unused()
	return nil
}

func (t *tally) add(r *audit.Record) {
	id := r.Head.RunID
	h := t.open[id]
	switch e := r.Event; {
	case e != nil && e.Kind == audit.KindRunStart:
		t.open[id] = &held{grants: Grants(e.Effective), words: e.Effective, used: map[string]bool{}}
	case e != nil && audit.Ends(e.Kind) && h != nil:
		if h.allowed >= e.Usage["allowed"] { // else not each of its calls is in the log
			t.ended(r.Head.Agent, h)
		}
		delete(t.open, id)
	case r.Denied():
		t.refused(r)
	case r.Allowed() && h != nil:
		h.allowed++
		h.used[Holder(h.grants, r.Decision.Cap, r.Decision.Target)] = true
	}
}

func (t *tally) refused(r *audit.Record) {
	d, id := r.Decision, r.Head.RunID
	key := Refusal{Agent: r.Head.Agent, Cap: d.Cap, Target: d.Target, Reason: d.Reason, Layer: d.Layer}
	f := t.refusals[key]
	if f == nil {
		f = &key
		t.refusals[key] = f
	}
	f.Count++
	f.Run, f.Seq, f.Last = id, r.Seq, r.Time.UTC()
	if k := strings.Join([]string{id, key.Agent, d.Cap, d.Target, d.Reason, d.Layer}, "\x00"); !t.counted[k] {
		t.counted[k] = true
		f.Runs++
	}
}

func (t *tally) ended(agent string, h *held) {
	u := t.agents[agent]
	if u == nil {
		u = &usedBy{used: map[string]bool{}}
		t.agents[agent] = u
	}
	u.runs++
	u.now = h.words
	for g := range h.used {
		u.used[place(g)] = true
	}
}

// place is a grant without what it allows to do there: one line of a policy grants
// reading, writing and deleting.
func place(grant string) string {
	g, err := grantOf(grant)
	if err != nil {
		return grant
	}
	return g.Family.String() + ":" + g.Scope
}

func (t *tally) unused() (list []Unused) {
	for agent, u := range t.agents {
		left := slices.DeleteFunc(slices.Clone(u.now), func(g string) bool { return u.used[place(g)] })
		if u.runs >= enoughRuns && len(left) > 0 {
			list = append(list, Unused{agent, left, u.runs})
		}
	}
	slices.SortFunc(list, func(x, y Unused) int {
		return cmp.Or(cmp.Compare(len(y.Grants), len(x.Grants)), strings.Compare(x.Agent, y.Agent))
	})
	return list
}
