package compose

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
)

// A store that cannot be opened is not tried again by each who asks: all who ask
// at once get the answer of the first.
func TestAStoreThatFailedIsTriedOnceWithAPause(t *testing.T) {
	h, err := home.Open(filepath.Join(t.TempDir(), "home"), home.DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.Dir(), "kb"), nil, 0o600); err != nil { // a file where the database belongs
		t.Fatal(err)
	}
	s := newStores(t.Context(), io.Discard)
	_, first := s.Take(h, config.Default())
	if first == nil {
		t.Fatal("it was opened")
	}
	if err := os.Remove(filepath.Join(h.Dir(), "kb")); err != nil {
		t.Fatal(err)
	}
	if _, again := s.Take(h, config.Default()); again != first {
		t.Errorf("it was tried again: %v", again)
	}
	f := s.failed[home.DefaultTenant]
	f.at = f.at.Add(-againAfter)
	s.failed[home.DefaultTenant] = f
	k, err := s.Take(h, config.Default())
	if err != nil {
		t.Fatalf("after the pause: %v", err)
	}
	s.giveBack(k)
	s.Close()
}
