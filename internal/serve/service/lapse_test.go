package service_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

// told is how launches end that are ended.
func told(ctx context.Context, q *service.Request, b service.Begin) (*launcher.Report, error) {
	select {
	case <-time.After(90 * time.Second):
		return report("", q, b, launcher.OK), nil
	case <-ctx.Done():
		r := report("", q, b, launcher.Cancelled)
		r.Message = context.Cause(ctx).Error()
		return r, nil
	}
}

// The runs of who is nobody any more end with their proof, and those that wait
// begin no more. Another caller's are the control.
func TestRunsEndWithTheirCallersProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int32
		s := serve(&host{launch: func(ctx context.Context, q *service.Request, b service.Begin) (*launcher.Report, error) {
			begun.Add(1)
			return told(ctx, q, b)
		}}, service.Options{Workers: 2, Queue: 10})
		var revoked atomic.Bool
		c := may("token:ci", "t", service.Launch)
		c.Still = func() error {
			if revoked.Load() {
				return errors.New("the token is revoked")
			}
			return nil
		}
		other := may("token:other", "t", service.Launch)
		running, kept, waiting := submit(t, s, c, ask("a")), submit(t, s, other, ask("b")), submit(t, s, c, ask("c"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if running.State().State != service.Running || waiting.State().State != service.Queued {
			t.Fatalf("while it is good: %+v, %+v", running.State(), waiting.State())
		}
		revoked.Store(true)
		time.Sleep(time.Second)
		synctest.Wait()
		for _, r := range []*service.Run{running, waiting} {
			if st := r.State(); st.State != service.Done || st.Outcome != launcher.Cancelled || !strings.Contains(st.Message,
				"the token is revoked") {
				t.Errorf("a second after it was revoked: %+v", st)
			}
		}
		if n := begun.Load(); n != 2 {
			t.Errorf("%d runs began", n)
		}
		if st := ended(t, kept); st.Outcome != launcher.OK {
			t.Errorf("another caller's: %+v", st)
		}
	})
}

// What waits does not begin when its caller expired in the moment that a worker
// came free, however long ago it was looked at.
func TestNothingBeginsForWhoHasExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newStage()
		s := serve(&host{launch: p.launch}, service.Options{Workers: 1, Queue: 10})
		first := submit(t, s, may("token:x", "t", service.Launch), ask("first"))
		c := may("token:ci", "t", service.Launch)
		c.Until = time.Now().Add(500 * time.Millisecond)
		late, inTime := submit(t, s, c, ask("late")), submit(t, s, may("token:y", "t", service.Launch), ask("control"))
		time.Sleep(600 * time.Millisecond)
		close(p.release)
		ended(t, first)
		if st := ended(t, late); st.Outcome != launcher.Cancelled || !strings.Contains(st.Message, "expired") {
			t.Errorf("%+v", st)
		}
		if st := ended(t, inTime); st.Outcome != launcher.OK || p.all() != "first control" {
			t.Errorf("%+v; %s", st, p.all())
		}
	})
}
