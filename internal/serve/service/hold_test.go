package service_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

// printing is a host whose agents print so much.
func printing(n int) *host {
	return &host{launch: func(_ context.Context, q *service.Request, b service.Begin) (*launcher.Report, error) {
		r := report("", q, b, launcher.OK)
		r.Stdout = strings.Repeat("x", n)
		return r, nil
	}}
}

const aReport = 100 << 10 // more than twenty times what is counted beside the text

// Of reports that somebody waits for and does not read there are no more than the
// share of the caller allows: its next runs wait until one was read, others' do not.
// Controls: reports that nobody waits for hold nothing up, and so does a larger share.
func TestRunsWaitUntilReportsAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		unread int64
		waits  bool
		ends   int // of 12 runs
	}{
		"unread":                  {16 * aReport, true, 4},
		"nobody waits for them":   {16 * aReport, false, 12},
		"a share for all of them": {64 * aReport, true, 12},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(printing(aReport), service.Options{Workers: 1, Queue: 20, Unread: c.unread})
				ann, bob := caller("ann", "t"), caller("bob", "t")
				var runs []*service.Run
				var done []func()
				for range 12 {
					r := submit(t, s, ann, ask("a"))
					if c.waits {
						done = append(done, r.Await(nil))
					}
					runs = append(runs, r)
				}
				over := func() (n int) {
					synctest.Wait()
					for _, r := range runs {
						if st := r.State(); st.Ended() {
							n++
						}
					}
					return n
				}
				if n := over(); n != c.ends {
					t.Fatalf("%d runs of 12 have ended, want %d", n, c.ends)
				}
				ended(t, submit(t, s, bob, ask("b")))
				if c.ends == 12 {
					return
				}
				_, err := runs[0].Reading(ann, nil)
				var busy *service.BusyError
				if !errors.As(err, &busy) || !strings.Contains(busy.Error(), "read them") {
					t.Errorf("one more is read: %v", err)
				}
				if leave, err := runs[0].Reading(bob, nil); err != nil {
					t.Errorf("another caller reads: %v", err)
				} else {
					leave()
				}
				for i, d := range done {
					d()
					d() // twice is once
					if n, want := over(), min(i+5, 12); n != want {
						t.Errorf("%d were read and %d have ended, want %d", i+1, n, want)
					}
				}
				if l := s.Load(); l.Running+l.Waiting != 0 {
					t.Errorf("load %+v", l)
				}
			})
		})
	}
}

// Where the queue has no place a caller is told why.
func TestWhoDoesNotReadIsTold(t *testing.T) {
	s := serve(printing(aReport), service.Options{Workers: 2, Unread: 4 * aReport})
	ann := caller("ann", "t")
	r := submit(t, s, ann, ask("a"))
	done := r.Await(nil)
	ended(t, r)
	_, err := s.Submit(t.Context(), ann, ask("a"), "")
	var busy *service.BusyError
	if !errors.As(err, &busy) || !strings.Contains(busy.Error(), "has not read") || busy.RetryAfter <= 0 {
		t.Errorf("%v", err)
	}
	done()
	ended(t, submit(t, s, ann, ask("a")))
}

// Where all callers together have more than there may be, the oldest of whoever has
// most is cut off, once, and nobody waits for it.
func TestReportsBeyondAllAreCutOff(t *testing.T) {
	s := serve(printing(aReport), service.Options{Workers: 1, Queue: 20, Unread: 4*aReport + aReport/2})
	var cut []string
	wait := func(who string) func() {
		r := submit(t, s, caller(who, "t"), ask("a"))
		done := r.Await(func() { cut = append(cut, who+r.State().StartedAt.String()) })
		ended(t, r)
		s.Load() // what cut does is done under its lock
		return done
	}
	wait("ann")
	wait("ann")
	bob := wait("bob")
	wait("cid")
	if len(cut) != 0 {
		t.Fatalf("cut off within the bound: %v", cut)
	}
	wait("dan")
	if len(cut) != 1 || !strings.HasPrefix(cut[0], "ann") {
		t.Fatalf("cut off: %v", cut)
	}
	bob()
	wait("eve")
	if len(cut) != 1 {
		t.Errorf("cut off though one was read: %v", cut)
	}
}

// What a refusal holds counts among what is kept as a report does.
func TestReasonsAreForgottenAsReportsAre(t *testing.T) {
	refuses := &host{launch: func(context.Context, *service.Request, service.Begin) (*launcher.Report, error) {
		return nil, &service.ViolationError{Violations: []launcher.Violation{{Message: strings.Repeat("x", aReport)}}}
	}}
	s := serve(refuses, service.Options{Workers: 1, Queue: 20, Kept: 10 * aReport})
	ann := caller("ann", "t")
	for range 20 {
		ended(t, submit(t, s, ann, ask("a")))
	}
	reasons := 0
	for _, st := range s.Runs(t.Context(), ann) {
		r, err := s.Run(t.Context(), ann, st.RunID)
		if err != nil {
			t.Fatal(err)
		}
		var policy *service.ViolationError
		if _, err := r.Report(new(service.Caller)); errors.As(err, &policy) {
			reasons++
		} else if !errors.Is(err, service.ErrNotFound) {
			t.Error(err)
		}
	}
	if reasons == 0 || reasons > 5 {
		t.Errorf("%d of 20 are kept, of which ten bound twice as much", reasons)
	}
}
