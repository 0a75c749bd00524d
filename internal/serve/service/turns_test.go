package service_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

// talking is a host whose runs wait for inputs, one after the other, and end as
// launches do.
func talking(got chan<- string) *host {
	return &host{launch: func(ctx context.Context, q *service.Request, b service.Begin) (*launcher.Report, error) {
		if b.Inputs == nil {
			return report("", q, b, launcher.OK), nil
		}
		for {
			p, err := b.Inputs.Next(ctx)
			if ctx.Err() != nil {
				r := report("", q, b, launcher.Cancelled)
				r.Message = context.Cause(ctx).Error()
				return r, nil
			}
			if err != nil {
				return report("", q, b, launcher.OK), nil
			}
			got <- string(p)
		}
	}}
}

// may is a caller that does not operate.
func may(name, tenant string, r service.Rights) *service.Caller {
	return &service.Caller{Name: name, Tenant: tenant, May: r}
}

func turns(agent string) *service.Request {
	q := ask(agent)
	q.Turns = true
	return q
}

// A run that waits for an input does not wait for ever. What comes in time is the
// control, and each input gives it the whole time anew.
func TestAWaitForAnInputIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan string, 1)
		s := serve(talking(got), service.Options{Workers: 4, TurnIdle: 10 * time.Minute})
		c := may("token:a", "t", service.Launch)
		r := submit(t, s, c, turns("a"))
		for range 3 {
			time.Sleep(9 * time.Minute)
			if err := s.Send(t.Context(), c, r.ID(), []byte(`1`), false); err != nil {
				t.Fatal(err)
			}
			<-got
		}
		time.Sleep(10*time.Minute - time.Second)
		synctest.Wait()
		if st := r.State(); st.State != service.Running {
			t.Fatalf("before its time: %+v", st)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		st := r.State()
		if st.State != service.Done || st.Outcome != launcher.Cancelled || !strings.Contains(st.Message, "turn_idle") {
			t.Errorf("after ten minutes without an input: %+v", st)
		}
		if l := s.Load(); l.Running != 0 {
			t.Errorf("it still holds a worker: %+v", l)
		}
	})
}

// Runs that wait hold workers: one caller has half of them so at most, and all of
// them together leave one. Runs that take no turns are the control.
func TestOneCallerCannotHoldEveryWorker(t *testing.T) {
	s := serve(talking(nil), service.Options{Workers: 4, Queue: 10})
	greedy, other, third := may("token:greedy", "t", service.Launch), may("token:other", "t", service.Launch),
		may("token:greedy", "t2", service.Launch)
	var last *service.Run
	for range 2 {
		last = submit(t, s, greedy, turns("a"))
	}
	busy := func(c *service.Caller, why string) {
		t.Helper()
		var e *service.BusyError
		if _, err := s.Submit(t.Context(), c, turns("a"), ""); !errors.As(err, &e) || e.RetryAfter <= 0 ||
			!strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	busy(greedy, "this caller has 2 runs that take turns")
	ended(t, submit(t, s, greedy, ask("plain")))
	submit(t, s, third, turns("a")) // of its name, of another tenant
	busy(other, "the last worker is for others")
	ended(t, submit(t, s, other, ask("plain")))
	if err := s.Send(t.Context(), greedy, last.ID(), nil, true); err != nil {
		t.Fatal(err)
	}
	ended(t, last)
	ended(t, submit(t, s, greedy, ask("plain")))
	submit(t, s, greedy, turns("a"))
	busy(greedy, "this caller has 2 runs that take turns")
}

// The one worker of a service is not for who would keep it, unless they operate.
func TestTheOnlyWorkerIsNotKept(t *testing.T) {
	s := serve(talking(nil), service.Options{Workers: 1, Queue: 10})
	var fields service.FieldErrors
	if _, err := s.Submit(t.Context(), may("token:a", "t", service.Launch), turns("a"), ""); !errors.As(err, &fields) ||
		fields[0].Field != "turns" {
		t.Errorf("a token's: %v", err)
	}
	submit(t, s, caller("user:1000", "t"), turns("a"))
}
