package kb

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/kb/logtest"
	"runloop.dev/rlp/kb/wire"
)

// Nothing is written into a database whose files were removed while it is open: it
// would be gone with the process. What waits in journals stays there.
func TestRemovedWhileItIsOpen(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	s, err := Open(t.Context(), Options{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	write := func(key string) error {
		_, err := s.View(Origin{}).Put(t.Context(), "notes", key, []byte("v"))
		return err
	}
	if err := errors.Join(write("before"), s.Room()); err != nil {
		t.Fatal("control:", err)
	}
	logtest.Record(t, home, "run1", 3)
	if err := errors.Join(os.RemoveAll(s.layout.kb), os.Mkdir(s.layout.kb, 0o700)); err != nil {
		t.Fatal(err)
	}
	_, taken := s.Ingest(t.Context())
	for what, err := range map[string]error{"a value": write("after"), "a journal": taken, "the room": s.Room()} {
		if !errors.Is(err, db.ErrRemoved) || !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if files, err := journal.List(s.layout.journal); err != nil || len(files) != 1 {
		t.Error("journals:", files, err)
	}
	if err := s.Close(); err == nil {
		t.Error("it says that all of it is on the disk")
	}
}
