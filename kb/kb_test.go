package kb_test

import (
	"testing"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/kbtest"
)

func openStore(t testing.TB, home string) *kb.Store {
	t.Helper()
	s, err := kb.Open(t.Context(), kb.Options{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		kbtest.TestStore(t, func(_ *testing.T, o kb.Origin) kbtest.KB {
			o.Tenant, o.UnixMS = "default", 1
			return kbtest.NewMemory(o)
		})
	})
	t.Run("owner", func(t *testing.T) {
		kbtest.TestStore(t, func(t *testing.T, o kb.Origin) kbtest.KB {
			s := openStore(t, t.TempDir()+"/home")
			if !s.Owner() {
				t.Fatal("the first to open a store is not its owner")
			}
			return s.View(o)
		})
	})
	t.Run("client", func(t *testing.T) {
		kbtest.TestStore(t, func(t *testing.T, o kb.Origin) kbtest.KB {
			home := t.TempDir() + "/home"
			openStore(t, home)
			s := openStore(t, home)
			if s.Owner() {
				t.Fatal("a store has two owners")
			}
			return s.View(o)
		})
	})
}
