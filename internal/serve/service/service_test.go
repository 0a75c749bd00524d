package service_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

func TestARunGoesThroughItsStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{launch: func(_ context.Context, q *service.Request, b service.Begin) (*launcher.Report, error) {
			b.Event("run.started", map[string]any{"run_id": b.RunID, "agent": "mail", "version": "1.2.3"})
			b.Event("run.compiled", map[string]any{"run_id": b.RunID})
			b.Event("run.running", map[string]any{"run_id": "another"})
			time.Sleep(3 * time.Second)
			return report("", q, b, launcher.Exit), nil
		}}
		s := serve(h, service.Options{Workers: 1, Queue: 1})
		c := caller("ann", "t")
		ctx, cancel := context.WithCancel(t.Context())
		var names []string
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			for e, err := range s.Events(ctx, c, 0) {
				if err != nil {
					t.Error(err)
				}
				names = append(names, e.Name)
			}
		}()
		synctest.Wait()
		q := ask("mail")
		r := submit(t, s, c, q)
		synctest.Wait()
		if st := r.State(); st.State != service.Running || st.Version != "1.2.3" || st.RunID != r.ID() ||
			len(st.TraceID) != 32 || st.Caller != "ann" {
			t.Errorf("running: %+v", st)
		}
		second := submit(t, s, c, ask("mail"))
		if st := second.State(); st.State != service.Queued {
			t.Errorf("second: %+v", st)
		}
		if l := s.Load(); l.Running != 1 || l.Waiting != 1 {
			t.Errorf("load %+v", l)
		}
		if _, err := r.Report(new(service.Caller)); err == nil {
			t.Error("there is a report of a run that has not ended")
		}
		time.Sleep(time.Second)
		if list := s.Runs(t.Context(), c); len(list) != 2 || list[0].RunID != second.ID() || list[0].QueueMS != 1000 ||
			list[1].WallMS != 1000 {
			t.Errorf("runs %+v", list)
		}
		ended(t, second)
		st := r.State()
		if st.State != service.Done || st.Outcome != launcher.Exit || st.WallMS != 3000 || st.QueueMS != 0 {
			t.Errorf("done: %+v", st)
		}
		if st := second.State(); st.QueueMS != 3000 {
			t.Errorf("second: %+v", st)
		}
		if rep, err := r.Report(new(service.Caller)); err != nil || rep.RunID != r.ID() || rep.TraceID != st.TraceID {
			t.Errorf("report %+v, %v", rep, err)
		}
		if q.TraceID != "" {
			t.Error("the caller's request was written to")
		}
		synctest.Wait()
		cancel()
		<-watched
		if got := strings.Join(names[:5], " "); got != "run.queued run.started run.compiled run.queued run.ended" ||
			len(names) != 8 {
			t.Errorf("events %v", names)
		}
		if l := s.Load(); l.Running != 0 || l.Done != 2 {
			t.Errorf("load %+v", l)
		}
	})
}

// Who resumes behind a number that a service before gave out, by a clock that went
// back since, is told what there is instead of nothing for ever.
func TestANumberOfTheFutureIsNotWaitedFor(t *testing.T) {
	s := serve(&host{}, service.Options{Workers: 1})
	c := caller("ann", "t")
	ended(t, submit(t, s, c, ask("a")))
	for _, after := range []uint64{1, 1 << 62} { // 1 is the control
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		var names []string
		for e, err := range s.Events(ctx, c, after) {
			if err != nil {
				t.Fatal(err)
			}
			if names = append(names, e.Name); e.Name == "run.ended" {
				break
			}
		}
		cancel()
		if len(names) == 0 || names[0] != "run.queued" {
			t.Errorf("behind %d: %v", after, names)
		}
	}
}

// What waits is bounded, and who is turned away is told when to come again.
func TestTheQueueIsBounded(t *testing.T) {
	p := newStage()
	s := serve(&host{launch: p.launch}, service.Options{Workers: 2, Queue: 3, Grace: time.Minute})
	c := caller("ann", "t")
	for range 5 {
		submit(t, s, c, ask("a"))
	}
	_, err := s.Submit(t.Context(), c, ask("a"), "")
	var busy *service.BusyError
	if !errors.As(err, &busy) || busy.RetryAfter < time.Second || busy.RetryAfter > time.Minute {
		t.Fatalf("the sixth: %v", err)
	}
	if l := s.Load(); l.Running != 2 || l.Waiting != 3 || l.Busy != 1 {
		t.Errorf("load %+v", l)
	}
	close(p.release)
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l := s.Load(); l.Done != 5 {
		t.Errorf("load %+v", l)
	}
}

// What waits is bounded in bytes too.
func TestLargeRequestsTakeMoreRoom(t *testing.T) {
	p := newStage()
	s := serve(&host{launch: p.launch}, service.Options{Workers: 1, Queue: 1000})
	c := caller("ann", "t")
	q := ask("")
	q.Bundle = make([]byte, 64<<20)
	n := 0
	for ; n < 100; n++ {
		if _, err := s.Submit(t.Context(), c, q, ""); err != nil {
			break
		}
	}
	if n < 2 || n > 5 {
		t.Errorf("%d requests of 64 MiB were taken", n)
	}
	if _, err := s.Submit(t.Context(), c, ask("a"), ""); err != nil {
		t.Errorf("a small one: %v", err)
	}
	close(p.release)
}

// Who asks for much waits for it, and those who ask for little do not: tenants take
// turns, and callers of a tenant.
func TestCallersTakeTurns(t *testing.T) {
	p := newStage()
	s := serve(&host{launch: p.launch}, service.Options{Workers: 1, Queue: 100, Grace: time.Minute})
	submit(t, s, caller("x", "t0"), ask("first"))
	<-p.begun
	for i := range 3 {
		submit(t, s, caller("ann", "t1"), ask(fmt.Sprint("ann", i)))
	}
	for i := range 2 {
		submit(t, s, caller("bob", "t1"), ask(fmt.Sprint("bob", i)))
	}
	submit(t, s, caller("ann", "t2"), ask("other0"))
	close(p.release)
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := p.all(), "first ann0 other0 bob0 ann1 bob1 ann2"; got != want {
		t.Errorf("order %q, want %q", got, want)
	}
}

// The last places are not for who has the others already.
func TestOneCallerCannotFillTheQueue(t *testing.T) {
	p := newStage()
	s := serve(&host{launch: p.launch}, service.Options{Workers: 1, Queue: 16})
	greedy, modest := caller("greedy", "t"), caller("modest", "t")
	n := 0
	for ; n < 50; n++ {
		if _, err := s.Submit(t.Context(), greedy, ask("a"), ""); err != nil {
			break
		}
	}
	if n != 15 { // one runs
		t.Errorf("%d were taken", n)
	}
	_, err := s.Submit(t.Context(), greedy, ask("a"), "")
	if want := "14 requests of this caller wait for a worker, and no more of one may while the queue is nearly full: an " +
		"eighth of [serve] queue = 16 in config.toml"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	submit(t, s, modest, ask("b"))
	submit(t, s, modest, ask("b"))
	var busy *service.BusyError
	if _, err := s.Submit(t.Context(), modest, ask("b"), ""); !errors.As(err, &busy) || !strings.HasPrefix(err.Error(),
		"16 requests wait for a worker, as many as may: [serve] queue in config.toml; ask again in ") {
		t.Errorf("a full queue: %v", err)
	}
	close(p.release)
}

// A request that is refused is not queued: what is wrong with it goes back by field.
//
//rlp:holds A54
func TestSubmitRefuses(t *testing.T) {
	why := service.FieldErrors{{Field: "limits.max_steps", Why: "must be a number"}}
	launched := false
	h := &host{check: func(*service.Request) error { return why }, launch: func(context.Context, *service.Request,
		service.Begin,
	) (*launcher.Report, error) {
		launched = true
		return nil, nil
	}}
	s := serve(h, service.Options{Workers: 1, Queue: 1, Now: func() time.Time { return time.Unix(1000, 0) }})
	var fields service.FieldErrors
	if _, err := s.Submit(t.Context(), caller("ann", "t"), ask("a"), ""); !errors.As(err, &fields) {
		t.Errorf("checked: %v", err)
	}
	h.check = nil
	for name, c := range map[string]*service.Caller{
		"nobody":  nil,
		"reader":  {Name: "ann", Tenant: "t", May: service.Read},
		"nowhere": {Name: "ann", May: every},
		"expired": {Name: "ann", Tenant: "t", May: every, Until: time.Unix(1000, 0)},
	} {
		if _, err := s.Submit(t.Context(), c, ask("a"), ""); !errors.Is(err, service.ErrForbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if launched || len(s.Runs(t.Context(), caller("ann", "t"))) != 0 {
		t.Error("something was launched")
	}
}

// One tenant's runs are not there for another, nor others' runs for who may only
// launch.
func TestWhoSeesARun(t *testing.T) {
	p := newStage()
	s := serve(&host{launch: p.launch}, service.Options{Workers: 1, Queue: 10})
	r := submit(t, s, caller("ann", "t"), ask("a"))
	for _, c := range []struct {
		who                    *service.Caller
		seen, cancelled, input error
	}{
		{caller("ann", "other"), service.ErrNotFound, service.ErrNotFound, service.ErrNotFound},
		{nil, service.ErrNotFound, service.ErrNotFound, service.ErrNotFound},
		{
			&service.Caller{Name: "bob", Tenant: "t", May: service.Launch}, service.ErrNotFound, service.ErrNotFound,
			service.ErrNotFound,
		},
		{
			&service.Caller{Name: "bob", Tenant: "t", May: service.Launch | service.Read}, nil, service.ErrForbidden,
			service.ErrForbidden,
		},
		{&service.Caller{Name: "ann", Tenant: "t", May: service.Read}, nil, service.ErrForbidden, service.ErrForbidden},
	} {
		if _, err := s.Run(t.Context(), c.who, r.ID()); !errors.Is(err, c.seen) {
			t.Errorf("%+v sees: %v", c.who, err)
		}
		if n := len(s.Runs(t.Context(), c.who)); (n == 1) != (c.seen == nil) {
			t.Errorf("%+v sees %d runs", c.who, n)
		}
		if err := s.Cancel(t.Context(), c.who, r.ID()); !errors.Is(err, c.cancelled) {
			t.Errorf("%+v cancels: %v", c.who, err)
		}
		if err := s.Send(t.Context(), c.who, r.ID(), []byte(`1`), false); !errors.Is(err, c.input) {
			t.Errorf("%+v sends: %v", c.who, err)
		}
		for _, err := range s.Records(t.Context(), c.who, r.ID(), 0) {
			if c.seen != nil && !errors.Is(err, c.seen) {
				t.Errorf("%+v follows: %v", c.who, err)
			}
		}
	}
	// The control: who may, does.
	if err := s.Cancel(t.Context(), &service.Caller{Name: "ann", Tenant: "t", May: service.Launch}, r.ID()); err != nil {
		t.Error(err)
	}
	if st := ended(t, r); st.Outcome != launcher.Cancelled {
		t.Errorf("%+v", st)
	}
}

// Nothing grows without bound: the oldest of what has ended is forgotten, and
// reports before that. Who holds a run has its report.
func TestWhatIsKeptIsBounded(t *testing.T) {
	h := &host{launch: func(_ context.Context, q *service.Request, b service.Begin) (*launcher.Report, error) {
		rep := report("", q, b, launcher.OK)
		rep.Stdout = strings.Repeat("x", 20<<20)
		return rep, nil
	}}
	s := serve(h, service.Options{Workers: 1, Queue: 10, Retain: 5})
	c := caller("ann", "t")
	var runs []*service.Run
	for range 8 {
		r, err := s.Submit(t.Context(), c, ask("a"), fmt.Sprint("key", len(runs)))
		if err != nil {
			t.Fatal(err)
		}
		ended(t, r)
		runs = append(runs, r)
	}
	if err := s.Drain(t.Context()); err != nil { // and is counted
		t.Fatal(err)
	}
	reports := 0
	for i, r := range runs {
		if rep, err := r.Report(new(service.Caller)); err != nil || len(rep.Stdout) != 20<<20 {
			t.Errorf("run %d lost its report under its holder: %v", i, err)
		}
		kept, err := s.Run(t.Context(), c, r.ID())
		if (err == nil) != (i >= 3) {
			t.Errorf("run %d: %v", i, err)
		}
		if err != nil {
			continue
		}
		ended(t, kept)
		if rep, err := kept.Report(new(service.Caller)); err == nil && rep != nil {
			reports++
		} else if !errors.Is(err, service.ErrNotFound) || kept.State().Outcome != launcher.OK {
			t.Errorf("run %d: %v, %+v", i, err, kept.State())
		}
		if err := s.Cancel(t.Context(), c, r.ID()); err != nil {
			t.Error(err)
		}
	}
	if reports != 3 {
		t.Errorf("%d reports of 20 MiB are kept", reports)
	}
}
