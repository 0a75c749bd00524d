package mcpserver

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
)

// A runLine is a run as it is listed.
type runLine struct {
	RunID     string `json:"run_id"`
	Agent     string `json:"agent"`
	State     string `json:"state"`
	Outcome   string `json:"outcome,omitempty"`
	ExitCode  int    `json:"exit_code"`
	Message   string `json:"message,omitempty"`
	Began     string `json:"began"`
	Ended     string `json:"ended,omitempty"`
	Allowed   int64  `json:"allowed"`
	Denied    int64  `json:"denied"`
	ParentRun string `json:"parent_run,omitempty"`
}

func lineOf(st *service.State) runLine {
	began := st.StartedAt
	if began.IsZero() {
		began = st.QueuedAt
	}
	return runLine{
		st.RunID, st.Agent, st.State, string(st.Outcome), st.ExitCode, short(oneLine(st.Message), mostLine), began.String(),
		st.EndedAt.String(),
		st.Allowed, st.Denied, st.ParentRun,
	}
}

// storedLine is a run as the log alone knows it. One that has no end is running
// somewhere, or was lost with its process.
func storedLine(s *kb.RunSummary) runLine {
	l := runLine{
		RunID: s.RunID, Agent: s.Agent, State: service.Running, Outcome: s.Outcome, ExitCode: s.ExitCode,
		Message: short(oneLine(s.Message), mostLine),
		Began:   service.Time{Time: time.UnixMilli(s.BeganMS)}.String(), Allowed: s.Allowed, Denied: s.Denied,
		ParentRun: s.ParentRun,
	}
	if s.EndedMS > 0 {
		l.State, l.Ended = service.Done, service.Time{Time: time.UnixMilli(s.EndedMS)}.String()
		if s.End == "policy.rejected" {
			l.State = service.Refused
		}
	}
	return l
}

type runsArguments struct {
	Agent  string `json:"agent"`
	State  string `json:"state"`
	Before string `json:"before"`
	Limit  int    `json:"limit"`
}

const (
	someRuns = 20
	mostRuns = 100
)

func (ss *session) readRuns(ctx context.Context, c *service.Caller, p []byte) (any, error) {
	a, err := arguments[runsArguments](p)
	if err != nil {
		return nil, wrongf("%s", err)
	}
	switch a.State {
	case "", service.Queued, service.Running, service.Done, service.Refused, service.Failed:
	default:
		return nil, wrongf("state: queued, running, done, refused or failed")
	}
	if a.Limit == 0 {
		a.Limit = someRuns
	}
	if a.Limit < 1 || a.Limit > mostRuns {
		return nil, wrongf("limit: from 1 to %d", mostRuns)
	}
	suits := func(l runLine) bool {
		return (a.Agent == "" || l.Agent == a.Agent) && (a.State == "" || l.State == a.State) &&
			(a.Before == "" || l.RunID < a.Before)
	}
	known := map[string]bool{}
	var list []runLine
	for _, st := range ss.of.opt.Service.Runs(ctx, c) {
		known[st.RunID] = true
		if l := lineOf(&st); suits(l) {
			list = append(list, l)
		}
	}
	log, err := ss.of.opt.Host.Log(ctx, c)
	if err != nil {
		return nil, err
	}
	stored, looked := 0, 0
	for s, err := range log.Runs(ctx, kb.RunQuery{Before: a.Before, Agent: a.Agent}) {
		if err != nil {
			return nil, err
		}
		if l := storedLine(&s); !known[s.RunID] && suits(l) {
			list = append(list, l)
			stored++
		}
		if looked++; stored > a.Limit || looked >= lookedAt {
			break
		}
	}
	slices.SortFunc(list, func(x, y runLine) int { return strings.Compare(y.RunID, x.RunID) })
	answer := map[string]any{"runs": append([]runLine{}, list[:min(len(list), a.Limit)]...)}
	if len(list) > a.Limit {
		answer["next"] = list[a.Limit-1].RunID
	}
	return answer, nil
}

// lookedAt bounds how many stored runs one question looks at.
const lookedAt = 2000

// A runDocument is one run.
type runDocument struct {
	runLine
	Result    string    `json:"result,omitempty"` // its beginning
	Stdout    string    `json:"stdout,omitempty"` // its end
	Stderr    string    `json:"stderr,omitempty"` // its end
	Effective []string  `json:"effective,omitempty"`
	Children  []string  `json:"children,omitempty"`
	Denials   []*denial `json:"denials"`
	More      int       `json:"more_denials,omitempty"`
}

func (ss *session) readRun(ctx context.Context, c *service.Caller, p []byte) (any, error) {
	a, err := arguments[struct {
		RunID string `json:"run_id"`
	}](p)
	if err != nil {
		return nil, wrongf("%s", err)
	}
	if a.RunID == "" || len(a.RunID) > mostID {
		return nil, wrongf("run_id: the id of a run; rlp_runs lists them")
	}
	if a.RunID, err = service.WholeRun(ctx, ss.of.opt.Service, ss.of.opt.Host, c, a.RunID); err != nil {
		return nil, wrongRun(err)
	}
	d := &runDocument{Denials: []*denial{}}
	switch r, err := ss.of.opt.Service.Run(ctx, c, a.RunID); {
	case err == nil:
		st := r.StateFor(c)
		d.runLine = lineOf(&st)
		d.reported(r, c)
	case !errors.Is(err, service.ErrNotFound):
		return nil, err
	default:
		if err := ss.stored(ctx, c, a.RunID, d); err != nil {
			return nil, err
		}
	}
	log, err := ss.of.opt.Host.Log(ctx, c)
	if err != nil {
		return nil, err
	}
	var t trail
	for r, err := range log.Audit(ctx, kb.Filter{Run: a.RunID, Decision: "deny", Limit: lookedAt}) {
		if err != nil {
			return nil, err
		}
		t.add(r.RunSeq, r.Head.Agent, r.Decision)
	}
	d.Denials, d.More = append(d.Denials, t.list...), t.more
	return d, nil
}

// mostID bounds what may be an id.
const mostID = 64

// wrongRun is why a text names no run, or more than one.
func wrongRun(err error) error {
	var several service.FieldErrors
	switch {
	case errors.As(err, &several):
		return wrongf("%s", several)
	case errors.Is(err, service.ErrNotFound):
		return wrongf("run_id: there is no such run; rlp_runs lists them")
	}
	return err
}

// reported adds what the report of a run says, if it is still kept.
func (d *runDocument) reported(r *service.Run, c *service.Caller) {
	report, err := r.Report(c)
	if err != nil || report == nil {
		return
	}
	d.Result = short(string(report.Result), mostText)
	d.Stdout, _ = tail(printable(report.Stdout), mostTail)
	d.Stderr, _ = tail(printable(report.Stderr), mostTail)
	d.Effective = cut(report.Effective)
	for _, child := range report.Children {
		d.Children = append(d.Children, child.RunID)
	}
	d.Children = cut(d.Children)
}

// cut is a list that is not too long to show.
func cut(list []string) []string {
	if len(list) > mostRuns {
		return append(list[:mostRuns:mostRuns], "[...]")
	}
	return list
}

// stored reads a run out of the log: the one before whose neighbour it is.
func (ss *session) stored(ctx context.Context, c *service.Caller, id string, d *runDocument) error {
	log, err := ss.of.opt.Host.Log(ctx, c)
	if err != nil {
		return err
	}
	for s, err := range log.Runs(ctx, kb.RunQuery{Before: id + "~", Limit: 1}) {
		if err != nil {
			return err
		}
		if s.RunID == id {
			d.runLine = storedLine(&s)
			return nil
		}
	}
	return wrongf("run_id: there is no such run; rlp_runs lists them")
}
