package log

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/logtest"
	"runloop.dev/rlp/kb/wire"
)

// However a tree was made longer, in steps that were stored and read again, its
// root is the one that the tlog package makes of the same leaves, and each tile
// that is stored has the bytes that the format says.
func TestTreeIsTheLogsTree(t *testing.T) {
	e := openLog(t, newPlace(t))
	rapid.Check(t, func(t *rapid.T) {
		if err := e.db.DropPrefix([]byte{SpaceTile}, keyHead()); err != nil {
			t.Fatal(err)
		}
		e.log.edge = nil
		var stored []tlog.Hash // as the tlog package has them
		reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
			hs := make([]tlog.Hash, len(indexes))
			for i, index := range indexes {
				hs[i] = stored[index]
			}
			return hs, nil
		})
		size := int64(0)
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			n := rapid.SampledFrom([]int{1, 2, 3, 100, 255, 256, 257, 700}).Draw(t, "leaves")
			forget := rapid.Bool().Draw(t, "read again")
			err := e.db.Update(func(txn *badger.Txn) error {
				if forget {
					e.log.edge = nil
				}
				tr, err := e.log.currentTree(txn)
				if err != nil {
					return err
				}
				for range n {
					line := fmt.Appendf(nil, "record %d", size)
					tr.add(tlog.RecordHash(line))
					hs, err := tlog.StoredHashes(size, line, reader)
					if err != nil {
						return err
					}
					stored = append(stored, hs...)
					size++
				}
				e.log.edge = tr
				return tr.save(txn)
			})
			if err != nil {
				t.Fatal(err)
			}
			want, err := tlog.TreeHash(size, reader)
			if err != nil {
				t.Fatal(err)
			}
			e.db.View(func(txn *badger.Txn) error {
				head, err := storedHead(txn)
				if err != nil || head.Size != uint64(size) || head.Root != want {
					t.Fatal(head, err, want)
				}
				at := rapid.Int64Range(0, size).Draw(t, "root at")
				older, _ := tlog.TreeHash(at, reader)
				if got, err := rootAt(txn, uint64(at)); err != nil || at > 0 && got != older {
					t.Fatal(at, got, err)
				}
				return nil
			})
		}
		e.db.View(func(txn *badger.Txn) error {
			for _, tile := range tlog.NewTiles(tileBits, 0, size) {
				want, err := tlog.ReadTileData(tile, reader)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := db.Get(txn, keyTile(tile.L, uint64(tile.N))); err != nil || string(got) != string(want) {
					t.Fatalf("%s: %d bytes, want %d, %v", tile.Path(), len(got), len(want), err)
				}
			}
			return nil
		})
	})
}

// The tree has as many levels as its size asks for, in one step or in many.
func TestTreeOfThreeLevels(t *testing.T) {
	e := openLog(t, newPlace(t))
	const size = tileWidth*tileWidth + 300
	grown, roots := &tree{}, map[uint64]tlog.Hash{}
	for i := range uint64(size) {
		grown.add(tlog.RecordHash(db.Number(nil, i)))
		if i%9973 == 0 || i > size-3 {
			roots[grown.size] = grown.root()
		}
	}
	if err := e.db.Update(grown.save); err != nil {
		t.Fatal(err)
	}
	err := e.db.View(func(txn *badger.Txn) error {
		for at, want := range roots {
			if got, err := rootAt(txn, at); err != nil || got != want {
				t.Errorf("of %d: %v", at, err)
			}
		}
		again, err := loadTree(txn, size)
		if err != nil || again.head() != grown.head() {
			t.Error(err)
		}
		proof, err := tlog.ProveRecord(size, 65535, hashes{txn})
		if err != nil || tlog.CheckRecord(proof, size, grown.root(), 65535, tlog.RecordHash(db.Number(nil, 65535))) != nil {
			t.Error(err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A leaf is the RFC 6962 hash of the line that is exported.
func TestLeafIsTheExportedLine(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	s := openLog(t, at(home))
	logtest.Record(t, home, "run1", 300)
	if _, err := s.Ingest(t.Context()); err != nil {
		t.Fatal(err)
	}
	var last Head
	for seq := uint64(1); seq <= 301; seq++ {
		in, err := s.Inclusion(t.Context(), seq, 0)
		if err != nil {
			t.Fatal(err)
		}
		if in.Leaf != tlog.RecordHash(in.Line) || tlog.CheckRecord(in.Proof, int64(in.Head.Size), in.Head.Root, int64(seq-1),
			in.Leaf) != nil {
			t.Fatalf("record %d: %s", seq, in.Line)
		}
		last = in.Head
	}
	n := 0
	for line, err := range s.Lines(t.Context(), Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if in, err := s.Inclusion(t.Context(), uint64(n), 0); err != nil || string(in.Line) != string(line) {
			t.Fatalf("record %d is exported as %s and proved as %s, %v", n, line, in.Line, err)
		}
	}
	if head, err := s.Head(t.Context()); err != nil || head != last || n != 301 {
		t.Errorf("%v %v %d", head, err, n)
	}
	if _, err := s.Inclusion(t.Context(), 302, 0); !errors.Is(err, wire.ErrInvalid) {
		t.Errorf("a record that is not there: %v", err)
	}
	if _, err := s.Inclusion(t.Context(), 1, 302); !errors.Is(err, wire.ErrInvalid) {
		t.Errorf("a log that is not there: %v", err)
	}
	older, newer, proof, err := s.Consistency(t.Context(), 17, 0)
	if err != nil || tlog.CheckTree(proof, 301, newer.Root, 17, older.Root) != nil {
		t.Error(older, newer, err)
	}
}
