package log

import "testing"

// No two keys of the database are one, whatever names hold.
func TestLogKeysAreDistinct(t *testing.T) {
	seen := map[string]string{}
	names := []string{"", "a", "aa", "a\x00", "\x00a", "\x00\x01a", "run", "r\x00\x00\x00\x00\x00\x00\x00\x01"}
	add := func(k []byte, what string) {
		if before, ok := seen[string(k)]; ok {
			t.Errorf("%s and %s have one key", before, what)
		}
		seen[string(k)] = what
	}
	for _, k := range [][]byte{keySeq(), keyHead(), keyPruned(), keyPruning(), keyBegun(), keyOwed(), keyJournal()} {
		add(k, string(k))
	}
	for n := range uint64(3) {
		add(keyRecord(n), "record")
		add(keyOther(n), "other")
		for _, a := range names {
			add(keyRun(a, n), "run "+a)
			add(keyAgent(a, n), "agent "+a)
		}
	}
}
