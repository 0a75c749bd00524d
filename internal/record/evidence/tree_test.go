package evidence

import (
	"fmt"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// A forest is a log in memory, and its key.
type forest struct {
	t       testing.TB
	key     *Key
	records [][]byte
	hashes  []tlog.Hash
}

// grow makes a log with n records.
func grow(t testing.TB, n int) *forest {
	t.Helper()
	k, err := MakeKey(t.TempDir(), "default")
	if err != nil {
		t.Fatal(err)
	}
	f := &forest{t: t, key: k}
	for range n {
		f.add()
	}
	return f
}

func (f *forest) add() {
	f.t.Helper()
	n := len(f.records)
	kind := "cap.audit"
	if n == 0 {
		kind = "run.start"
	}
	r := fmt.Appendf(nil, `{"v":1,"kind":%q,"seq":%d,"ts":"2026-01-02T03:04:05.678Z","run_seq":%d,"run_id":"r1","agent":"a"}`, kind, n+1, n+1)
	h, err := tlog.StoredHashes(int64(n), r, f)
	if err != nil {
		f.t.Fatal(err)
	}
	f.records, f.hashes = append(f.records, r), append(f.hashes, h...)
}

// ReadHashes makes a forest a tlog.HashReader.
func (f *forest) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	var list []tlog.Hash
	for _, i := range indexes {
		list = append(list, f.hashes[i])
	}
	return list, nil
}

// checkpoint is the signed one at a size.
func (f *forest) checkpoint(size int) []byte {
	f.t.Helper()
	root, err := tlog.TreeHash(int64(size), f)
	if err != nil {
		f.t.Fatal(err)
	}
	note, err := f.key.Seal(uint64(size), root)
	if err != nil {
		f.t.Fatal(err)
	}
	return note
}

func (f *forest) inclusion(index, size int) *Inclusion {
	f.t.Helper()
	hashes, err := tlog.ProveRecord(int64(size), int64(index), f)
	if err != nil {
		f.t.Fatal(err)
	}
	return &Inclusion{Record: f.records[index], Index: uint64(index), Hashes: hashes, Checkpoint: f.checkpoint(size)}
}

func (f *forest) consistency(from, to int) *Consistency {
	f.t.Helper()
	p := &Consistency{Old: f.checkpoint(from), New: f.checkpoint(to)}
	if from > 0 {
		hashes, err := tlog.ProveTree(int64(to), int64(from), f)
		if err != nil {
			f.t.Fatal(err)
		}
		p.Hashes = hashes
	}
	return p
}
