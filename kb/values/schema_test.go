package values

import (
	"errors"
	"fmt"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"runloop.dev/rlp/kb/db"
)

// Values of the first layout are of this one when they were joined: the same bytes,
// who wrote them, and all of them to be found. Being ended in the middle changes
// nothing about it.
func TestValuesOfSchema1(t *testing.T) {
	for _, interrupted := range []bool{false, true} {
		e := openValues(t, Options{})
		values := map[string]string{"empty": "", "binary": "\xff"}
		for i := range 3 * migrateStep {
			values[fmt.Sprint("k", i)] = fmt.Sprintf("text number%d", i)
		}
		rev := uint64(0)
		err := e.db.Update(func(txn *badger.Txn) error {
			for key, v := range values {
				rev++
				m, err := e.codec.Marshal(Entry{Revision: rev, Size: len(v), Origin: Origin{
					Agent: "old", Tenant: "default", UnixMS: 7, Source: "agent",
				}})
				if err = errors.Join(err, txn.Set(keyMeta("notes", key), m),
					txn.Set(append(db.Named(spaceData1, "notes"), key...), []byte(v))); err != nil {
					return err
				}
			}
			return txn.Set(keyRev(), db.Number(nil, rev))
		})
		if err != nil {
			t.Fatal(err)
		}
		if interrupted {
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
		}
		if err := errors.Join(e.values.FromSchema1(), e.values.Reindex()); err != nil {
			t.Fatal(err)
		}
		for key, want := range values {
			r := answer(t, e, &getRequest{Domain: "notes", Key: key})
			if string(r.Value) != want || r.Revision == 0 || r.Origin.Agent != "old" || r.Origin.Label != Untrusted ||
				r.Origin.UnixMS != 7 {
				t.Fatalf("%s: %+v", key, r)
			}
			if c := answer(t, e, &whyRequest{Domain: "notes", Key: key}); len(c.Steps) != 1 ||
				c.Steps[0].Revision != r.Revision {
				t.Fatalf("%s: %+v", key, c)
			}
		}
		if r := answer(t, e, &searchRequest{Domain: "notes", Text: "number17"}); len(r.Hits) != 1 || r.Hits[0].Key != "k17" {
			t.Errorf("found: %+v", r.Hits)
		}
		if v, err := e.Verify(t.Context()); err != nil || v.Values != len(values) {
			t.Error(v, err)
		}
		if left := dumpValues(t, e, spaceData1); len(left) > 0 {
			t.Errorf("%d values are left in the old layout", len(left))
		}
	}
}
