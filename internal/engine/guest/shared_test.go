package guest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/engine/guest/hostiletest"
)

// What a run writes into its memory, its globals and its tables is its own: who
// runs beside it in the same code, and who runs after it, finds none of it.
//
//rlp:holds K4
func TestRunsOfOneCodeShareNothingThatTheyWrite(t *testing.T) {
	s := newShelf(t, 0)
	var seen []uint64
	see := abi.Func{Module: "m", Name: "see", Params: []abi.Type{abi.I32}, Call: func(_ context.Context, _ []byte,
		stack []uint64,
	) error {
		seen = append(seen, stack[0])
		return nil
	}}
	entered, leave := make(chan struct{}), make(chan struct{})
	park := host("park", func(context.Context, []byte) error {
		entered <- struct{}{}
		<-leave
		return nil
	})
	load := func(at uint32) []byte { return slices.Concat(i32(at), []byte{opLoad, 2, 0}, call(0)) }
	store := func(at uint32) []byte { return slices.Concat(i32(at), i32(7), []byte{0x36, 2, 0}) }
	const near, far = 8, 3 << 16 // far is in memory that it has only when it has grown
	m := module{
		imports: []imported{importOf(see), importOf(park)}, pages: 1, maxPages: 8,
		code: slices.Concat(load(near), store(near), grow(4), load(far), store(far), load(near), load(far), call(1)),
	}
	want := []uint64{0, 0, 7, 7} // the last two are the control: what is written is there
	var wg sync.WaitGroup
	for range 3 {
		mod := compile(t, s.config("acme", m, see, park))
		wg.Go(func() {
			if end := mod.Run(t.Context(), guest.RunConfig{Wall: wide}); end.Kind != guest.OK {
				t.Errorf("%+v", end)
			}
		})
		<-entered // and stays, with all that it has written
		if !slices.Equal(seen, want) {
			t.Errorf("it found %v, want %v", seen, want)
		}
		seen = nil
	}
	close(leave)
	wg.Wait()
	go func() { <-entered }()
	again := compile(t, s.config("acme", m, see, park))
	if end := again.Run(t.Context(), guest.RunConfig{Wall: wide}); end.Kind != guest.OK || !again.Cached() ||
		!slices.Equal(seen, want) {
		t.Errorf("%+v found %v", end, seen)
	}
}

// An idler is a guest that waits in a call, as an agent waits for its next turn.
type idler struct {
	mod *guest.Module
	end chan guest.End
}

func idlers(t *testing.T, s *shelf, n int, leave <-chan struct{}) []idler {
	t.Helper()
	entered := make(chan struct{})
	park := host("park", func(ctx context.Context, mem []byte) error {
		mem[100] = 42
		entered <- struct{}{}
		select {
		case <-leave:
		case <-ctx.Done():
		}
		if mem[100] != 42 {
			return errors.New("somebody wrote into its memory")
		}
		return nil
	})
	list := make([]idler, n)
	for i := range list {
		list[i] = idler{compile(t, s.config("acme", module{pages: 1, imports: []imported{importOf(park)}, code: call(0)},
			park)), make(chan guest.End, 1)}
		go func() { list[i].end <- list[i].mod.Run(t.Context(), guest.RunConfig{Wall: minute}) }()
		<-entered
	}
	return list
}

// Attacks that share a library with idle guests, and with runs of themselves,
// end as they do alone, after the same fuel; and the idle ones go on as if nothing
// had been.
//
//rlp:holds K27 K73
func TestAttacksEndTheSameInALibrary(t *testing.T) {
	s, leave := newShelf(t, 0), make(chan struct{})
	n, attacks := 50, hostiletest.Runs()
	if testing.Short() {
		n, attacks = 5, slices.DeleteFunc(attacks, func(a hostiletest.Attack) bool { return len(a.Bytes()) > 200 })
	}
	idle := idlers(t, s, n, leave)
	cache := newCache(t)
	for _, a := range attacks {
		wasm := a.Bytes()
		end := func(lib *guest.Library) string {
			sys, err := wasi.New(wasi.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer sys.Close()
			mod, err := guest.Compile(t.Context(), guest.Config{
				Module: wasm, Funcs: sys.Funcs(), MemoryBytes: 64 << 20, Compiler: os.Executable, CacheDir: cache, Library: lib,
				Scope: "acme",
			})
			if err != nil {
				return err.Error()
			}
			defer mod.Close()
			return whole(mod.Run(t.Context(), guest.RunConfig{Wall: minute, Fuel: new(int64(3_000_001))}))
		}
		want := end(nil)
		for range 2 {
			if got := end(s.Library); got != want {
				t.Errorf("%s: alone %s, in a library %s", a.Name, want, got)
			}
		}
	}
	for _, i := range idle {
		select {
		case end := <-i.end:
			t.Fatalf("an idle guest ended with the others: %+v", end)
		default:
		}
	}
	close(leave)
	for _, i := range idle {
		if end := <-i.end; end.Kind != guest.OK {
			t.Errorf("an idle guest: %+v", end)
		}
	}
}

// whole is all of an end that does not depend on the clock.
func whole(e guest.End) string {
	return fmt.Sprint(e.Kind, e.ExitCode, e.Trap, e.PeakMemory, e.Fuel, e.Abandoned)
}
