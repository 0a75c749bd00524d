package guest_test

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"testing"

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
