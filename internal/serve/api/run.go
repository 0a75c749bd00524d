package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

// postRun takes a run, and answers with its report or with where it is.
func (s *server) postRun(w http.ResponseWriter, r *http.Request, c *service.Caller) error {
	keys := r.Header["Idempotency-Key"]
	if len(keys) > 1 {
		return invalid("Idempotency-Key", "is there twice; keep one")
	}
	key := strings.Join(keys, "")
	b, err := s.runBody(w, r, c)
	if err != nil {
		return err
	}
	q := &b.request
	q.TraceID, q.ParentSpan = traceOf(r)
	run, err := s.Service.Submit(r.Context(), c, q, key)
	if err != nil {
		return b.toldBy(err)
	}
	wait := b.wait
	b = nil // a body may be large, and a run long
	done := func() {}
	if wait {
		done = run.Await(service.CutOf(r.Context()))
	}
	defer done()
	st := run.StateFor(c)
	n := noteOf(r)
	n.run, n.trace = st.RunID, st.TraceID
	w.Header().Set("X-Run-Id", st.RunID)
	if !wait {
		s.accepted(w, r, st)
		return nil
	}
	select {
	case <-run.Done():
	case <-r.Context().Done():
		if key == "" {
			_ = s.Service.Cancel(context.WithoutCancel(r.Context()), c, run.ID()) // it may have ended
		}
		return r.Context().Err()
	}
	report, err := run.Report(c)
	if err != nil {
		return err
	}
	(&out{&s.responder, w, r}).report(report, func(rep *launcher.Report) any { return rep })
	return nil
}

// runBody reads the body of POST /run and tells all that is wrong with it: what
// the host finds as well.
func (s *server) runBody(w http.ResponseWriter, r *http.Request, c *service.Caller) (*runBody, error) {
	body, done, err := s.read(w, r, s.Largest)
	if err != nil {
		return nil, err
	}
	defer done()
	b, err := readRun(body)
	if err != nil {
		return nil, err
	}
	b.twice()
	if len(b.problems) == 0 {
		return b, nil
	}
	var more service.FieldErrors
	if errors.As(b.toldBy(s.Host.Check(r.Context(), c, &b.request)), &more) {
		known := slices.Clone(b.problems)
		for _, f := range more {
			if !slices.ContainsFunc(known, func(k service.FieldError) bool {
				return k.Field == "" ||
					root(k.Field) == root(f.Field)
			}) {
				b.problems = append(b.problems, f)
			}
		}
	}
	return nil, b.problems
}

// root is the field of a body that a path begins with.
func root(path string) string {
	if end := strings.IndexAny(path, ".["); end >= 0 {
		return path[:end]
	}
	return path
}

// toldBy is an error about the request with the paths of the body.
func (b *runBody) toldBy(err error) error {
	var fields service.FieldErrors
	if errors.As(err, &fields) {
		return b.placed(fields)
	}
	return err
}

// An acceptance is where a run that was taken is.
type acceptance struct {
	RunID   string `json:"run_id"`
	TraceID string `json:"trace_id"`
	State   string `json:"state"`
	Events  string `json:"events"`
	Href    string `json:"href"`
}

func (s *server) accepted(w http.ResponseWriter, r *http.Request, st service.State) {
	href := "/runs/" + st.RunID
	w.Header().Set("Location", href)
	s.json(w, r, http.StatusAccepted, acceptance{st.RunID, st.TraceID, st.State, href + "/events", href})
}

// postCancel ends a run that the caller may end.
func (s *server) postCancel(w http.ResponseWriter, r *http.Request, c *service.Caller) error {
	id, err := runID(s, r, c)
	if err != nil {
		return err
	}
	if err := s.Service.Cancel(r.Context(), c, id); err != nil {
		return err
	}
	return s.where(w, r, c, id)
}

// where answers with where a run is.
func (s *server) where(w http.ResponseWriter, r *http.Request, c *service.Caller, id string) error {
	run, err := s.Service.Run(r.Context(), c, id)
	if err != nil {
		return err
	}
	s.accepted(w, r, run.StateFor(c))
	return nil
}

// mostInput bounds the body of POST /runs/{id}/input.
const mostInput = 8 << 20

// postInput gives a run the input of its next turn.
func (s *server) postInput(w http.ResponseWriter, r *http.Request, c *service.Caller) error {
	id, err := runID(s, r, c)
	if err != nil {
		return err
	}
	body, done, err := s.read(w, r, mostInput)
	if err != nil {
		return err
	}
	defer done()
	all, err := members(body)
	if err != nil {
		return err
	}
	b := &runBody{}
	var input json.RawMessage
	last := false
	for _, m := range all {
		switch m.Key {
		case "input":
			input = bytes.Clone(m.Raw)
		case "last":
			b.flag(&last, "last", m.Raw)
		default:
			b.wrong(strictjson.Shown(m.Key), "there is no such field; there are input, last")
		}
	}
	if len(b.problems) > 0 {
		return b.problems
	}
	if err := s.Service.Send(r.Context(), c, id, input, last); err != nil {
		return err
	}
	return s.where(w, r, c, id)
}
