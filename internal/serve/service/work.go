package service

import (
	"errors"
	"fmt"
	"log/slog"

	"runloop.dev/rlp/internal/base/guard"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/places"
)

// errNoReport is a host that broke its word.
var errNoReport = errors.New("the host returned neither a report nor an error")

// A brokenError is a launch that did not return. What it was about is in the log.
type brokenError struct{ run string }

func (e *brokenError) Error() string {
	return "the service broke while it did run " + e.run + "; its log says where"
}

// work does r, and then what waits, until nothing does.
func (s *Service) work(r *Run) {
	for ; r != nil; r = s.next() {
		s.perform(r)
	}
}

// next is the run whose turn it is; nil: the worker has nothing to do and is no
// longer counted.
func (s *Service) next() *Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.waiting.pop(s.unread.full)
	if r == nil {
		s.load.Running--
		s.calm()
	}
	return r
}

// perform does one run from its start to its end. Nothing begins for a caller who
// is nobody by then.
func (s *Service) perform(r *Run) {
	if why := r.caller.Over(s.opt.Now()); why != nil {
		r.cancel(s.lapsed(r, why))
		s.finish(r, nil, errCancelled)
		return
	}
	s.mu.Lock()
	r.mu.Lock()
	q := r.request
	r.state.State, r.state.StartedAt = Running, s.now()
	r.state.QueueMS = max(0, r.state.StartedAt.Sub(r.state.QueuedAt.Time).Milliseconds())
	r.mu.Unlock()
	s.events.tell("run.started", r)
	s.mu.Unlock()
	report, err := s.launch(r, q)
	s.finish(r, report, err)
}

// launch has the host do r. Whatever becomes of that, it returns.
func (s *Service) launch(r *Run, q *Request) (report *launcher.Report, err error) {
	done := make(chan struct{})
	begin := Begin{
		RunID: r.id, Event: func(name string, f map[string]any) { s.event(r, name, f) },
		Record: func(rec *audit.Record) { s.record(r, rec) },
	}
	if r.inputs != nil {
		begin.Inputs = r.inputs
	}
	// A goroutine of its own, so that one which is ended takes no worker along.
	guard.Go(func() (err error) {
		report, err = s.opt.Host.Launch(r.ctx, r.caller, q, begin)
		return err
	}, func(ended error) {
		defer close(done)
		var broken *guard.Broken
		if err = ended; errors.As(ended, &broken) {
			report, err = nil, &brokenError{r.id}
			st := r.State()
			s.warn(r, &st, "a run broke the service", slog.String("what", broken.What),
				slog.String("where", string(broken.Stack)))
		}
	})
	<-done
	if report == nil && err == nil {
		err = errNoReport
	}
	return report, err
}

// finish notes how r ended.
func (s *Service) finish(r *Run, report *launcher.Report, err error) {
	r.cancelledBefore(&report, &err)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kid := range r.delegates() {
		s.endDelegate(r, kid, nil)
	}
	r.mu.Lock()
	r.request, r.report, r.err = repeatable(r.request, r.size), report, err
	r.state.EndedAt = s.now()
	r.state.concluded(report, err)
	if err != nil && r.caller.Can(Operate) { // which was told of the host, as who operates
		r.state.forThem = places.Ended(string(launcher.Refused), r.state.Message)
	}
	st := r.state
	r.mu.Unlock()
	if st.State == Failed && err != nil {
		s.warn(r, &st, "run failed", slog.String("kind", fmt.Sprintf("%T", err)))
	}
	r.cancel(nil)
	if r.inputs != nil {
		r.inputs.end()
		s.turning.end(r)
	}
	s.watchedOver(r)
	if !st.StartedAt.IsZero() {
		s.pace.took(st.EndedAt.Sub(st.StartedAt.Time))
	}
	s.load.count(st.State)
	if s.opt.Watch != nil {
		s.opt.Watch.Report(st, report)
	}
	s.unread.take(r, r.caller)
	s.close(r)
	s.keep(r)
}

// close says that r has ended, to whoever waits or follows.
func (s *Service) close(r *Run) {
	s.events.tell("run.ended", r)
	close(r.done)
	r.trail.end()
}

// count counts a run that ended.
func (l *Load) count(state string) {
	switch state {
	case Done:
		l.Done++
	case Refused:
		l.Refused++
	default:
		l.Failed++
	}
}

// concluded fills in how a run ended.
func (st *State) concluded(report *launcher.Report, err error) {
	if st.StartedAt.IsZero() {
		st.QueueMS = max(0, st.EndedAt.Sub(st.QueuedAt.Time).Milliseconds())
	} else {
		st.WallMS = max(0, st.EndedAt.Sub(st.StartedAt.Time).Milliseconds())
	}
	if report == nil {
		st.nothing(err)
		return
	}
	st.Agent, st.Version, st.TraceID = report.Agent, report.Version, report.TraceID
	st.Outcome, st.ExitCode, st.Message = report.Outcome, report.ExitCode, report.Message
	if report.Told != nil {
		st.forThem = report.Told.Message
	}
	st.Allowed, st.Denied = report.Usage.Allowed, report.Usage.Denied
	if report.Usage.WallMS > 0 {
		st.WallMS = report.Usage.WallMS
	}
	switch report.Outcome {
	case launcher.Refused, launcher.Unsupported:
		st.State = Refused
	case launcher.AuditFailed, launcher.Fault:
		st.State = Failed
	default:
		st.State = Done
	}
}

// nothing fills in why nothing was begun.
func (st *State) nothing(err error) {
	const most = 4096 // a message may quote what a bundle made up, and is kept for long
	defer func() {
		if len(st.Message) > most {
			st.Message = st.Message[:most] + "..."
		}
	}()
	var fields FieldErrors
	var policy *ViolationError
	var away *UnavailableError
	st.State, st.Outcome, st.ExitCode, st.Message = Refused, launcher.Refused, launcher.StatusInput, err.Error()
	switch {
	case errors.As(err, &policy):
		st.ExitCode = launcher.StatusPolicy
	case errors.As(err, &fields), errors.Is(err, ErrNotFound):
	case errors.Is(err, ErrForbidden):
		st.ExitCode = launcher.StatusPolicy
	case errors.As(err, &away):
		st.State, st.Outcome, st.ExitCode = Failed, "", launcher.StatusUnavailable
		if away.Unrecorded {
			st.Outcome, st.ExitCode = launcher.AuditFailed, launcher.StatusAudit
		}
	default:
		var broken *brokenError
		st.State, st.Outcome, st.ExitCode = Failed, "", launcher.StatusUnavailable
		if !errors.As(err, &broken) {
			st.Message = "the run could not be launched; the log of the service says why"
		}
	}
}
