package guest_test

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"runloop.dev/rlp/internal/guest"
)

// Where no file can be written, nothing is compiled, and it is not the module's
// fault.
func TestNowhereToCompile(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 0, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
			t.Error(err)
		}
	}()
	dir := newCache(t)
	_, err := guest.Compile(t.Context(), guest.Config{Module: cachedModule().bytes(), Compiler: os.Executable, CacheDir: dir})
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
