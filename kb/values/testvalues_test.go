package values

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// A testValues is the values of a database of their own, and who asks for them.
type testValues struct {
	Client
	values *Values
	db     *db.Database
	codec  *audit.Codec
}

func (e *testValues) Ask(ctx context.Context, q *wire.Question[*Values]) error {
	return q.Local(ctx, e.values)
}
func (e *testValues) Hold() (*Values, bool) { return e.values, true }
func (e *testValues) Release()              {}

// openValues opens values, of no domains unless o names some, until the test ends.
func openValues(t testing.TB, o Options) *testValues {
	t.Helper()
	o.Tenant, o.Now = "default", time.Now
	o.Domains = append(o.Domains, "contacts", "notes")
	codec, err := audit.NewCodec()
	if err != nil {
		t.Fatal(err)
	}
	l := &db.Listener{Failed: make(chan error, 1), Free: func() error { return nil }}
	in, err := db.OpenDatabase(t.TempDir(), l)
	if err != nil {
		t.Fatal(err)
	}
	e := &testValues{db: in, codec: codec, values: New(in, codec, o, func() error { return nil })}
	e.Client = NewClient(e, &o)
	e.values.Start()
	t.Cleanup(func() {
		e.values.Close()
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// answer has q answered by values.
func answer[A any](t testing.TB, e *testValues, q wire.Request[*Values, A]) *A {
	t.Helper()
	r, err := wire.Ask(t.Context(), e, q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	return r
}

// dumpValues is everything in some spaces.
func dumpValues(t testing.TB, e *testValues, spaces ...byte) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := e.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			v, err := it.Item().ValueCopy(nil)
			if err != nil {
				return err
			}
			if k := it.Item().KeyCopy(nil); slices.Contains(spaces, k[0]) {
				all[string(k)] = v
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
