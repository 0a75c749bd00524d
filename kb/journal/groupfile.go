package journal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
)

const (
	groupPrefix = ".group-"
	// maxGroup is how long a group file becomes before the journals are synced
	// themselves, and it begins anew.
	maxGroup   = 8 << 20
	groupChunk = 1 << 20
	// maxPiece is what a group file takes of one journal at a time.
	maxPiece = 256 << 10
	// maxRound bounds what it takes of all of them.
	maxRound = 4 << 20
)

// A group file is a chain of pieces, each a multiple of 8 bytes long, little
// endian, which ends at the first that is not whole or of another epoch than
// the first:
//
//	 0  u32 length of the piece, u32 epoch
//	 8  u32 sum (see frames), u16 length of the run's id, 2 bytes zero
//	16  u64 where in the journal of the run the bytes belong
//	24  u64 how many there are
//	32  the run's id, filled up to 8 bytes, and the bytes
const pieceHeader = 32

// groupSeed is the name under which the sums of pieces have their seed; no run
// can have it.
const groupSeed = ".group"

// A groupFile stands for the files of the journals in one directory until they
// are synced. It is used by whoever syncs.
type groupFile struct {
	file  *os.File
	disk  Disk
	dir   string
	seed  uint64
	epoch uint32
	off   int64 // where the next piece goes
	alloc int64 // what was filled with zeros: to write there changes no metadata
	named bool

	limit   int64
	buf     []byte          // of this round
	err     error           // of the last round
	lacking map[string]bool // the runs whose own files are not synced
}

// newGroupFile makes a group file in dir and locks it for as long as this
// process lives.
func newGroupFile(dir string, disk Disk, key *secret) (*groupFile, error) {
	f, err := os.CreateTemp(dir, groupPrefix) // 0600
	if err != nil {
		return nil, err
	}
	var epoch [4]byte
	rand.Read(epoch[:])
	g := &groupFile{
		file: f, disk: disk, dir: dir, seed: key.seed(groupSeed),
		epoch: binary.LittleEndian.Uint32(epoch[:]), lacking: map[string]bool{}, limit: maxGroup,
	}
	err = lockWriter(f)
	if err == nil {
		err = stillThere(f, f.Name()) // who replays may have come before the lock
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return g, nil
}

// add puts what is new of j into this round. It is false when that has to be
// brought to the disk by j itself.
func (g *groupFile) add(j *Journal) bool {
	n := j.off - j.synced
	if j.synced < j.base || n > maxPiece || len(g.buf) > maxRound {
		return false
	}
	run := j.run()
	size := pieceHeader + pad8(len(run)) + int(n)
	at := len(g.buf)
	g.buf = append(g.buf, make([]byte, size)...)
	p := g.buf[at:]
	if !copyMapped(p[size-int(n):], j.win[j.synced-j.base:j.off-j.base]) {
		g.buf = g.buf[:at]
		return false
	}
	copy(p[pieceHeader:], run)
	commit := uint64(size) | uint64(g.epoch)<<32
	head := uint64(len(run)) << 32
	binary.LittleEndian.PutUint64(p, commit)
	binary.LittleEndian.PutUint64(p[16:], uint64(j.synced))
	binary.LittleEndian.PutUint64(p[24:], uint64(n))
	binary.LittleEndian.PutUint64(p[8:], head|uint64(sum(g.seed, commit, head, p[16:])))
	g.lacking[run] = true
	return true
}

// copyMapped copies from a mapping, whose file may be cut: then it is false.
func copyMapped(to, from []byte) (ok bool) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			ok = false
		}
	}()
	copy(to, from)
	return true
}

// flush brings the round to the disk, and leaves in err how that went.
func (g *groupFile) flush() {
	if len(g.buf) == 0 {
		g.err = nil
		return
	}
	g.err = g.write()
	g.buf = g.buf[:0]
}

func (g *groupFile) write() error {
	end := g.off + int64(len(g.buf))
	if end > g.limit {
		return g.settle() // which is all that this round wants
	}
	if end > g.alloc {
		to := (end + groupChunk - 1) / groupChunk * groupChunk
		if err := writeZeros(g.file, make([]byte, zeroChunk), g.alloc, to); err != nil {
			return err
		}
		g.alloc = to
	}
	if _, err := g.file.WriteAt(g.buf, g.off); err != nil {
		return err
	}
	if err := g.disk.SyncFile(g.file); err != nil {
		return err
	}
	if !g.named {
		if err := g.disk.SyncDir(g.dir); err != nil {
			return err
		}
		g.named = true
	}
	g.off = end
	return nil
}

// settle syncs the journals themselves, and begins the group file anew.
func (g *groupFile) settle() error {
	for run := range g.lacking {
		f, err := os.OpenFile(filepath.Join(g.dir, run), os.O_RDONLY|oNoFollow|oNonBlock, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue // its records are in the log
		}
		if err != nil {
			return err
		}
		if err := errors.Join(g.disk.SyncFile(f), f.Close()); err != nil {
			return fmt.Errorf("syncing the journal of run %s: %w", run, err)
		}
	}
	if err := g.disk.SyncDir(g.dir); err != nil {
		return err
	}
	clear(g.lacking)
	g.off = 0
	g.epoch++
	return nil
}

// close syncs what the group file stands for and removes it.
func (g *groupFile) close() error {
	err := g.settle()
	if err == nil {
		err = os.Remove(g.file.Name())
	}
	if err = errors.Join(err, g.file.Close()); err != nil {
		return fmt.Errorf("closing a group file: %w", err)
	}
	return nil
}
