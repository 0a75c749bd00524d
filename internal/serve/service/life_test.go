package service_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

// asks again is the same run; another request, caller or tenant is another.
func TestKeysMakeItSafeToAskAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks := 0
		s := serve(&host{check: func(*service.Request) error { checks++; return nil }}, service.Options{
			Workers: 1,
			Queue:   10,
		})
		ann := caller("ann", "t")
		first, err := s.Submit(t.Context(), ann, ask("a"), "k")
		if err != nil {
			t.Fatal(err)
		}
		again := ask("a")
		again.TraceID = strings.Repeat("ab", 16)
		if r, err := s.Submit(t.Context(), ann, again, "k"); err != nil || r.ID() != first.ID() || checks != 1 {
			t.Errorf("again: %v, %v", r, err)
		}
		changed := ask("a")
		changed.Bundle = []byte("x")
		for _, q := range []*service.Request{ask("b"), changed} {
			if _, err := s.Submit(t.Context(), ann, q, "k"); !errors.Is(err, service.ErrConflict) {
				t.Errorf("another request: %v", err)
			}
		}
		for _, c := range []*service.Caller{caller("bob", "t"), caller("ann", "t2")} {
			if r, err := s.Submit(t.Context(), c, ask("b"), "k"); err != nil || r.ID() == first.ID() {
				t.Errorf("%s of %s: %v", c.Name, c.Tenant, err)
			}
		}
		if _, err := s.Submit(t.Context(), ann, ask("a"), strings.Repeat("k", 256)); err == nil {
			t.Error("a key of 256 bytes was taken")
		}
		time.Sleep(24*time.Hour - time.Second)
		if r, err := s.Submit(t.Context(), ann, ask("a"), "k"); err != nil || r.ID() != first.ID() {
			t.Errorf("within a day: %v", err)
		}
		time.Sleep(2 * time.Second)
		if r, err := s.Submit(t.Context(), ann, ask("b"), "k"); err != nil || r.ID() == first.ID() {
			t.Errorf("after a day: %v", err)
		}
	})
}

// One key that comes many times at once is one run.
func TestAKeyAtOnce(t *testing.T) {
	s := serve(&host{}, service.Options{Workers: 4, Queue: 100})
	ids := make([]string, 32)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			if r, err := s.Submit(t.Context(), caller("ann", "t"), ask("a"), "k"); err != nil {
				t.Error(err)
			} else {
				ids[i] = r.ID()
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("runs %v", ids)
		}
	}
}

// A run that waits is cancelled without being launched; one under way by its
// context; one that has ended stays as it is.
func TestCancel(t *testing.T) {
	p := newStage()
	s := serve(&host{launch: p.launch}, service.Options{Workers: 1, Queue: 10})
	c := caller("ann", "t")
	running, waiting := submit(t, s, c, ask("a")), submit(t, s, c, ask("b"))
	<-p.begun
	if err := s.Cancel(t.Context(), c, waiting.ID()); err != nil {
		t.Fatal(err)
	}
	st := ended(t, waiting)
	if rep, err := waiting.Report(new(service.Caller)); err != nil || rep.Outcome != launcher.Cancelled ||
		rep.RunID != waiting.ID() || st.ExitCode != launcher.StatusCancelled {
		t.Errorf("waiting: %+v, %v", rep, err)
	}
	if l := s.Load(); l.Running != 1 || l.Waiting != 0 {
		t.Errorf("load %+v", l)
	}
	for range 2 {
		if err := s.Cancel(t.Context(), c, running.ID()); err != nil {
			t.Fatal(err)
		}
		if st := ended(t, running); st.State != service.Done || st.Outcome != launcher.Cancelled {
			t.Errorf("running: %+v", st)
		}
	}
	if p.all() != "a" {
		t.Errorf("launched %q", p.all())
	}
	if err := s.Cancel(t.Context(), c, "0190a5b0-0000-7000-8000-000000000000"); !errors.Is(err, service.ErrNotFound) {
		t.Error(err)
	}
}

// A service that ends takes nothing more, lets what it has go on for the time of
// grace, cancels the rest, and waits for its reports.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{launch: func(ctx context.Context, q *service.Request, b service.Begin) (*launcher.Report, error) {
			d := map[string]time.Duration{"short": time.Second, "long": time.Hour}[q.Agent]
			select {
			case <-time.After(d):
				return report("", q, b, launcher.OK), nil
			case <-ctx.Done():
				time.Sleep(time.Second) // it is recorded
				return report("", q, b, launcher.Cancelled), nil
			}
		}}
		s := serve(h, service.Options{Workers: 2, Queue: 10, Grace: 10 * time.Second})
		c := caller("ann", "t")
		var runs []*service.Run
		for _, a := range []string{"short", "long", "short", "long", "long"} {
			r, err := s.Submit(t.Context(), c, ask(a), "key"+fmt.Sprint(len(runs)))
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, r)
		}
		begun := time.Now()
		done := make(chan error, 2)
		for range 2 {
			go func() { done <- s.Drain(t.Context()) }()
		}
		synctest.Wait()
		if _, err := s.Submit(t.Context(), c, ask("short"), ""); !errors.Is(err, service.ErrDraining) || !s.Load().Draining {
			t.Errorf("while it drains: %v", err)
		}
		if r, err := s.Submit(t.Context(), c, ask("short"), "key0"); err != nil || r.ID() != runs[0].ID() {
			t.Errorf("what was asked before: %v", err)
		}
		if err := errors.Join(<-done, <-done); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 11*time.Second {
			t.Errorf("it took %v", took)
		}
		for i, want := range []launcher.Outcome{
			launcher.OK, launcher.Cancelled, launcher.OK, launcher.Cancelled,
			launcher.Cancelled,
		} {
			rep, err := runs[i].Report(new(service.Caller))
			if err != nil || rep.Outcome != want {
				t.Errorf("run %d: %+v, %v", i, rep, err)
			}
		}
		if err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A drain that may not wait cancels at once and says what is left.
func TestDrainInAHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{launch: func(ctx context.Context, q *service.Request, b service.Begin) (*launcher.Report, error) {
			<-ctx.Done()
			time.Sleep(30 * time.Second)
			return report("", q, b, launcher.Cancelled), nil
		}}
		s := serve(h, service.Options{Workers: 1, Queue: 10, Grace: time.Hour})
		r := submit(t, s, caller("ann", "t"), ask("a"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 runs") {
			t.Errorf("%v", err)
		}
		ended(t, r)
	})
}

// count is a mistake.
func count(of map[string]int) { of["x"]++ }

// misdeeds are launches that do not go well.
func misdeeds() map[string]struct {
	launch func() (*launcher.Report, error)
	state  string
} {
	type c = struct {
		launch func() (*launcher.Report, error)
		state  string
	}
	return map[string]c{
		"panics":       {func() (*launcher.Report, error) { panic("input open sesame") }, service.Failed},
		"faults":       {func() (*launcher.Report, error) { count(nil); return nil, nil }, service.Failed},
		"leaves":       {func() (*launcher.Report, error) { runtime.Goexit(); return nil, nil }, service.Failed},
		"says nothing": {func() (*launcher.Report, error) { return nil, nil }, service.Failed},
		"breaks": {
			func() (*launcher.Report, error) { return nil, errors.New("/home/op/secret.toml: open sesame") },
			service.Failed,
		},
		"is unavailable": {
			func() (*launcher.Report, error) { return nil, &service.UnavailableError{Why: io.ErrShortWrite} },
			service.Failed,
		},
		"is refused": {func() (*launcher.Report, error) {
			return nil, &service.ViolationError{Violations: []launcher.Violation{{Message: "x"}}}
		}, service.Refused},
		"is malformed": {func() (*launcher.Report, error) {
			return nil, service.FieldErrors{{Field: "bundle", Why: "is none"}}
		}, service.Refused},
	}
}

// A job that is refused or breaks never harms the worker that had it, and is never
// left "running".
//
//rlp:holds A53
func TestABrokenJobHarmsNobody(t *testing.T) {
	bad := misdeeds()
	h := &host{launch: func(_ context.Context, q *service.Request, b service.Begin) (*launcher.Report, error) {
		if m, is := bad[q.Agent]; is {
			return m.launch()
		}
		return report("", q, b, launcher.OK), nil
	}}
	var log bytes.Buffer
	s := serve(h, service.Options{Workers: 1, Queue: 100, Log: slog.New(slog.NewJSONHandler(&log, nil))})
	c := caller("ann", "t")
	var refused, failed uint64
	for name, m := range bad {
		r := submit(t, s, c, ask(name))
		after := submit(t, s, c, ask("good"))
		if st := ended(t, r); st.State != m.state || strings.Contains(st.Message, "sesame") {
			t.Errorf("one that %s is %s: %s", name, st.State, st.Message)
		}
		if _, err := r.Report(new(service.Caller)); err == nil {
			t.Errorf("one that %s has a report", name)
		}
		if st := ended(t, after); st.State != service.Done {
			t.Errorf("behind one that %s: %+v", name, st)
		}
		if m.state == service.Failed {
			failed++
		} else {
			refused++
		}
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l := s.Load(); l.Running != 0 || l.Done != uint64(len(bad)) || l.Failed != failed || l.Refused != refused {
		t.Errorf("load %+v", l)
	}
	text := log.String()
	if !strings.Contains(text, "life_test.go") || !strings.Contains(text, "assignment to entry in nil map") ||
		!strings.Contains(text, "panic of type string") {
		t.Errorf("the log does not say what broke and where: %s", text)
	}
	if strings.Contains(text, "sesame") {
		t.Errorf("the log quotes what a run was given: %s", text)
	}
}

// The control of TestABrokenJobHarmsNobody: a worker that does the same jobs
// without the service's care is gone after the first, and leaves the next "running"
// for ever.
func TestAWorkerWithoutCareIsHarmed(t *testing.T) {
	for name, m := range misdeeds() {
		if name != "panics" && name != "faults" && name != "leaves" {
			continue
		}
		jobs := make(chan func() (*launcher.Report, error), 2)
		jobs <- m.launch
		jobs <- func() (*launcher.Report, error) { return nil, nil }
		close(jobs)
		gone := make(chan struct{})
		done := 0
		go func() {
			defer close(gone)
			defer func() { recover() }() //nolint:errcheck // or the test would end with it
			for job := range jobs {
				job() //nolint:errcheck // as a careless worker does
				done++
			}
		}()
		<-gone
		if done != 0 || len(jobs) != 1 {
			t.Errorf("one that %s did no harm: %d were done", name, done)
		}
	}
}

// A run that takes turns is sent its inputs while it goes on.
func TestTurns(t *testing.T) {
	got := make(chan string, 100)
	h := &host{launch: func(ctx context.Context, q *service.Request, b service.Begin) (*launcher.Report, error) {
		if b.Inputs == nil {
			<-ctx.Done()
			return report("", q, b, launcher.Cancelled), nil
		}
		for {
			p, err := b.Inputs.Next(ctx)
			if errors.Is(err, io.EOF) {
				return report("", q, b, launcher.OK), nil
			}
			if err != nil {
				return report("", q, b, launcher.Cancelled), nil
			}
			got <- string(p)
		}
	}}
	s := serve(h, service.Options{Workers: 4})
	c := caller("ann", "t")
	q := ask("a")
	q.Turns = true
	r := submit(t, s, c, q)
	send := func(id, input string, last bool) error {
		if input == "" {
			return s.Send(t.Context(), c, id, nil, last)
		}
		return s.Send(t.Context(), c, id, []byte(input), last)
	}
	for _, in := range []string{`1`, `{"a":2}`} {
		if err := send(r.ID(), in, false); err != nil || <-got != in {
			t.Fatal(in, err)
		}
	}
	if err := send(r.ID(), "", false); err == nil {
		t.Error("nothing was sent")
	}
	if err := send(r.ID(), `3`, true); err != nil || <-got != `3` {
		t.Fatal(err)
	}
	if st := ended(t, r); st.Outcome != launcher.OK {
		t.Errorf("%+v", st)
	}
	if err := send(r.ID(), `4`, false); err == nil {
		t.Error("a run that has ended took an input")
	}
	single := submit(t, s, c, ask("a"))
	var fields service.FieldErrors
	if err := send(single.ID(), `4`, false); !errors.As(err, &fields) {
		t.Errorf("a run of one input took another: %v", err)
	}
	waiting := submit(t, s, c, q)
	if err := errors.Join(s.Cancel(t.Context(), c, waiting.ID()), s.Cancel(t.Context(), c, single.ID())); err != nil {
		t.Fatal(err)
	}
	if st := ended(t, waiting); st.Outcome != launcher.Cancelled {
		t.Errorf("one that waited for its input: %+v", st)
	}
	ended(t, single)
}

// Inputs that nobody takes are bounded.
func TestInputsAreBounded(t *testing.T) {
	p := newStage()
	s := serve(&host{launch: p.launch}, service.Options{Workers: 1})
	c := caller("ann", "t")
	q := ask("a")
	q.Turns = true
	var busy *service.BusyError
	for _, size := range []int{1, 1 << 20} {
		r := submit(t, s, c, q)
		n := 0
		var err error
		for ; err == nil && n < 1000; n++ {
			err = s.Send(t.Context(), c, r.ID(), make([]byte, size), false)
		}
		if !errors.As(err, &busy) || n > 65 || n*size > 10<<20 {
			t.Errorf("%d inputs of %d bytes were taken: %v", n, size, err)
		}
		if err := s.Cancel(t.Context(), c, r.ID()); err != nil {
			t.Fatal(err)
		}
		ended(t, r)
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		s = serve(&host{launch: p.launch}, service.Options{Workers: 1})
	}
}

// A run that rlp itself failed in is one that this host could not do, with its
// report; the control is an agent that trapped.
func TestAFaultOfTheHostIsAFailedRun(t *testing.T) {
	for outcome, want := range map[launcher.Outcome]string{launcher.Trap: service.Done, launcher.Fault: service.Failed} {
		h := &host{launch: func(_ context.Context, q *service.Request, b service.Begin) (*launcher.Report, error) {
			return report("", q, b, outcome), nil
		}}
		s := serve(h, service.Options{Workers: 1})
		r := submit(t, s, caller("ann", "t"), ask("a"))
		if st := ended(t, r); st.State != want || st.Outcome != outcome {
			t.Errorf("%s: %+v", outcome, st)
		}
		if rep, err := r.Report(new(service.Caller)); err != nil || rep.Outcome != outcome {
			t.Errorf("%s: %v, %v", outcome, rep, err)
		}
		if l := s.Load(); l.Failed != uint64(map[bool]int{true: 1}[want == service.Failed]) {
			t.Errorf("%s: %+v", outcome, l)
		}
	}
}
