package service_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

// Many callers who launch, follow, cancel and look while runs end in every way, and
// a service that ends in the middle of it: what was taken has its end.
//
//rlp:holds A53
func TestMuchAtOnce(t *testing.T) {
	log := &memory{}
	h := &host{log: log}
	h.launch = func(ctx context.Context, q *service.Request, b service.Begin) (*launcher.Report, error) {
		k := &teller{log: log, tell: b.Record, head: audit.Head{RunID: b.RunID, Tenant: "t"}}
		k.record(true, &audit.Event{Kind: audit.KindRunStart})
		for range rand.IntN(20) {
			k.record(rand.IntN(4) > 0, nil)
		}
		switch rand.IntN(5) {
		case 0:
			panic("at random")
		case 1:
			return nil, &service.UnavailableError{Why: errors.New("at random")}
		case 2:
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(rand.IntN(3)) * time.Millisecond):
			}
		}
		k.record(true, &audit.Event{Kind: audit.KindRunComplete})
		return report("", q, b, launcher.OK), nil
	}
	s := serve(h, service.Options{Workers: 4, Queue: 16, Retain: 50, Grace: 20 * time.Millisecond})
	var all sync.WaitGroup
	var mu sync.Mutex
	var taken []*service.Run
	for i := range 8 {
		all.Go(func() {
			c := caller(fmt.Sprint("c", i%3), "t")
			for range 60 {
				r, err := s.Submit(t.Context(), c, ask("a"), "")
				var busy *service.BusyError
				if errors.As(err, &busy) {
					s.Runs(t.Context(), c)
					continue
				}
				if errors.Is(err, service.ErrDraining) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				taken = append(taken, r)
				n := len(taken)
				mu.Unlock()
				switch n % 4 {
				case 0:
					gapless(t, s, c, r.ID(), 0, nil)
				case 1:
					if err := s.Cancel(t.Context(), c, r.ID()); err != nil && !errors.Is(err, service.ErrNotFound) {
						t.Error(err)
					}
				}
				if n == 150 {
					all.Go(func() {
						if err := s.Drain(context.Background()); err != nil {
							t.Error(err)
						}
					})
				}
			}
		})
	}
	all.Wait()
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range taken {
		ended(t, r)
		if rep, err := r.Report(new(service.Caller)); (rep == nil) == (err == nil) {
			t.Errorf("%+v: %v, %v", r.State(), rep, err)
		}
	}
	if l := s.Load(); l.Done+l.Refused+l.Failed != uint64(len(taken)) || l.Running+l.Waiting != 0 {
		t.Errorf("%d were taken: %+v", len(taken), l)
	}
	if n := len(s.Runs(t.Context(), caller("x", "t"))); n > 50 {
		t.Errorf("%d are kept", n)
	}
}
