package kb

import (
	"bytes"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/log"
	"runloop.dev/rlp/kb/logtest"
	"runloop.dev/rlp/kb/values"
	"runloop.dev/rlp/kb/wire"
)

// sealed are the options of a store whose checkpoints are signed.
func sealed(home string) Options {
	k := logtest.NewKey("ours")
	return Options{Home: home, Seal: k.Seal, SealMark: k.Mark}
}

// opener reads what sealed stores sign.
func opener(note []byte) (o Opened, err error) {
	o.Head.Size, o.Head.Root, o.Lines, err = logtest.NewKey("ours").Open(note)
	return o, err
}

func openStore(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), o)
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

// A backup carries the tree of what was pruned, the checkpoints and the marks:
// the restored log verifies against heads of before, and goes on.
func TestRestoredLogVerifies(t *testing.T) {
	from := filepath.Join(t.TempDir(), "home")
	s := openStore(t, sealed(from))
	logtest.Record(t, from, "run1", 300)
	ingest(t, s)
	logtest.Begin(t, from, "run4444", 5) // it goes on, and so what follows is not pruned
	ingest(t, s)
	logtest.Record(t, from, "run55555", 20)
	ingest(t, s)
	ours := LogCheck{Open: opener}
	for _, pruned := range []bool{false, true} {
		if pruned {
			if _, n, err := s.Prune(t.Context(), time.Now().Add(time.Hour)); err != nil || n != 301 {
				t.Fatal(n, err)
			}
		}
		want, err := s.VerifyLog(t.Context(), ours)
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if _, err := s.Backup(t.Context(), &file); err != nil {
			t.Fatal(err)
		}
		home := filepath.Join(t.TempDir(), "home")
		to := openStore(t, sealed(home))
		if _, err := to.Restore(t.Context(), bytes.NewReader(file.Bytes()), false); err != nil {
			t.Fatal(err)
		}
		got, err := to.VerifyLog(t.Context(), LogCheck{Open: ours.Open, Against: []Head{want.Head}})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("restored: %+v, %v; before: %+v", got, err, want)
		}
		logtest.Record(t, home, "run7777777", 5)
		// The run that was under way goes on where it was, and not here: it gets an end.
		if got, err := to.Ingest(t.Context()); err != nil || len(got.Damaged) != 1 || !strings.Contains(got.Damaged[0],
			"run4444") {
			t.Error(got, err)
		}
		if got, err := to.VerifyLog(t.Context(), ours); err != nil || got.Sealed != want.Head.Size+7 {
			t.Error(got, err)
		}
	}
}

func ingest(t *testing.T, s *Store) {
	t.Helper()
	if got, err := s.Ingest(t.Context()); err != nil || got.Records == 0 {
		t.Fatal(got, err)
	}
}

// A store of before the log was a tree gets one when it is opened; a record that
// cannot be read keeps nobody from the rest of the store.
func TestTreeOfOlderStores(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		home := filepath.Join(t.TempDir(), "home")
		logtest.Record(t, home, "run1", 92)
		t.Run("older", func(t *testing.T) {
			e := testEngineOf(t, sealed(home))
			if _, err := send(t.Context(), e, wire.OpIngest, fields{}); err != nil {
				t.Fatal(err)
			}
			if err := e.db.DropPrefix([]byte("T"), []byte("C"), []byte("mtree")); err != nil {
				t.Fatal(err)
			}
			err := e.db.Update(func(txn *badger.Txn) error {
				if damaged {
					return errors.Join(txn.Set(keySchema(), db.Number(nil, 3)), txn.Set(db.Number([]byte("a"), 50),
						[]byte("no record")))
				}
				return txn.Set(keySchema(), db.Number(nil, 3))
			})
			if err != nil {
				t.Fatal(err)
			}
		})
		s := openStore(t, sealed(home))
		r, err := s.VerifyLog(t.Context(), LogCheck{Open: opener})
		var fault *LogError
		if damaged && (!errors.As(err, &fault) || fault.Seq != 50) || !damaged && (err != nil || r.Sealed != 93) {
			t.Errorf("damaged %v: %+v, %v", damaged, r, err)
		}
		if _, err := s.View(Origin{}).Put(t.Context(), "notes", "a", []byte("v")); err != nil {
			t.Error(err)
		}
	}
}

// The parts of a store share a database, and no key of it.
func TestPartsShareNoKeys(t *testing.T) {
	e := testEngineOf(t, sealed(filepath.Join(t.TempDir(), "home")))
	for _, space := range values.Spaces {
		if slices.Contains(log.Spaces, space) || space == 'm' {
			t.Errorf("%c is of the values and of the log", space)
		}
	}
	put(t, e, "a", "text")
	owned := map[string]bool{"mschema": true, "mrev": true, "mindex": true} // and the log is empty
	err := e.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			k := string(it.Item().Key())
			if !owned[k] && !slices.Contains(values.Spaces, k[0]) && k[0] != 'o' {
				t.Errorf("%q is nobody's", k)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
