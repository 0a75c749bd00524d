package mcpserver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// Whatever there is to tell to a client that does not listen, no more waits than
// has a place, and who tells it is not held up. The first of it is told first.
func TestATellerHoldsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listens := make(chan struct{})
		var heard []uint64
		tell := newTeller(t.Context(), func(_ context.Context, m told) error {
			<-listens
			heard = append(heard, m.n)
			return nil
		})
		for n := range uint64(1_000_000) {
			if n < 2 {
				synctest.Wait() // the first is in its hands
			}
			tell.tell(told{n: n})
			if len(tell.waits) > mostUntold || cap(tell.waits) != mostUntold {
				t.Fatalf("%d of %d wait", len(tell.waits), cap(tell.waits))
			}
		}
		close(listens)
		tell.end(t.Context())
		if len(heard) != mostUntold+1 || heard[0] != 0 || heard[mostUntold] != mostUntold {
			t.Errorf("heard %v", heard)
		}
	})
}

// Nobody is told anything behind an error, or when it is over.
func TestATellerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		times := 0
		gone := newTeller(ctx, func(context.Context, told) error { times++; return errors.New("nobody is there") })
		for range 3 {
			gone.tell(told{})
			synctest.Wait()
		}
		gone.end(ctx)
		if times != 1 {
			t.Errorf("told %d times", times)
		}
		stuck := newTeller(ctx, func(ctx context.Context, _ told) error { <-ctx.Done(); return ctx.Err() })
		stuck.tell(told{})
		synctest.Wait()
		cancel()
		stuck.end(ctx)
	})
}
