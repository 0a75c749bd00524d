package kb

import (
	"errors"
	"fmt"
	"path/filepath"
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
				err = errors.Join(txn.Set(keyMeta("notes", key), m),
					txn.Set(append(db.Named(spaceData1, "notes"), key...), []byte(v)))
			}
			if err != nil {
				return err
			}
		}
		return errors.Join(txn.Set(keyRev(), db.Number(nil, rev)), txn.Delete(keySchema()), txn.Delete(keyIndex()))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A store of the first layout is one of this layout when it was opened: the same
// values, who wrote them, and all of them to be found. Being ended in the middle
// changes nothing about it.
func TestMigration(t *testing.T) {
	for _, interrupted := range []bool{false, true} {
		o := Options{Home: filepath.Join(t.TempDir(), "home")}
		values := map[string]string{"empty": "", "binary": "\xff"}
		for i := range 3 * migrateStep {
			values[fmt.Sprint("k", i)] = fmt.Sprintf("text number%d", i)
		}
		t.Run(fmt.Sprint("interrupted ", interrupted), func(t *testing.T) { oldStore(t, o, values) })
		if interrupted {
			t.Run("half", func(t *testing.T) {
				e := testEngineRaw(t, o)
				n := 0
				err := e.db.EachKey(spaceMeta, migrateStep, func(txn *badger.Txn, keys [][]byte) error {
					for _, k := range keys {
						_, key, _ := db.SplitNamed(k)
						if n++; n > migrateStep+3 {
							return errors.New("ended")
						}
						if err := e.values.joinSchema1(txn, "notes", string(key)); err != nil {
							return err
						}
					}
					return nil
				})
				if err == nil {
					t.Fatal("it was not ended")
				}
			})
		}
		e := testEngineOf(t, o)
		for key, want := range values {
			r := mustDo(t, e, &getRequest{Domain: "notes", Key: key})
			if string(r.Value) != want || r.Revision == 0 || r.Origin.Agent != "old" || r.Origin.Label != Untrusted ||
				r.Origin.UnixMS != 7 {
				t.Fatalf("%s: %+v", key, r)
			}
			if c := mustDo(t, e, &whyRequest{Domain: "notes", Key: key}); len(c.Steps) != 1 ||
				c.Steps[0].Revision != r.Revision {
				t.Fatalf("%s: %+v", key, c)
			}
		}
		if r := mustDo(t, e, &searchRequest{Domain: "notes", Text: "number17"}); len(r.Hits) != 1 || r.Hits[0].Key != "k17" {
			t.Errorf("found: %+v", r.Hits)
		}
		if v, err := verifyAll(t, e); err != nil || v.Values != len(values) {
			t.Error(v, err)
		}
		if left := dump(t, e, spaceData1); len(left) > 0 {
			t.Errorf("%d values are left in the old layout", len(left))
		}
	}
}

// testEngineRaw is an engine that nothing was done to when it was opened.
func testEngineRaw(t *testing.T, o Options) *engine {
	t.Helper()
	o, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	e, err := newEngine(o, o.layout())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.db.Close() })
	return e
}

// A store of a newer layout is refused in words, and left as it is.
func TestNewerSchemaIsRefused(t *testing.T) {
	o := Options{Home: filepath.Join(t.TempDir(), "home")}
	t.Run("make", func(t *testing.T) {
		e := testEngineOf(t, o)
		mustDo(t, e, &changeRequest{Domain: "notes", Key: "a", Value: []byte("v")})
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
		if r := mustDo(t, e, &searchRequest{Domain: "notes", Text: "5551234"}); len(r.Hits) != want {
			t.Errorf("masked by %q %d values are found, want %d", o.MaskVersion, len(r.Hits), want)
		}
		if _, err := verifyAll(t, e); err != nil {
			t.Error(err)
		}
	}
	t.Run("none", func(t *testing.T) {
		e := testEngineOf(t, o)
		mustDo(t, e, &changeRequest{Domain: "notes", Key: "a", Value: []byte("call 5551234")})
	})
	t.Run("control", func(t *testing.T) { find(t, o, 1) })
	masked := o
	masked.Mask, masked.MaskVersion = testMask, "test"
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
		mustDo(t, e, &changeRequest{Domain: "notes", Key: "a", Value: []byte("call 5551234")})
		working = false
		if _, err := asked(t.Context(), e, &changeRequest{Domain: "notes", Key: "a", Value: []byte("x")}); !errors.Is(err,
			wire.ErrUnavailable) {
			t.Errorf("a value that cannot be masked: %v", err)
		}
		_, err := asked(t.Context(), e, &searchRequest{Domain: "notes", Text: "call"})
		if !errors.Is(err, wire.ErrUnavailable) {
			t.Errorf("a snippet that cannot be masked: %v", err)
		}
		mustDo(t, e, &searchRequest{Domain: "notes", Text: "call", Raw: true}) // the control
	})
	if _, err := Open(t.Context(), o); !errors.Is(err, wire.ErrUnavailable) ||
		!strings.Contains(err.Error(), "key of masks") {
		t.Errorf("opening: %v", err)
	}
	working, salt = true, "b"
	e := testEngineOf(t, o)
	if r := mustDo(t, e, &searchRequest{Domain: "notes", Text: "maskedb"}); len(r.Hits) != 1 {
		t.Errorf("under another key of masks %d values are found by the new mask", len(r.Hits))
	}
}
