package runs

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
)

// A Log is what questions about runs read: the log of a tenant, or what somebody may
// know of it. A [kb.Store] is one.
type Log interface {
	Audit(ctx context.Context, f kb.Filter) iter.Seq2[audit.Record, error]
	Head(ctx context.Context) (kb.Head, error)
	Runs(ctx context.Context, q kb.RunQuery) iter.Seq2[kb.RunSummary, error]
}

// A Window says which part of a log an [Activity] is about: from Since to Now in so
// many parts, and no more of it than the newest runs and records of these numbers.
type Window struct {
	Since, Now            time.Time
	Parts                 int
	MostRuns, MostRecords int
}

// step is the step that a time lies in; -1: it lies before the window.
func (w *Window) step(at time.Time) int {
	if at.Before(w.Since) {
		return -1
	}
	i := int(float64(w.Parts) * float64(at.Sub(w.Since)) / float64(max(1, w.Now.Sub(w.Since))))
	return min(i, w.Parts-1)
}

// An Activity is what the runs of a window came to.
type Activity struct {
	Window
	Steps  []Step
	Agents []Health  // what is wrong with the most first
	Top    []Refusal // what was denied the most often first
	Unused []Unused

	Looked  int       // at so many runs
	Records int       // and at so many records
	RunsAt  time.Time // runs that began before are not counted; zero: none is missing
	SeenAt  time.Time // the same of records
	Ever    bool      // anything ran at all, in the window or before
}

// Whole reports whether all of the window was looked at.
func (a *Activity) Whole() bool { return a.RunsAt.IsZero() && a.SeenAt.IsZero() }

// A Step is a part of the time of a window, by when runs began.
type Step struct {
	From            time.Time
	OK, Bad, Active int // runs
	Denied          int64
}

// Runs counts the runs of a step.
func (s *Step) Runs() int { return s.OK + s.Bad + s.Active }

// Health is how the runs of an agent ended.
type Health struct {
	Agent           string
	OK, Bad, Active int
	Denied          int64
	Typical         int64    // ms: half of its runs took no longer
	Recent          []Ending // the newest last
}

// mostRecent bounds how many endings are told of an agent.
const mostRecent = 10

// An Ending is how one run ended.
type Ending struct {
	Run, State string // of [StateOf]
	Began      time.Time
}

// The states of a run in the log.
const (
	OK      = "ok"
	Refused = "refused"
	Failed  = "failed"
)

// StateOf is [OK], [Refused], [Failed] or [Running], by a run's summary.
func StateOf(s *kb.RunSummary) string {
	if s.EndedMS == 0 {
		return Running
	}
	return EndState(s.End, s.Outcome)
}

// EndState is the state of a run that has ended, by the kind of its last record and
// its outcome.
func EndState(kind, outcome string) string {
	switch {
	case kind == audit.KindPolicyRejected:
		return Refused
	case outcome == OK:
		return OK
	}
	return Failed
}

// Look reads the activity of a window. What it costs is bounded by the window and not
// by the log.
func Look(ctx context.Context, log Log, w Window) (*Activity, error) {
	a := &Activity{Window: w}
	for i := range w.Parts {
		a.Steps = append(a.Steps, Step{From: w.Since.Add(time.Duration(i) * w.Now.Sub(w.Since) / time.Duration(w.Parts))})
	}
	if err := a.runs(ctx, log); err != nil {
		return nil, err
	}
	return a, a.records(ctx, log)
}

// runs counts the newest runs, one more than may be looked at, which says that there
// are others.
func (a *Activity) runs(ctx context.Context, log Log) error {
	agents, took := map[string]*Health{}, map[string][]int64{}
	oldest := a.Now
	for s, err := range log.Runs(ctx, kb.RunQuery{Limit: a.MostRuns + 1}) {
		if err != nil {
			return err
		}
		began, state := time.UnixMilli(s.BeganMS).UTC(), StateOf(&s)
		i := a.step(began)
		if a.Ever = true; i < 0 {
			break
		}
		if a.Looked == a.MostRuns {
			a.RunsAt = oldest
			break
		}
		a.Looked++
		oldest = began
		h := agents[s.Agent]
		if h == nil {
			h = &Health{Agent: s.Agent}
			agents[s.Agent] = h
		}
		a.Steps[i].count(state, s.Denied)
		h.count(state, s.Denied)
		if len(h.Recent) < mostRecent {
			h.Recent = append(h.Recent, Ending{s.RunID, state, began})
		}
		if s.EndedMS > 0 {
			took[s.Agent] = append(took[s.Agent], max(0, s.EndedMS-s.BeganMS))
		}
	}
	for name, h := range agents {
		slices.Reverse(h.Recent)
		if list := took[name]; len(list) > 0 {
			slices.Sort(list)
			h.Typical = list[(len(list)-1)/2]
		}
		a.Agents = append(a.Agents, *h)
	}
	slices.SortFunc(a.Agents, func(x, y Health) int {
		return cmp.Or(cmp.Compare(y.Bad, x.Bad), cmp.Compare(y.Denied, x.Denied), cmp.Compare(x.Agent, y.Agent))
	})
	return nil
}

func (s *Step) count(state string, denied int64) {
	add(state, &s.OK, &s.Bad, &s.Active)
	s.Denied += denied
}

func (h *Health) count(state string, denied int64) {
	add(state, &h.OK, &h.Bad, &h.Active)
	h.Denied += denied
}

func add(state string, ok, bad, active *int) {
	switch state {
	case OK:
		*ok++
	case Running:
		*active++
	default:
		*bad++
	}
}
