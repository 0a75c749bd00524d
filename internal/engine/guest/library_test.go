package guest_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/engine/guest"
)

// large is a module that is compiled in a process of its own.
func large(code ...[]byte) module { return module{pages: 1, code: slices.Concat(code...), pad: 2000} }

// shelf is a library, and how often something was compiled for it.
type shelf struct {
	*guest.Library
	compiled atomic.Int32
}

func newShelf(t *testing.T, most int64) *shelf {
	t.Helper()
	s := &shelf{Library: guest.NewLibrary(most)}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if bytes, modules := s.Held(); bytes != 0 || modules != 0 {
			t.Errorf("closed, the library holds %d bytes of %d modules", bytes, modules)
		}
	})
	return s
}

func (s *shelf) config(scope string, m module, funcs ...abi.Func) guest.Config {
	return guest.Config{
		Module: m.bytes(), Name: "agent", Funcs: funcs, MemoryBytes: 1 << 20, Library: s.Library, Scope: scope,
		Compiler: func() (string, error) {
			s.compiled.Add(1)
			return os.Executable()
		},
	}
}

func (s *shelf) modules() int {
	_, n := s.Held()
	return n
}

// A module that one tenant has compiled is not another's, be it the same to the
// byte: not by its scope, not by its cache, not by both read as one word.
//
//rlp:holds K4 K73
func TestALibraryGivesNoTenantWhatIsAnothers(t *testing.T) {
	s := newShelf(t, 0)
	m := large()
	for i, c := range []struct {
		scope, cache string
		shared       bool
	}{
		{"acme", "", false},
		{"acme", "", true}, // control: one's own is shared
		{"ac", "", false},
		{"", "", false},
		{"acme", newCache(t), false},
		{"Acme", "", false},
	} {
		cfg := s.config(c.scope, m)
		cfg.CacheDir = c.cache
		before := s.modules()
		mod := compile(t, cfg)
		if mod.Cached() != c.shared || (s.modules() == before) != c.shared {
			t.Errorf("%d: of %q, %q: had %v, %d modules after %d", i, c.scope, c.cache, mod.Cached(), s.modules(), before)
		}
		if end := mod.Run(t.Context(), guest.RunConfig{Wall: wide}); end.Kind != guest.OK {
			t.Errorf("%+v", end)
		}
	}
	m.pad++
	if mod := compile(t, s.config("acme", m)); mod.Cached() {
		t.Error("one byte more is the same module")
	}
}

// Who wants a module at once gets one, compiled once; who gave up on it on the
// way leaves it to the next.
func TestALibraryCompilesOnce(t *testing.T) {
	s := newShelf(t, 0)
	cfg := s.config("acme", large())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			mod, err := guest.Compile(t.Context(), cfg)
			if err != nil {
				t.Error(err)
				return
			}
			defer mod.Close()
			if end := mod.Run(t.Context(), guest.RunConfig{Wall: wide}); end.Kind != guest.OK {
				t.Errorf("%+v", end)
			}
		})
	}
	wg.Wait()
	if n := s.compiled.Load(); n != 1 || s.modules() != 1 {
		t.Errorf("compiled %d times, %d modules", n, s.modules())
	}

	other := s.config("other", large())
	ctx, giveUp := context.WithCancel(t.Context())
	begun, waits := make(chan struct{}), make(chan struct{})
	slow := other
	slow.Compiler = func() (string, error) {
		close(begun)
		<-waits
		giveUp()
		return os.Executable()
	}
	wg.Go(func() {
		if _, err := guest.Compile(ctx, slow); !errors.Is(err, context.Canceled) {
			t.Errorf("it was given up: %v", err)
		}
	})
	<-begun
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := guest.Compile(gone, other); !errors.Is(err, context.Canceled) {
		t.Errorf("who leaves does not wait: %v", err)
	}
	wg.Go(func() {
		mod, err := guest.Compile(t.Context(), other)
		if err != nil {
			t.Errorf("who waited: %v", err)
			return
		}
		_ = mod.Close()
	})
	close(waits)
	wg.Wait()
	if n := s.compiled.Load(); n != 2 {
		t.Errorf("compiled %d times", n)
	}
}

// What is refused is not kept, and is refused again.
func TestALibraryKeepsNothingThatIsRefused(t *testing.T) {
	s := newShelf(t, 0)
	m := large(i32(1)) // leaves a value behind
	for range 2 {
		if _, err := guest.Compile(t.Context(), s.config("acme", m)); !errors.Is(err, guest.ErrModule) {
			t.Errorf("%v", err)
		}
	}
	if s.modules() != 0 || s.compiled.Load() != 2 {
		t.Errorf("%d modules, compiled %d times", s.modules(), s.compiled.Load())
	}
	unknown := large()
	unknown.imports = []imported{{module: "test", name: "missing"}}
	var missing *guest.ImportError
	if _, err := guest.Compile(t.Context(), s.config("acme", unknown)); !errors.As(err, &missing) {
		t.Errorf("%v", err)
	}
}

// What is there was made for functions that another run had: a run that has
// fewer, or others, is refused as if it were not there.
func TestALibraryLooksAtWhatARunHas(t *testing.T) {
	s := newShelf(t, 0)
	f := abi.Func{Module: "m", Name: "f", Results: []abi.Type{abi.I32}, Call: func(_ context.Context, _ []byte,
		stack []uint64,
	) error {
		stack[0] = 0
		return nil
	}}
	m := large(call(0), []byte{opDrop})
	m.imports = []imported{importOf(f)}
	if mod := compile(t, s.config("acme", m, f)); mod.Cached() {
		t.Fatal("it was there")
	}
	other := f
	other.Results = nil
	for _, funcs := range [][]abi.Func{nil, {other}} {
		var refused *guest.ImportError
		if _, err := guest.Compile(t.Context(), s.config("acme", m, funcs...)); !errors.As(err, &refused) {
			t.Errorf("with %v: %v", funcs, err)
		}
	}
	again, err := guest.Prepare(t.Context(), s.config("acme", m, f))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Link(t.Context(), nil); !errors.Is(err, guest.ErrModule) {
		t.Errorf("linked to nothing: %v", err)
	}
}

// The library stays within its bound by what was longest not used; what is in
// use stays, whatever it takes, until it is not.
func TestALibraryIsBounded(t *testing.T) {
	one := newShelf(t, 0)
	_ = compile(t, one.config("acme", large())).Close()
	size, _ := one.Held()
	if size < 4<<10 {
		t.Fatalf("a module takes %d bytes", size)
	}

	s := newShelf(t, 2*size+size/2)
	of := func(n int) guest.Config {
		m := large()
		m.pad += n
		return s.config("acme", m)
	}
	had := func(n int) bool {
		mod := compile(t, of(n))
		defer mod.Close()
		return mod.Cached()
	}
	if had(1) || had(2) || !had(1) || had(3) || !had(1) || had(2) {
		t.Error("the last two are kept, and the one that was longest not used is not")
	}
	var running []*guest.Module
	for n := range 4 {
		running = append(running, compile(t, of(10+n)))
	}
	if bytes, modules := s.Held(); modules != 4 || bytes <= 2*size+size/2 {
		t.Errorf("four run, and %d are kept, in %d bytes", modules, bytes)
	}
	for n, mod := range running {
		if !had(10 + n) {
			t.Errorf("%d runs and is not there", n)
		}
		if err := mod.Close(); err != nil {
			t.Error(err)
		}
	}
	if bytes, _ := s.Held(); bytes > 2*size+size/2 {
		t.Errorf("nothing runs, and %d bytes are kept", bytes)
	}
}

// A closed library gives nothing away, and takes nothing from who has it.
func TestAClosedLibrary(t *testing.T) {
	s := newShelf(t, 0)
	mod := compile(t, s.config("acme", large()))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := guest.Compile(t.Context(), s.config("acme", large())); err == nil {
		t.Error("it is closed")
	}
	if end := mod.Run(t.Context(), guest.RunConfig{Wall: wide}); end.Kind != guest.OK {
		t.Errorf("%+v", end)
	}
}

// What a guest that does not stop runs in stays until it has, whoever closes what.
func TestALibraryKeepsWhatIsLeftBehind(t *testing.T) {
	s, let := guest.NewLibrary(0), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	// it ends in the call, however slow the machine is
	stuck := host("stuck", func(context.Context, []byte) error { cancel(); <-let; return nil })
	mod, err := guest.Compile(ctx, guest.Config{
		Module: module{imports: []imported{importOf(stuck)}, code: call(0)}.bytes(), Funcs: []abi.Func{stuck}, Library: s,
	})
	if err != nil {
		t.Fatal(err)
	}
	end := mod.Run(ctx, guest.RunConfig{Wall: time.Hour, Grace: time.Millisecond})
	if err := errors.Join(mod.Close(), s.Close()); err != nil || !end.Abandoned {
		t.Fatalf("%v, %+v", err, end)
	}
	if _, modules := s.Held(); modules != 1 {
		t.Errorf("it runs, and %d modules are kept", modules)
	}
	close(let)
	<-end.Stopped
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(wide); ; <-tick.C {
		if _, modules := s.Held(); modules == 0 {
			break
		}
		if time.Now().After(until) {
			t.Fatal("it has stopped, and its module is kept")
		}
	}
}
