package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"runloop.dev/rlp/launcher"
)

var errCancelled = errors.New("it was cancelled")

// Cancel ends a run: one that waits at once, one that is under way as if its
// operator had interrupted it. It takes Launch for one's own runs and Operate for
// others'. One that has ended stays as it is.
func (s *Service) Cancel(_ context.Context, c *Caller, id string) error {
	r, err := s.acted(c, id)
	if err != nil {
		return err
	}
	if r.root != nil {
		return FieldErrors{{"run_id", fmt.Sprintf("run %s was launched by run %s; cancel that one", id, r.root.id)}}
	}
	s.stop(r, nil)
	return nil
}

// idled is why a run is ended that waited for an input for so long.
func idled(d time.Duration) error {
	return &launcher.Ending{Why: fmt.Sprintf("the run waited %s for its next input and none came ([serve] turn_idle)", d)}
}

// stop cancels r, wherever it is; why is nil or a [launcher.Ending].
func (s *Service) stop(r *Run, why error) {
	if r.cancel == nil {
		return // it has ended, and was forgotten
	}
	r.cancel(why)
	s.mu.Lock()
	waited := s.waiting.remove(r)
	if waited {
		s.ending++
	}
	s.mu.Unlock()
	if !waited {
		return
	}
	s.finish(r, nil, errCancelled)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending--
	s.calm()
}

// acted is the run of an id that c may do something to.
func (s *Service) acted(c *Caller, id string) (*Run, error) {
	r := s.find(id)
	switch {
	case r == nil || !r.seen(c):
		return nil, &NoRunError{id}
	case c.Can(Operate), c.Can(Launch) && r.owns(c):
		return r, nil
	}
	return nil, fmt.Errorf("run %s is another caller's: %w", id, ErrForbidden)
}

// cancelledBefore makes a report for a run that was cancelled before anything of
// it began.
func (r *Run) cancelledBefore(report **launcher.Report, err *error) {
	var policy *ViolationError
	var fields FieldErrors
	var broken *brokenError
	if *report != nil || r.ctx.Err() == nil || errors.As(*err, &policy) || errors.As(*err, &fields) ||
		errors.As(*err, &broken) {
		return
	}
	message := "cancelled before it began"
	var ending *launcher.Ending
	if errors.As(context.Cause(r.ctx), &ending) {
		message += ": " + ending.Why
	}
	st := r.State()
	*err = nil
	*report = &launcher.Report{
		RunID: st.RunID, TraceID: st.TraceID, Tenant: st.Tenant, Agent: st.Agent, Outcome: launcher.Cancelled,
		ExitCode: launcher.StatusCancelled,
		Message:  message, Base: []string{}, Effective: []string{}, Changes: []launcher.Change{},
		Limits: map[string]int64{}, Usage: launcher.Usage{Families: map[string]launcher.FamilyUsage{}},
	}
}

// Drain takes nothing more. What was taken may go on for the time of grace, the
// queue too; then all of it is cancelled. It returns when every run has its
// report. If ctx ends it cancels at once, and returns what ctx ended for.
func (s *Service) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.load.Draining = true
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.calm()
	s.mu.Unlock()
	grace := time.NewTimer(s.opt.Grace)
	defer grace.Stop()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	case <-grace.C:
	}
	for _, r := range s.underWay() {
		s.stop(r, nil)
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		l := s.Load()
		return fmt.Errorf("ending the service with %d runs under way: %w", l.Running+l.Waiting, ctx.Err())
	}
}

// calm says so when nothing is under way. The caller holds the lock.
func (s *Service) calm() {
	if s.idle != nil && s.load.Running+s.ending+s.waiting.len() == 0 {
		select {
		case <-s.idle:
		default:
			close(s.idle)
		}
	}
}

// underWay are the runs that have not ended, those that wait first: none of them
// begins while the others are ended.
func (s *Service) underWay() []*Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	var waiting, running []*Run
	for _, r := range s.runs {
		switch st := r.State(); {
		case r.root != nil || st.Ended():
		case st.State == Queued:
			waiting = append(waiting, r)
		default:
			running = append(running, r)
		}
	}
	return append(waiting, running...)
}
