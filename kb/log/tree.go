package log

import (
	"crypto/sha256"
	"fmt"
	"math/bits"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/mod/sumdb/tlog"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// A tile holds the hashes of up to 256 subtrees side by side: 256 leaves on
// level 0, the roots of 256 full tiles of the level below on all others.
const (
	tileBits  = 8
	tileWidth = 1 << tileBits
	tileBytes = tileWidth * tlog.HashSize
)

// A Head is the audit log at one size: how many records, and the root hash of
// the tree that they make (RFC 6962; the leaf of a record is the hash of its
// exported line, without a line end).
type Head struct {
	Size uint64   `cbor:"1,keyasint"`
	Root [32]byte `cbor:"2,keyasint"`
}

// A tree is the right edge of the log's tree: what is needed to make it longer.
type tree struct {
	size  uint64
	nodes [64]tlog.Hash // roots of the full subtrees that make it up, by the bits of size
	tiles [8][]byte     // the last tile of each level, as far as it is filled
	dirty [8]bool       // the last tile has hashes that were not stored yet
	full  []fullTile    // tiles that were filled and not stored yet
}

type fullTile struct {
	level int
	n     uint64
	p     []byte
}

// add makes the tree longer by one leaf. Each node is hashed once: every eighth
// level's go into tiles.
func (t *tree) add(leaf tlog.Hash) {
	h, level := leaf, 0
	t.put(0, h)
	for ; t.size>>level&1 == 1; level++ {
		h = tlog.NodeHash(t.nodes[level], h)
		if (level+1)%tileBits == 0 {
			t.put((level+1)/tileBits, h)
		}
	}
	t.nodes[level] = h
	t.size++
}

// put puts a hash into the last tile of a level, where there is always room.
func (t *tree) put(level int, h tlog.Hash) {
	if t.tiles[level] == nil {
		t.tiles[level] = make([]byte, 0, tileBytes)
	}
	t.tiles[level] = append(t.tiles[level], h[:]...)
	t.dirty[level] = true
	if len(t.tiles[level]) < tileBytes {
		return
	}
	n := t.size >> (tileBits * level) >> tileBits
	t.full = append(t.full, fullTile{level, n, t.tiles[level]})
	t.tiles[level], t.dirty[level] = nil, false
}

// root is the root hash of the tree; that of the empty one is the hash of nothing.
func (t *tree) root() tlog.Hash {
	if t.size == 0 {
		return sha256.Sum256(nil)
	}
	level := bits.TrailingZeros64(t.size)
	h := t.nodes[level]
	for rest := t.size &^ (1 << level); rest != 0; rest &= rest - 1 {
		h = tlog.NodeHash(t.nodes[bits.TrailingZeros64(rest)], h)
	}
	return h
}

func (t *tree) head() Head { return Head{t.size, t.root()} }

// clone is a tree that grows on its own. What is in the tiles is shared: it is
// only ever appended to, and what lies behind the end of one is nobody's.
func (t *tree) clone() *tree {
	c := *t
	c.full = nil
	for i, p := range c.tiles {
		if p != nil {
			c.tiles[i] = append(make([]byte, 0, tileBytes), p...)
		}
	}
	return &c
}

// save puts what has changed into the database: the tiles that were filled, the
// last one of each level, and the head.
func (t *tree) save(txn *badger.Txn) error {
	for _, f := range t.full {
		if err := txn.Set(keyTile(f.level, f.n), f.p); err != nil {
			return err
		}
	}
	for level, p := range t.tiles {
		if !t.dirty[level] {
			continue
		}
		n := t.size >> (tileBits * level) >> tileBits
		if err := txn.Set(keyTile(level, n), append([]byte(nil), p...)); err != nil {
			return err
		}
	}
	t.full, t.dirty = nil, [8]bool{}
	return txn.Set(keyHead(), t.head().encode())
}

// loadTree reads the right edge of the tree that is stored, of size leaves.
func loadTree(txn *badger.Txn, size uint64) (*tree, error) {
	t := &tree{size: size}
	for level := 0; size>>(tileBits*level) > 0; level++ {
		count := size >> (tileBits * level)
		width := int(count % tileWidth)
		if width == 0 {
			continue
		}
		p, err := readTile(txn, level, count>>tileBits, width)
		if err != nil {
			return nil, err
		}
		t.tiles[level] = append(make([]byte, 0, tileBytes), p...)
		at := 0
		for b := tileBits - 1; b >= 0; b-- {
			if width>>b&1 == 1 {
				t.nodes[tileBits*level+b] = subtree(p[at*tlog.HashSize : (at+1<<b)*tlog.HashSize])
				at += 1 << b
			}
		}
	}
	return t, nil
}

// subtree is the hash over a power of two of hashes.
func subtree(p []byte) tlog.Hash {
	if len(p) == tlog.HashSize {
		return tlog.Hash(p)
	}
	half := len(p) / 2
	return tlog.NodeHash(subtree(p[:half]), subtree(p[half:]))
}

// readTile reads the first width hashes of a tile.
func readTile(txn *badger.Txn, level int, n uint64, width int) ([]byte, error) {
	p, err := db.Get(txn, keyTile(level, n))
	if err != nil {
		return nil, err
	}
	if len(p) < width*tlog.HashSize {
		return nil, wire.Damagedf("tile %d of level %d of the log's tree has %d bytes, and %d hashes belong there", n, level,
			len(p), width)
	}
	return p[:width*tlog.HashSize], nil
}

// storedHead is the head that the database says the log has.
func storedHead(txn *badger.Txn) (Head, error) {
	p, err := db.Get(txn, keyHead())
	if err != nil {
		return Head{}, err
	}
	if p == nil {
		return (&tree{}).head(), nil
	}
	if len(p) != 8+tlog.HashSize {
		return Head{}, wire.Damagedf("the head of the log's tree has %d bytes", len(p))
	}
	return Head{db.TailNumber(p[:8]), [32]byte(p[8:])}, nil
}

func (h Head) encode() []byte { return append(db.Number(nil, h.Size), h.Root[:]...) }

// hashes reads nodes of the stored tree, for proofs.
type hashes struct{ txn *badger.Txn }

// ReadHashes is [tlog.HashReader].
func (r hashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		t := tlog.TileForIndex(tileBits, index)
		p, err := readTile(r.txn, t.L, uint64(t.N), t.W)
		if err != nil {
			return nil, err
		}
		if found[i], err = tlog.HashFromTile(t, p, index); err != nil {
			return nil, fmt.Errorf("%w: %w", wire.ErrDamaged, err)
		}
	}
	return found, nil
}

// rootAt is the root of the first size leaves, by the tiles that are stored.
func rootAt(txn *badger.Txn, size uint64) (tlog.Hash, error) {
	if size == 0 {
		return sha256.Sum256(nil), nil
	}
	return tlog.TreeHash(int64(size), hashes{txn})
}

// A leafer makes leaves of records. It is for one goroutine.
type leafer struct {
	lines *audit.Transcoder
	buf   []byte // a zero byte and the line: what a leaf is the hash of
}

func newLeafer() (*leafer, error) {
	lines, err := audit.NewTranscoder()
	return &leafer{lines, make([]byte, 1, 2048)}, err
}

// leaf is [tlog.RecordHash] of the line of a record, given its stored form. The
// line is valid until the next.
func (l *leafer) leaf(stored []byte) (h tlog.Hash, line []byte, err error) {
	l.buf, err = l.lines.AppendLine(l.buf[:1], stored)
	if err != nil {
		return h, nil, err
	}
	return sha256.Sum256(l.buf), l.buf[1:], nil
}
