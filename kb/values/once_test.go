package values

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// A change that is asked for again under its ID is answered as before and not
// made again, whatever has happened in between.
func TestChangeIsAppliedOnce(t *testing.T) {
	e := openValues(t, Options{})
	ask := func(q *changeRequest) (*changeAnswer, error) {
		q.Domain, q.Key = "notes", "a"
		return wire.Ask(t.Context(), e, q)
	}
	id := func(b byte) []byte { return slices.Repeat([]byte{b}, 16) }
	put := &changeRequest{ID: id(1), Value: []byte("1")}
	first, err := ask(put)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ask(&changeRequest{ID: id(2), Value: []byte("2")})
	if err != nil || other.Revision == first.Revision {
		t.Fatal(other, err)
	}
	again, err := ask(put)
	if err != nil || again.Revision != first.Revision {
		t.Errorf("asked again: %+v %v", again, err)
	}
	if got, err := wire.Ask(t.Context(), e, &getRequest{Domain: "notes", Key: "a"}); err != nil ||
		string(got.Value) != "2" {
		t.Errorf("the change was made again: %+v %v", got, err)
	}
	del := &changeRequest{ID: id(3), Delete: true}
	for range 2 {
		if _, err := ask(del); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
	many := &putAllRequest{ID: id(5), Domain: "notes", Items: []Item{{Key: "m", Value: []byte("1")}, {Key: "n"}}}
	one, err := wire.Ask(t.Context(), e, many)
	if err != nil || len(one.Revisions) != 2 {
		t.Fatal(one, err)
	}
	if two, err := wire.Ask(t.Context(), e, many); err != nil || !slices.Equal(two.Revisions, one.Revisions) {
		t.Errorf("many asked for again: %+v %v", two, err)
	}
	swap := &changeRequest{ID: id(4), Compare: true, Value: []byte("3")}
	for range 2 {
		if _, err := ask(swap); err != nil {
			t.Errorf("swap: %v", err)
		}
	}
}

// A value of an earlier version has no bit that says that it is trusted: its
// label counts. A bit that its label does not bear out is damage.
//
//rlp:holds Y28
func TestLabelsOfEarlierVersions(t *testing.T) {
	e := openValues(t, Options{})
	for key, label := range map[string]string{"good": Trusted, "bad": Untrusted} {
		answer(t, e, &changeRequest{Domain: "notes", Key: key, Value: []byte(key), Origin: Origin{Label: label}})
	}
	set := func(key string, change func(p []byte)) {
		t.Helper()
		err := e.db.Update(func(txn *badger.Txn) error {
			p, err := db.Get(txn, keyData("notes", key))
			if err == nil {
				change(p)
				err = txn.Set(keyData("notes", key), p)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		e.values.reads.changed()
	}
	is := func(key string, want bool) {
		t.Helper()
		if c, err := e.values.content("notes", key); err != nil || c.Trusted != want || string(c.Bytes) != key {
			t.Errorf("%s: %+v, %v", key, c, err)
		}
	}
	set("good", func(p []byte) {
		if p[8]&trustedBit == 0 {
			t.Error("a trusted value has no bit that says so")
		}
		p[8] &^= trustedBit
	})
	is("good", true)
	is("bad", false)
	if _, err := e.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	set("bad", func(p []byte) { p[8] |= trustedBit })
	if _, err := e.Verify(t.Context()); !errors.Is(err, wire.ErrDamaged) || !strings.Contains(err.Error(), "notes/bad") {
		t.Errorf("a forged label: %v", err)
	}
}
