package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
)

const (
	usualRuns = 50
	mostRuns  = 500
	// reachRuns is how many stored runs one request looks at.
	reachRuns = 5000
)

// runID is the run that a path names, by its id or the beginning or the end of it.
func runID(s *server, r *http.Request, c *service.Caller) (string, error) {
	id := r.PathValue("id")
	if !isPartOfID(id) {
		return "", &failure{
			Status: http.StatusNotFound, Code: "not_found",
			Text: "this is no id of a run; one looks like 019ab0de-79ea-74f8-9d3e-6d0c3f0a1b2c, and GET /runs lists them",
		}
	}
	id, err := service.WholeRun(r.Context(), s.Service, s.Host, c, id)
	noteOf(r).run = id
	return id, err
}

// isRunID reports whether s has the form of a run's id.
func isRunID(s string) bool {
	return len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' &&
		isHex(strings.ReplaceAll(s, "-", ""), 32)
}

// isPartOfID reports whether s may be the beginning or the end of a run's id.
func isPartOfID(s string) bool {
	part := strings.TrimPrefix(s, "…") // as pages print an end
	digits := strings.ReplaceAll(part, "-", "")
	return isRunID(part) || len(part) < 36 && digits != "" && isHex(digits, len(digits))
}

// number reads a parameter that counts something.
func number(r *http.Request, name string, usual, most uint64) (uint64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > most {
		return 0, invalid(name, "must be a whole number from 0 to %d", most)
	}
	return n, nil
}

// A page is some runs, and where to go on.
type page struct {
	Runs []service.State `json:"runs"`
	Next string          `json:"next,omitempty"` // as before of the next request; "" if there are no more
}

// A query of runs.
type runsQuery struct {
	agent, state, before string
	limit                int
}

func readRunsQuery(r *http.Request) (q runsQuery, err error) {
	v := r.URL.Query()
	q.agent, q.state, q.before = v.Get("agent"), v.Get("state"), v.Get("before")
	var problems service.FieldErrors
	switch q.state {
	case "", service.Queued, service.Running, service.Done, service.Refused, service.Failed:
	default:
		problems = append(problems, service.FieldError{
			Field: "state",
			Why:   "must be queued, running, done, refused or failed",
		})
	}
	if q.before != "" && !isRunID(q.before) {
		problems = append(problems, service.FieldError{Field: "before", Why: "must be the id of a run, as next has it"})
	}
	n, err := number(r, "limit", usualRuns, mostRuns)
	if err != nil || n == 0 {
		problems = append(problems, service.FieldError{Field: "limit", Why: fmt.Sprintf("must be a whole number from 1 to %d",
			mostRuns)})
	}
	q.limit = int(n)
	if len(problems) > 0 {
		return q, problems
	}
	return q, nil
}

func (q *runsQuery) wants(st *service.State) bool {
	return (q.agent == "" || st.Agent == q.agent) && (q.state == "" || st.State == q.state) &&
		(q.before == "" || st.RunID < q.before)
}

// getRuns lists runs, those in memory and those of the log, the newest first.
func (s *server) getRuns(w http.ResponseWriter, r *http.Request, c *service.Caller) error {
	q, err := readRunsQuery(r)
	if err != nil {
		return err
	}
	leave, err := openPage(s, r, c)
	if err != nil {
		return err
	}
	defer leave()
	p, size := page{Runs: []service.State{}}, 0
	memory := s.Service.Runs(r.Context(), c)
	known := make(map[string]bool, len(memory))
	for i := range memory {
		known[memory[i].RunID] = true
	}
	full := false
	add := func(st *service.State) bool {
		if !q.wants(st) {
			return true
		}
		if full = len(p.Runs) == q.limit || size >= mostPage; full {
			return false
		}
		p.Runs = append(p.Runs, *st)
		size += sizeOfState + 6*len(st.Message) // as it may be escaped
		return true
	}
	at := 0
	// older adds what is in memory and newer than a stored run.
	older := func(id string) bool {
		for ; at < len(memory) && memory[at].RunID > id; at++ {
			if !add(&memory[at]) {
				return false
			}
		}
		return true
	}
	looked, last, err := s.stored(r.Context(), c, &q, func(st *service.State) bool {
		return older(st.RunID) && (known[st.RunID] || add(st))
	})
	if err != nil {
		return err
	}
	switch {
	case full:
		p.Next = p.Runs[len(p.Runs)-1].RunID
	case looked >= reachRuns:
		p.Next = last
	case !older(""):
		p.Next = p.Runs[len(p.Runs)-1].RunID
	}
	s.json(w, r, http.StatusOK, p)
	return nil
}

// stored calls yield with the runs of the log, for those who may read it.
func (s *server) stored(ctx context.Context, c *service.Caller, q *runsQuery,
	yield func(*service.State) bool,
) (looked int, last string, err error) {
	if !c.Can(service.Read) && !c.Can(service.Operate) {
		return 0, "", nil
	}
	log, err := s.Host.Log(ctx, c)
	if err != nil {
		return 0, "", err
	}
	for sum, err := range log.Runs(ctx, kb.RunQuery{Before: q.before, Agent: q.agent, Limit: reachRuns}) {
		if err != nil {
			return looked, last, asAway(err)
		}
		st := stateOf(&sum, c.Tenant)
		looked, last = looked+1, sum.RunID
		if !yield(&st) {
			return 0, last, nil
		}
	}
	return looked, last, nil
}

// asAway is an error of the log, which is no fault of a request.
func asAway(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &service.UnavailableError{Why: errors.New("the log cannot be read now; rlp audit verify says what it is like")}
}

// stateOf is a run as the log tells it.
func stateOf(sum *kb.RunSummary, tenant string) service.State {
	began := service.Time{Time: time.UnixMilli(sum.BeganMS).UTC()}
	st := service.State{
		RunID: sum.RunID, TraceID: sum.TraceID, Tenant: tenant, Agent: sum.Agent, State: service.Running,
		Outcome: launcher.Outcome(sum.Outcome), ExitCode: sum.ExitCode,
		Message: sum.Message, QueuedAt: began, StartedAt: began, Allowed: sum.Allowed, Denied: sum.Denied,
		ParentRun: sum.ParentRun,
	}
	if sum.EndedMS == 0 {
		return st
	}
	st.EndedAt = service.Time{Time: time.UnixMilli(sum.EndedMS).UTC()}
	st.WallMS = max(0, sum.EndedMS-sum.BeganMS)
	switch {
	case sum.End == audit.KindPolicyRejected, st.Outcome == launcher.Refused, st.Outcome == launcher.Unsupported:
		st.State = service.Refused
	case st.Outcome == launcher.AuditFailed, st.Outcome == launcher.Fault:
		st.State = service.Failed
	default:
		st.State = service.Done
	}
	return st
}

// one is a run with its report.
type one struct {
	service.State
	Report *launcher.Report `json:"report,omitempty"`
}

// getRun tells what is known of a run, and its report while that is kept.
func (s *server) getRun(w http.ResponseWriter, r *http.Request, c *service.Caller) error {
	id, err := runID(s, r, c)
	if err != nil {
		return err
	}
	run, err := s.Service.Run(r.Context(), c, id)
	if errors.Is(err, service.ErrNotFound) {
		sum, err := s.summary(r.Context(), c, id)
		if err != nil {
			return err
		}
		s.json(w, r, http.StatusOK, one{State: stateOf(sum, c.Tenant)})
		return nil
	}
	if err != nil {
		return err
	}
	done, err := run.Reading(c, service.CutOf(r.Context()))
	if err != nil {
		return err
	}
	defer done()
	o := one{State: run.StateFor(c)}
	var report *launcher.Report
	if o.Ended() {
		report, _ = run.Report(c) // the state says why there is none
	}
	(&out{&s.responder, w, r}).report(report, func(rep *launcher.Report) any {
		o.Report = rep
		return o
	})
	return nil
}

// summary is a run of the log.
func (s *server) summary(ctx context.Context, c *service.Caller, id string) (*kb.RunSummary, error) {
	none := &service.NoRunError{RunID: id}
	if !c.Can(service.Read) && !c.Can(service.Operate) {
		return nil, none
	}
	log, err := s.Host.Log(ctx, c)
	if err != nil {
		return nil, err
	}
	for sum, err := range log.Runs(ctx, kb.RunQuery{Before: behind(id), Limit: 1}) {
		if err != nil {
			return nil, asAway(err)
		}
		if sum.RunID == id {
			return &sum, nil
		}
	}
	return nil, none
}

// behind is the id that follows one.
func behind(id string) string {
	p := []byte(id)
	const digits = "0123456789abcdef0"
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] == '-' {
			continue
		}
		p[i] = digits[strings.IndexByte(digits, p[i])+1]
		if p[i] != '0' {
			return string(p)
		}
	}
	return "" // from the newest
}
