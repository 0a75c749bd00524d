package kb

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// A restore that ends in the middle leaves a store that answers nothing, to the
// next owner either, until one has come through.
func TestInterruptedRestore(t *testing.T) {
	from, o := testEngine(t), Options{Home: filepath.Join(t.TempDir(), "home")}
	for _, key := range []string{"a", "b", "c"} {
		mustDo(t, from, request{Op: opPut, Domain: "notes", Key: key, Value: []byte("text")})
	}
	pairs := mustDo(t, from, request{Op: opBackup}).Pairs
	t.Run("half", func(t *testing.T) {
		e := testEngineOf(t, o)
		mustDo(t, e, request{Op: opRestore, Stage: restoreBegin})
		mustDo(t, e, request{Op: opRestore, Stage: restorePage, Pairs: pairs[:2]})
	})
	e := testEngineOf(t, o)
	for _, q := range []request{{Op: opGet, Domain: "notes", Key: "a"}, {Op: opPut, Domain: "notes", Key: "z"}, {Op: opIngest}, {Op: opVerify}, {Op: opBackup}} {
		if _, err := e.do(t.Context(), &q); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "rlp kb restore") {
			t.Errorf("operation %d in the middle of a restore: %v", q.Op, err)
		}
	}
	mustDo(t, e, request{Op: opRestore, Stage: restoreBegin})
	for range 2 { // an owner may be asked twice
		mustDo(t, e, request{Op: opRestore, Stage: restorePage, Pairs: pairs})
	}
	mustDo(t, e, request{Op: opRestore, Stage: restoreEnd})
	if v, err := verifyAll(t, e); err != nil || v.Values != 3 {
		t.Error(v, err)
	}
	if _, err := e.do(t.Context(), &request{Op: opRestore, Stage: restorePage, Pairs: pairs}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a page out of the blue: %v", err)
	}
}

// A backup whose reader goes away, or asks out of order, is given up.
func TestBackupSessions(t *testing.T) {
	e := testEngine(t)
	for i := range 3 {
		mustDo(t, e, request{Op: opPut, Domain: "notes", Key: string(rune('a' + i)), Value: make([]byte, maxValue)})
	}
	first := mustDo(t, e, request{Op: opBackup})
	if !first.More {
		t.Fatal("one page holds everything")
	}
	for _, q := range []request{{Op: opBackup, From: first.Next}, {Op: opBackup, From: first.Next, UpTo: 5}, {Op: opBackup, From: 99, UpTo: 1}} {
		if _, err := e.do(t.Context(), &q); !errors.Is(err, ErrUnavailable) {
			t.Errorf("page %d of %d: %v", q.UpTo, q.From, err)
		}
	}
	mustDo(t, e, request{Op: opBackup, From: first.Next, UpTo: 1}) // the control
	for range maxSnapshots - 1 {
		mustDo(t, e, request{Op: opBackup})
	}
	if _, err := e.do(t.Context(), &request{Op: opBackup}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("one more at a time: %v", err)
	}
}

// FuzzBackup: whatever a file holds is refused or restored, and a store that took
// it is whole.
func FuzzBackup(f *testing.F) {
	from := testEngine(f)
	for _, key := range []string{"a", "b"} {
		if _, err := from.do(f.Context(), &request{Op: opPut, Domain: "notes", Key: key, Value: []byte("text of " + key)}); err != nil {
			f.Fatal(err)
		}
	}
	r, err := from.do(f.Context(), &request{Op: opBackup})
	if err != nil {
		f.Fatal(err)
	}
	for _, p := range r.Pairs {
		f.Add(p.Key, p.Value)
	}
	ours := newTestKey("ours")
	note, err := ours.seal(1, [32]byte{})
	if err != nil {
		f.Fatal(err)
	}
	for k, v := range map[string]any{string(keyCheckpoint(1)): Checkpoint{Head{Size: 1}, note}, string(keyMark(7)): Mark{Head: Head{Size: 9}, Pruned: 7, Note: note}} {
		p, err := from.codec.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(k), p)
	}
	f.Add(keyTile(0, 0), make([]byte, 64))
	f.Add([]byte(backupMagic), []byte{1, 0, 0, 0, 0xa0})
	e := testEngine(f)
	f.Fuzz(func(t *testing.T, k, v []byte) {
		if _, err := readBackup(bytes.NewReader(append(bytes.Clone(k), v...)), func([]pair) error { return nil }); err != nil && !errors.Is(err, ErrBackup) {
			t.Fatal(err)
		}
		if _, err := parsePair(e.codec, pair{k, v}); err != nil {
			return
		}
		mustDo(t, e, request{Op: opRestore, Stage: restoreBegin, Replace: true})
		q := request{Op: opRestore, Stage: restorePage, Pairs: []pair{{k, v}}}
		_, err := e.do(t.Context(), &q)
		mustDo(t, e, request{Op: opRestore, Stage: restoreEnd})
		if r := mustDo(t, e, request{Op: opSeek}); r.From > r.UpTo+1 {
			t.Fatalf("%x %x hides what is recorded from now on", k, v)
		}
		if err == nil && len(k) > 0 && k[0] == spaceData {
			// Without its chain a value is not whole; that alone may be missing.
			if _, err := verifyAll(t, e); err == nil || !strings.Contains(err.Error(), "chain") {
				t.Fatalf("%x %x: %v", k, v, err)
			}
		}
	})
}
