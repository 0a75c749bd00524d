package guest_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"runloop.dev/rlp/internal/engine/guest"
)

// Where no file can be written, nothing is compiled, and it is not the module's
// fault.
func TestNowhereToCompile(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	full := filepath.Join(t.TempDir(), "full")
	if err := os.WriteFile(full, []byte("#!/bin/sh\ntrap '' XFSZ\nulimit -f 0\nexec "+self+` "$@"`+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	dir := newCache(t)
	_, err = guest.Compile(t.Context(), guest.Config{Module: cachedModule().bytes(), Compiler: func() (string, error) {
		return full, nil
	}, CacheDir: dir})
	if !errors.Is(err, guest.ErrCompiler) || errors.Is(err, guest.ErrModule) {
		t.Errorf("%v", err)
	}
	if list := leftovers(t, dir); len(list) != 0 {
		t.Errorf("left %v", list)
	}
}

// Whoever was stopped as it compiled holds up the next for as long as compiling
// may take, and not for ever.
func TestAClaimIsWaitedForAWhile(t *testing.T) {
	dir, wasm := newCache(t), cachedModule().bytes()
	stopped, free, err := guest.Claim(t.Context(), dir, wasm, guest.Bound{})
	if err != nil || !stopped {
		t.Fatalf("the first has no claim: %v", err)
	}
	defer free()
	for range 2 { // the second finds nothing that the first left
		if has, _, err := guest.Claim(t.Context(), dir, wasm, guest.Bound{Time: time.Millisecond}); has || err != nil {
			t.Errorf("beside the one that has it: %t, %v", has, err)
		}
	}
	free()
	has, free, err := guest.Claim(t.Context(), dir, wasm, guest.Bound{})
	if !has || err != nil {
		t.Errorf("control: after it: %t, %v", has, err)
	}
	free()
}
