package run

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/guard"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/engine/guest"
)

// serve runs the body of a run that has no module.
func serve(ctx context.Context, r *run) {
	own, err := r.own()
	if err != nil {
		r.failStart(err)
		return
	}
	env, err := r.environment()
	if err != nil {
		r.failStart(err)
		return
	}
	c := &Calls{
		Env: env, Input: r.input, Stdout: &r.out, Stderr: &r.err, Gate: r.gate, Host: r.host, Budget: r.shared,
		Base: r.plan.Base, Holds: r.plan.Effective, Limits: r.plan.Limits, funcs: map[string]abi.Func{},
		edits: turns{run: r},
	}
	for _, f := range r.floored(own) {
		f.Call = stopUnrecorded(r.gate, f.Call)
		c.funcs[f.Name] = f
	}
	within, cancel, given := timed(ctx, r)
	defer cancel()
	r.event("run.running", nil)
	began := r.spec.Now()
	err = guard.Call(func() error { return r.spec.Body(within, c) })
	c.mu.Lock()
	r.shut(nil)
	c.mu.Unlock()
	r.report.Lane = laneOfBody(r.spec)
	end := guest.End{Kind: guest.OK, Err: err, Wall: r.spec.Now().Sub(began), Given: given}
	var broken *guard.Broken
	var stopped *Stopped
	var exit ExitCode
	switch {
	case ctx.Err() != nil:
		end.Kind, end.Err = guest.Cancelled, context.Cause(ctx)
	case within.Err() != nil:
		end.Kind = guest.Timeout
	case errors.As(err, &broken):
		end.Kind, end.In = guest.HostError, "serving"
		r.note(slog.LevelError, "serving broke", slog.String("where", string(broken.Stack)))
	case errors.As(err, &exit):
		end.Kind, end.ExitCode, end.Err = guest.Exit, uint32(exit), nil
	case err != nil && r.gate.Err() == nil && !errors.As(err, &stopped):
		stopped = &Stopped{Refused, StatusUnavailable, err.Error()}
	}
	if r.ended(end); stopped != nil && r.report.Outcome == OK {
		r.report.GuestExit = nil
		r.report.refuse(stopped.Outcome, stopped.Status, stopped.Message)
	}
}

// timed bounds a body by the wall time of its run, where there is any.
func timed(ctx context.Context, r *run) (context.Context, context.CancelFunc, time.Duration) {
	if _, bound := r.plan.Limits.Get(caps.WallTimeMS); !bound {
		within, cancel := context.WithCancel(ctx)
		return within, cancel, 0
	}
	given := wallTime(r.plan.Limits)
	within, cancel := context.WithTimeout(ctx, given)
	return within, cancel, given
}

// laneOfBody is where the program ran that a body speaks with; nowhere here, where
// there is none.
func laneOfBody(s *Spec) *Lane {
	if s.Lane != nil {
		return s.Lane
	}
	return &Lane{Name: "none", Controls: map[string]string{}}
}
