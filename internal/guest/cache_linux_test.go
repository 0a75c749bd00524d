package guest_test

import (
	"errors"
	"os/signal"
	"syscall"
	"testing"

	"runloop.dev/rlp/internal/guest"
)

// A cache that cannot be written, as on a full disk, costs time and nothing else.
func TestACacheThatCannotBeWrittenIsDoneWithout(t *testing.T) {
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
	mod, cached := compileCached(t, dir, cachedModule())
	if cached || !errors.Is(mod.CacheErr(), guest.ErrCache) || !errors.Is(mod.CacheErr(), syscall.EFBIG) {
		t.Errorf("cached: %t, %v", cached, mod.CacheErr())
	}
	if list := entries(t, dir); len(list) != 0 {
		t.Errorf("left %v", list)
	}
}
