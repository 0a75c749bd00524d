package kb

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/logtest"
	"runloop.dev/rlp/kb/wire"
)

// A restore that ends in the middle leaves a store that answers nothing, to the
// next owner either, until one has come through.
func TestInterruptedRestore(t *testing.T) {
	from, o := testEngine(t), Options{Home: filepath.Join(t.TempDir(), "home")}
	for _, key := range []string{"a", "b", "c"} {
		put(t, from, key, "text")
	}
	pairs := mustDo(t, from, &backupRequest{}).Pairs
	t.Run("half", func(t *testing.T) {
		e := testEngineOf(t, o)
		mustDo(t, e, &restoreRequest{Stage: restoreBegin})
		mustDo(t, e, &restoreRequest{Stage: restorePage, Pairs: pairs[:2]})
	})
	e := testEngineOf(t, o)
	for _, op := range []wire.Opcode{wire.OpGet, wire.OpChange, wire.OpIngest, wire.OpVerify, wire.OpBackup} {
		if _, err := send(t.Context(), e, op, fields{}); !errors.Is(err, wire.ErrUnavailable) ||
			!strings.Contains(err.Error(),
				"rlp kb restore") {
			t.Errorf("operation %d in the middle of a restore: %v", op, err)
		}
	}
	mustDo(t, e, &restoreRequest{Stage: restoreBegin})
	for range 2 { // an owner may be asked twice
		mustDo(t, e, &restoreRequest{Stage: restorePage, Pairs: pairs})
	}
	mustDo(t, e, &restoreRequest{Stage: restoreEnd})
	if v, err := storeOf(t, e).Verify(t.Context()); err != nil || v.Values != 3 {
		t.Error(v, err)
	}
	_, err := asked(t.Context(), e, &restoreRequest{Stage: restorePage, Pairs: pairs})
	if !errors.Is(err, wire.ErrInvalid) {
		t.Errorf("a page out of the blue: %v", err)
	}
}

// A backup whose reader goes away, or asks out of order, is given up.
func TestBackupSessions(t *testing.T) {
	e := testEngine(t)
	for i := range 3 {
		put(t, e, string(rune('a'+i)), strings.Repeat("\x00", 1<<20))
	}
	first := mustDo(t, e, &backupRequest{})
	if !first.More {
		t.Fatal("one page holds everything")
	}
	for _, q := range []backupRequest{
		{Snapshot: first.Snapshot},
		{Snapshot: first.Snapshot, Page: 5},
		{Snapshot: 99, Page: 1},
	} {
		if _, err := asked(t.Context(), e, &q); !errors.Is(err, wire.ErrUnavailable) {
			t.Errorf("page %d of %d: %v", q.Page, q.Snapshot, err)
		}
	}
	mustDo(t, e, &backupRequest{Snapshot: first.Snapshot, Page: 1}) // the control
	for range 3 {
		mustDo(t, e, &backupRequest{})
	}
	if _, err := asked(t.Context(), e, &backupRequest{}); !errors.Is(err, wire.ErrUnavailable) {
		t.Errorf("one more at a time: %v", err)
	}
}

// FuzzBackup: whatever a file holds is refused or restored, and a store that took
// it is whole.
func FuzzBackup(f *testing.F) {
	from := testEngine(f)
	for _, key := range []string{"a", "b"} {
		put(f, from, key, "text of "+key)
	}
	r, err := asked(f.Context(), from, &backupRequest{})
	if err != nil {
		f.Fatal(err)
	}
	for _, p := range r.Pairs {
		f.Add(p.Key, p.Value)
	}
	note, err := logtest.NewKey("ours").Seal(1, [32]byte{})
	if err != nil {
		f.Fatal(err)
	}
	for k, v := range map[string]any{
		"C\x00\x00\x00\x00\x00\x00\x00\x01": Checkpoint{Head: Head{Size: 1}, Note: note},
		"P\x00\x00\x00\x00\x00\x00\x00\x07": Mark{Head: Head{Size: 9}, Pruned: 7, Note: note},
	} {
		p, err := from.codec.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		if err := checkPair(from.codec, pair{[]byte(k), p}); err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(k), p)
	}
	f.Add(db.Number([]byte("T\x00"), 0), make([]byte, 64))
	f.Add([]byte(backupMagic), []byte{1, 0, 0, 0, 0xa0})
	e := testEngine(f)
	f.Fuzz(func(t *testing.T, k, v []byte) {
		if _, err := readBackup(bytes.NewReader(append(bytes.Clone(k), v...)), func([]pair) error {
			return nil
		}); err != nil && !errors.Is(err, ErrBackup) {
			t.Fatal(err)
		}
		if err := checkPair(e.codec, pair{k, v}); err != nil {
			return
		}
		mustDo(t, e, &restoreRequest{Stage: restoreBegin, Replace: true})
		q := &restoreRequest{Stage: restorePage, Pairs: []pair{{k, v}}}
		_, refused := asked(t.Context(), e, q)
		mustDo(t, e, &restoreRequest{Stage: restoreEnd})
		var r struct {
			From uint64 `cbor:"1,keyasint"`
			UpTo uint64 `cbor:"2,keyasint"`
		}
		a, err := send(t.Context(), e, wire.OpSeek, fields{})
		if err != nil {
			t.Fatal(err)
		}
		if p, err := e.codec.Marshal(a); err != nil || e.codec.Unmarshal(p, &r) != nil || r.From > r.UpTo+1 {
			t.Fatalf("%x %x hides what is recorded from now on", k, v)
		}
		if refused == nil && len(k) > 0 && k[0] == 'v' {
			// Without its chain a value is not whole; that alone may be missing.
			if _, err := storeOf(t, e).Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "chain") {
				t.Fatalf("%x %x: %v", k, v, err)
			}
		}
	})
}
