package mcpserver

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever there is to tell to a client that does not listen, no more waits than
// has a place, and who tells it is not held up. The first of it is told first.
func TestATellerHoldsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listens := make(chan struct{})
		var heard []uint64
		tell := newTeller(t.Context(), time.Now, func(_ context.Context, m told) error {
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
		gone := newTeller(ctx, time.Now, func(context.Context, told) error { times++; return errors.New("nobody is there") })
		for range 3 {
			gone.tell(told{})
			synctest.Wait()
		}
		gone.end(ctx)
		if times != 1 {
			t.Errorf("told %d times", times)
		}
		stuck := newTeller(ctx, time.Now, func(ctx context.Context, _ told) error { <-ctx.Done(); return ctx.Err() })
		stuck.tell(told{})
		synctest.Wait()
		cancel()
		stuck.end(ctx)
	})
}

// What is told in passing is told now and then, and the last of it always, once
// there is time; what matters is told at once, and what is older then is not told
// behind it.
func TestATellerTellsTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var heard []string
		tell := newTeller(t.Context(), time.Now, func(_ context.Context, m told) error {
			heard = append(heard, m.message+" "+time.Since(began).String())
			return nil
		})
		pass := func(d time.Duration) {
			<-time.After(d)
			synctest.Wait()
		}
		for _, m := range []string{"a", "b", "c"} {
			tell.mention(told{message: m})
		}
		pass(time.Second)
		tell.mention(told{message: "d"})
		tell.mention(told{message: "e"})
		tell.tell(told{message: "end"})
		pass(time.Second)
		tell.mention(told{message: "f"})
		pass(tellEach / 2)
		tell.mention(told{message: "g"})
		tell.end(t.Context()) // nothing is told behind it
		pass(time.Second)
		want := []string{"a 0s", "c 100ms", "d 1s", "end 1s", "f 2s"}
		if !slices.Equal(heard, want) {
			t.Errorf("heard %q, want %q", heard, want)
		}
	})
}
