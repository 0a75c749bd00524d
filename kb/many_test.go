package kb_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"runloop.dev/rlp/kb"
)

// Many values are stored in their order, each with its own origin; one that is
// refused is named, and those before it are stored.
func TestPutAll(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	owner := openStore(t, home)
	for name, s := range map[string]*kb.Store{"owner": owner, "client": openStore(t, home)} {
		v := s.View(kb.Origin{})
		var items []kb.Item
		for i := range kb.MaxItems {
			items = append(items, kb.Item{
				Key: fmt.Sprint(name, i), Value: []byte(fmt.Sprint("text ", i)),
				Origin: kb.Origin{Source: fmt.Sprint("from ", i), ETag: "v1"},
			})
		}
		revs, err := v.PutAll(t.Context(), "notes", items)
		if err != nil || len(revs) != len(items) {
			t.Fatal(len(revs), err)
		}
		for i, it := range items {
			got, err := v.Get(t.Context(), "notes", it.Key)
			if err != nil || string(got.Bytes) != string(it.Value) || got.Revision != revs[i] ||
				got.Origin.Source != it.Origin.Source || i > 0 && revs[i] <= revs[i-1] {
				t.Fatalf("%s: %+v %v", it.Key, got, err)
			}
		}
		again := []kb.Item{{Key: "new" + name, Value: []byte("x")}, {Key: name + "0", Value: []byte("y")}}
		revs, err = v.PutAll(t.Context(), "notes", again)
		if !errors.Is(err, kb.ErrConflict) || len(revs) != 1 {
			t.Errorf("%s: %v %v", name, revs, err)
		}
		for what, bad := range map[string][]kb.Item{
			"a bad key": {{Key: "good" + name}, {Key: ""}}, "a bad label": {
				{Key: "good" + name},
				{Key: "a", Origin: kb.Origin{Label: "x"}},
			},
			"too many": make([]kb.Item, kb.MaxItems+1), "too large": {
				{Key: "good" + name},
				{Key: "a", Value: make([]byte, 1<<20+1)},
			},
		} {
			if _, err := v.PutAll(t.Context(), "notes", bad); !errors.Is(err, kb.ErrInvalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := v.Get(t.Context(), "notes", "good"+name); err == nil {
			t.Error("what came with something invalid was stored")
		}
		if _, err := v.PutAll(t.Context(), "nowhere", again); !errors.Is(err, kb.ErrDomain) {
			t.Errorf("%v", err)
		}
		if revs, err := v.PutAll(t.Context(), "notes", nil); len(revs) != 0 || err != nil {
			t.Error(revs, err)
		}
	}
	if _, err := owner.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}
