package journal

import (
	"encoding/binary"
	"path/filepath"
	"slices"
	"testing"
)

// A group file that somebody else wrote, or that the disk lost parts of, gives
// pieces of runs within bounds, or none; what was written comes back.
func FuzzPieces(f *testing.F) {
	const seed = 42
	dir := filepath.Join(f.TempDir(), "journal")
	var group Group
	var js []*Journal
	for _, run := range []string{"run1", "run2"} {
		j, err := Create(Options{Dir: dir, Head: testHead(run), Group: &group})
		if err != nil {
			f.Fatal(err)
		}
		defer j.Close()
		js = append(js, j)
	}
	g := &groupFile{seed: seed, epoch: 7, lacking: map[string]bool{}}
	for _, j := range js {
		if !g.add(j) {
			f.Fatal("a piece was not taken")
		}
	}
	if got := piecesOf(g.buf, seed); len(got) != 2 || len(got["run2"]) != 1 || got["run2"][0].at != 0 ||
		int64(len(got["run2"][0].data)) != js[1].off {
		f.Fatalf("what was written comes back as %v", got)
	}
	f.Add(g.buf)
	f.Add(g.buf[:len(g.buf)-8])
	f.Fuzz(func(t *testing.T, p []byte) {
		p = slices.Clone(p)
		if len(p) >= pieceHeader { // as if its writer had meant it
			commit, word := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
			if size := uint64(uint32(commit)); size >= pieceHeader && size <= uint64(len(p)) {
				head := word &^ 0xffffffff
				binary.LittleEndian.PutUint64(p[8:], head|uint64(sum(seed, commit, head, p[16:size])))
			}
		}
		total := 0
		for run, pieces := range piecesOf(p, seed) {
			if !ValidRun(run) || len(pieces) == 0 {
				t.Fatalf("pieces %v of %q", pieces, run)
			}
			for _, x := range pieces {
				if total += len(x.data); x.at < 0 || x.at+int64(len(x.data)) < 0 {
					t.Fatalf("a piece of %d bytes at %d", len(x.data), x.at)
				}
			}
		}
		if total > len(p) {
			t.Fatalf("%d bytes in a file of %d", total, len(p))
		}
	})
}
