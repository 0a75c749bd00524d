package values

import "testing"

// No two keys of the database are one, whatever names hold.
func TestValueKeysAreDistinct(t *testing.T) {
	seen := map[string]string{}
	names := []string{"", "a", "aa", "a\x00", "\x00a", "\x00\x01a", "run", "r\x00\x00\x00\x00\x00\x00\x00\x01"}
	add := func(k []byte, what string) {
		if before, ok := seen[string(k)]; ok {
			t.Errorf("%s and %s have one key", before, what)
		}
		seen[string(k)] = what
	}
	for _, k := range [][]byte{keyRev(), keyIndex()} {
		add(k, string(k))
	}
	for _, a := range names {
		add(keyTally(a), "tally "+a)
		add(keyDoc(a, 1), "document of "+a)
		for _, b := range names {
			add(keyMeta(a, b), "meta "+a+"|"+b)
			add(keyData(a, b), "data "+a+"|"+b)
			add(keyChain(a, b), "chain "+a+"|"+b)
			for _, index := range []byte{indexMasked, indexRaw} {
				add(keyChunk(a, index, b, 0), string(index)+" chunk "+a+"|"+b)
				add(keyChunk(a, index, b, chunkDocs), string(index)+" next chunk "+a+"|"+b)
			}
		}
	}
}
