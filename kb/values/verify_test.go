package values

import (
	"errors"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/kb/wire"
)

// Whatever is changed behind the store's back is found, and the key is named.
func TestVerifyFindsDamage(t *testing.T) {
	e := openValues(t, Options{Mask: testMask, MaskVersion: "test"})
	for _, key := range []string{"a", "b", "c"} {
		answer(t, e, &changeRequest{Domain: "notes", Key: key, Value: []byte(key + " word 5551234")})
	}
	answer(t, e, &changeRequest{Domain: "notes", Key: "gone", Value: []byte("x")})
	answer(t, e, &changeRequest{Domain: "notes", Key: "gone", Delete: true})
	if v, err := e.Verify(t.Context()); err != nil || v.Values != 3 || v.Postings == 0 { // the control
		t.Fatal(v, err)
	}
	whole := dumpValues(t, e, []byte("kvhxitm")...)
	flip := func(at int) func([]byte) []byte {
		return func(p []byte) []byte { p[(at+len(p))%len(p)] ^= 1; return p }
	}
	gone := func([]byte) []byte { return nil }
	for name, c := range map[string]struct {
		key    []byte
		change func([]byte) []byte
		says   string
	}{
		"a value":      {keyData("notes", "b"), flip(-1), "notes/b"},
		"a revision":   {keyData("notes", "b"), flip(7), "notes/b"},
		"a value gone": {keyData("notes", "b"), gone, "notes/b"},
		"a meta gone":  {keyMeta("notes", "b"), gone, "notes/b"},
		"a meta":       {keyMeta("notes", "b"), flip(-1), "notes/b"},
		"a chain":      {keyChain("notes", "b"), gone, "notes/b"},
		"a chain of others": {
			keyChain("notes", "gone"), func([]byte) []byte { return whole[string(keyChain("notes", "a"))] },
			"notes/gone",
		},
		"a document":       {keyDoc("notes", 2), gone, "notes/b"},
		"a document's key": {keyDoc("notes", 2), func(p []byte) []byte { p[2] = 'c'; return p }, "notes/b"},
		"a posting":        {keyChunk("notes", indexMasked, "b", 2), gone, "notes/b"},
		"a raw posting":    {keyChunk("notes", indexRaw, "5551234", 2), flip(0), "notes/"},
		"a posting more": {keyChunk("notes", indexMasked, "secret", 2), func([]byte) []byte {
			return appendPosting(nil, posting{2, 1, 4, true})
		}, "b, which does not have it"},
		"a raw word masked": {keyChunk("notes", indexMasked, "5551234", 2), func([]byte) []byte {
			return appendPosting(nil, posting{2, 1, 4, true})
		}, "b, which does not have it"},
		"a posting to none": {keyChunk("notes", indexMasked, "word", 999), func([]byte) []byte {
			return appendPosting(nil, posting{999, 1, 4, true})
		}, "document 999"},
		"a tally":      {keyTally("notes"), flip(0), "the tally of notes"},
		"a tally gone": {keyTally("notes"), gone, "the tally"},
	} {
		set := func(p []byte) {
			err := e.db.Update(func(txn *badger.Txn) error {
				if p == nil {
					return txn.Delete(c.key)
				}
				return txn.Set(c.key, p)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		was := whole[string(c.key)]
		set(c.change(append([]byte(nil), was...)))
		if _, err := e.Verify(t.Context()); !errors.Is(err, wire.ErrDamaged) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		set(was)
	}
	if _, err := e.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}
