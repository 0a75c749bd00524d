package kb

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
)

// A store that an earlier rlp wrote is read as it was: its backup has the stored form
// of two values and of the chain of a third that is gone, of a run, of a mark and the
// leaves that were pruned, and of the checkpoints. What is made of it again is the
// same, byte for byte.
func TestAnEarlierStore(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("testdata", "schema4.backup"))
	if err != nil {
		t.Fatal(err)
	}
	mask := func(_ string, v []byte) []byte {
		return bytes.ReplaceAll(v, []byte("ada@example.org"), []byte("masked"))
	}
	s := openStore(t, Options{Home: filepath.Join(t.TempDir(), "home"), Mask: mask, MaskVersion: "test"})
	if info, err := s.Restore(t.Context(), bytes.NewReader(file), false); err != nil || info.Values != 2 ||
		info.Records != 6 {
		t.Fatal(info, err)
	}
	if r, err := s.Verify(t.Context()); err != nil || r.Values != 2 {
		t.Error(r, err)
	}
	r, err := s.VerifyLog(t.Context(), LogCheck{})
	if err != nil || r.Pruned != 6 || r.Records != 6 || r.Checkpoints != 2 ||
		hex.EncodeToString(r.Head.Root[:4]) != "16b4b510" {
		t.Errorf("%+v, %v", r, err)
	}
	v := s.View(Origin{})
	if got, err := v.Get(t.Context(), "notes", "plan"); err != nil || string(got.Bytes) != "second plan" ||
		got.Revision != 3 {
		t.Errorf("%q, %+v, %v", got.Bytes, got, err)
	}
	if c, err := v.Why(t.Context(), "notes", "gone"); err != nil || len(c.Steps) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
	if hits, err := v.Search(t.Context(), Query{Domain: "contacts", Text: "ada"}); err != nil || len(hits) != 1 {
		t.Errorf("%+v, %v", hits, err)
	}
	var again bytes.Buffer
	if _, err := s.Backup(t.Context(), &again); err != nil {
		t.Fatal(err)
	}
	before, after := pairsOf(t, file), pairsOf(t, again.Bytes())
	if len(before) != len(after) {
		t.Fatalf("%d pairs, %d before", len(after), len(before))
	}
	for i, p := range before {
		if !bytes.Equal(p.Key, after[i].Key) || !bytes.Equal(p.Value, after[i].Value) {
			t.Errorf("%q is %x, before %q was %x", after[i].Key, after[i].Value, p.Key, p.Value)
		}
	}
}

// pairsOf are the pairs of a backup.
func pairsOf(t *testing.T, file []byte) (all []pair) {
	t.Helper()
	if _, err := readBackup(bytes.NewReader(file), func(p []pair) error {
		all = append(all, p...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}
