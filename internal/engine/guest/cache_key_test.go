package guest_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"runloop.dev/rlp/internal/engine/guest"
)

// What was compiled of one module, or for one tenant, is not run in the name of
// another, though it lies where that one's would.
func TestExchangedEntriesAreNotRun(t *testing.T) {
	kind := func(dir, scope string, m module) (guest.Kind, bool) {
		t.Helper()
		mod := compile(t, guest.Config{Module: m.bytes(), CacheDir: dir, Scope: scope, MemoryBytes: 1 << 20})
		return mod.Run(t.Context(), guest.RunConfig{Wall: wide}).Kind, mod.Cached()
	}
	folder := func(dir string) string { return filepath.Dir(filepath.Dir(onlyEntry(t, dir))) }
	honest, evil := cachedModule(), cachedModule()
	evil.code = []byte{opUnreachable}
	const mine, theirs = "mine", "theirs"
	for name, c := range map[string]struct {
		other module
		scope string // for which the other was compiled
	}{"another module": {evil, mine}, "another tenant": {honest, theirs}, "both": {evil, theirs}} {
		for _, signed := range []bool{false, true} {
			dir, others := newCache(t), newCache(t)
			if k, _ := kind(dir, mine, honest); k != guest.OK {
				t.Fatalf("%s: the honest module ends as %d", name, k)
			}
			kind(others, c.scope, c.other)
			place := folder(dir)
			if err := errors.Join(os.RemoveAll(place), os.Rename(folder(others), place)); err != nil {
				t.Fatal(err)
			}
			want := guest.OK
			if signed { // control: nothing but the sum tells them apart
				if err := guest.Sign(place, mine, honest.bytes()); err != nil {
					t.Fatal(err)
				}
				want, _ = kind(newCache(t), mine, c.other)
			}
			if k, cached := kind(dir, mine, honest); k != want || cached != signed {
				t.Errorf("%s, signed %t: ends as %d, want %d; from the cache: %t", name, signed, k, want, cached)
			}
		}
	}
}

// A file of native code is known by its name too, which the engine makes of the
// outline and of what the processor can do.
func TestNativeCodeOfAnotherProcessorIsNotRun(t *testing.T) {
	dir := newCache(t)
	compileCached(t, dir, cachedModule())
	p := onlyEntry(t, dir)
	if err := os.Rename(p, filepath.Join(filepath.Dir(p),
		"0000000000000000000000000000000000000000000000000000000000000000")); err != nil {
		t.Fatal(err)
	}
	if _, cached := compileCached(t, dir, cachedModule()); cached {
		t.Error("it was loaded")
	}
}
