package kb

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// oldStore makes a database as schema 1 has it: meta and value apart, and
// nothing else.
func oldStore(t *testing.T, o Options, values map[string]string) {
	t.Helper()
	e := testEngineOf(t, o)
	rev := uint64(0)
	err := e.db.Update(func(txn *badger.Txn) error {
		for key, v := range values {
			rev++
			m, err := e.codec.Marshal(Entry{Revision: rev, Size: len(v), Origin: Origin{
				Agent: "old", Tenant: "default",
				UnixMS: 7, Source: "agent",
			}})
			if err == nil {
				err = errors.Join(txn.Set(append(db.Named('k', "notes"), key...), m),
					txn.Set(append(db.Named('d', "notes"), key...), []byte(v)))
			}
			if err != nil {
				return err
			}
		}
		return errors.Join(txn.Set([]byte("mrev"), db.Number(nil, rev)), txn.Delete(keySchema()),
			txn.Delete([]byte("mindex")))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A store of the first layout is one of this layout when it was opened: the same
// values, who wrote them, and all of them to be found.
func TestMigration(t *testing.T) {
	o := Options{Home: filepath.Join(t.TempDir(), "home")}
	values := map[string]string{"empty": "", "binary": "\xff", "text": "number17"}
	t.Run("old", func(t *testing.T) { oldStore(t, o, values) })
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	v := s.View(Origin{})
	for key, want := range values {
		if r, err := v.Get(t.Context(), "notes", key); err != nil || string(r.Bytes) != want || r.Origin.Agent != "old" ||
			r.Origin.Label != Untrusted || r.Origin.UnixMS != 7 {
			t.Errorf("%s: %+v, %v", key, r, err)
		}
	}
	if hits, err := v.Search(t.Context(), Query{Domain: "notes", Text: "number17"}); err != nil || len(hits) != 1 {
		t.Errorf("found: %+v, %v", hits, err)
	}
	if r, err := s.Verify(t.Context()); err != nil || r.Values != len(values) {
		t.Error(r, err)
	}
}

// A store of a newer layout is refused in words, and left as it is.
func TestNewerSchemaIsRefused(t *testing.T) {
	o := Options{Home: filepath.Join(t.TempDir(), "home")}
	t.Run("make", func(t *testing.T) {
		e := testEngineOf(t, o)
		put(t, e, "a", "v")
		if err := e.db.Update(func(txn *badger.Txn) error {
			return txn.Set(keySchema(), db.Number(nil, schema+1))
		}); err != nil {
			t.Fatal(err)
		}
	})
	for range 2 {
		_, err := Open(t.Context(), o)
		if !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), fmt.Sprint("its schema is ", schema+1)) {
			t.Errorf("opening: %v", err)
		}
	}
}

// When masks change the index of masked words is made anew before anybody
// searches it, and processes that mask differently do not share a store.
func TestMasksChange(t *testing.T) {
	o := Options{Home: filepath.Join(t.TempDir(), "home")}
	find := func(t *testing.T, o Options, want int) {
		e := testEngineOf(t, o)
		hits, err := storeOf(t, e).View(Origin{}).Search(t.Context(), Query{Domain: "notes", Text: "5551234"})
		if err != nil || len(hits) != want {
			t.Errorf("masked by %q %d values are found, want %d: %v", o.MaskVersion, len(hits), want, err)
		}
		if _, err := storeOf(t, e).Verify(t.Context()); err != nil {
			t.Error(err)
		}
	}
	t.Run("none", func(t *testing.T) {
		e := testEngineOf(t, o)
		put(t, e, "a", "call 5551234")
	})
	t.Run("control", func(t *testing.T) { find(t, o, 1) })
	masked := o
	masked.Mask, masked.MaskVersion = maskNumbers, "test"
	t.Run("masked", func(t *testing.T) { find(t, masked, 0) })
	s, err := Open(t.Context(), masked)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := Open(t.Context(), o); !errors.Is(err, wire.ErrVersion) || !strings.Contains(err.Error(),
		"masks values by other rules") {
		t.Errorf("a process without masks beside one with them: %v", err)
	}
	other, err := Open(t.Context(), masked) // the control
	if err != nil {
		t.Fatal(err)
	}
	other.Close()
}

// What cannot be masked is not stored, and a store whose index would have to be
// made of it does not open. Other masks of the same rules are other masks.
func TestNoMasksNoIndex(t *testing.T) {
	working, salt := true, "a"
	o := Options{Home: filepath.Join(t.TempDir(), "home"), MaskVersion: "test", Mask: func(_ string, v []byte) []byte {
		if !working {
			return nil
		}
		return []byte(salt + " " + strings.ReplaceAll(string(v), "5551234", "masked"+salt))
	}}
	t.Run("stored", func(t *testing.T) {
		e := testEngineOf(t, o)
		put(t, e, "a", "call 5551234")
		working = false
		v := storeOf(t, e).View(Origin{})
		if _, err := v.Put(t.Context(), "notes", "a", []byte("x")); !errors.Is(err, wire.ErrUnavailable) {
			t.Errorf("a value that cannot be masked: %v", err)
		}
		_, err := v.Search(t.Context(), Query{Domain: "notes", Text: "call"})
		if !errors.Is(err, wire.ErrUnavailable) {
			t.Errorf("a snippet that cannot be masked: %v", err)
		}
		if _, err := v.Search(t.Context(), Query{Domain: "notes", Text: "call", Raw: true}); err != nil {
			t.Error("control:", err)
		}
	})
	if _, err := Open(t.Context(), o); !errors.Is(err, wire.ErrUnavailable) ||
		!strings.Contains(err.Error(), "key of masks") {
		t.Errorf("opening: %v", err)
	}
	working, salt = true, "b"
	e := testEngineOf(t, o)
	hits, err := storeOf(t, e).View(Origin{}).Search(t.Context(), Query{Domain: "notes", Text: "maskedb"})
	if err != nil || len(hits) != 1 {
		t.Errorf("under another key of masks %d values are found by the new mask: %v", len(hits), err)
	}
}

var numbers = regexp.MustCompile(`[0-9]{3,}`)

// maskNumbers masks what looks like a number of three digits or more.
func maskNumbers(_ string, value []byte) []byte {
	return numbers.ReplaceAll(value, []byte("masked number"))
}
