package journal

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// A grower keeps the file longer than what is written, from a goroutine of its
// own once the run has shown that it records much.
type grower struct {
	mu    sync.Mutex // held while the file grows or the window moves
	alloc int64      // under mu: the file's length
	ahead bool       // under mu: a goroutine is about to grow the file
	wg    sync.WaitGroup
	zeros []byte // under mu
	small bool   // pages are dirtied one by one: see [Journal.fresh]
}

// more makes room for n bytes at j.off and keepFree bytes after them.
func (j *Journal) more(n, keepFree int64) error {
	if err := j.usable(); err != nil {
		return err
	}
	need := j.off + n + keepFree
	if need > j.max {
		return ErrFull
	}
	j.grow.mu.Lock()
	defer j.grow.mu.Unlock()
	if need > j.base+int64(len(j.win)) {
		if err := j.moveWindow(); err != nil {
			return err
		}
	}
	alloc := j.grow.alloc
	if need > alloc {
		if err := j.extend(need); err != nil {
			return err
		}
		alloc = j.grow.alloc
	}
	limit := min(alloc-reserve, j.base+int64(len(j.win))-reserve)
	mid := j.off + n + (limit-j.off-n)/2 // asked again halfway, to grow in time
	if limit-j.off > chunkAfter(alloc)/2 {
		j.soft = max(mid, j.off+n)
		return nil
	}
	j.soft = max(limit, j.off+n)
	if !j.grow.ahead && alloc < j.max {
		j.grow.ahead = true
		j.grow.wg.Go(j.growAhead)
	}
	return nil
}

// chunkAfter is by how much a file of the given length grows.
func chunkAfter(alloc int64) int64 { return min(max(alloc, firstChunk), maxChunk) }

// extend allocates the next chunk, at least up to need. The caller holds the lock.
func (j *Journal) extend(need int64) error {
	alloc := j.grow.alloc
	info, err := j.file.Stat()
	if err != nil {
		return j.fail(err)
	}
	if info.Size() != alloc {
		return j.fail(fmt.Errorf("it is %d bytes long and was left with %d", info.Size(), alloc))
	}
	to := min(max(alloc+chunkAfter(alloc), (need+pageSize-1)/pageSize*pageSize), j.max)
	if err := allocate(j.file, alloc, to); err != nil {
		// What a failed call has added is not ours: cut it off, or the next check of the length fails.
		if cut := j.file.Truncate(alloc); cut != nil {
			return j.fail(errors.Join(err, cut))
		}
		return err
	}
	j.grow.alloc = to
	return nil
}

// growAhead extends the file behind the writer's back and touches the new
// pages. What fails here fails again, and is reported, when the room is needed.
func (j *Journal) growAhead() {
	j.grow.mu.Lock()
	defer j.grow.mu.Unlock()
	j.grow.ahead = false
	from := j.grow.alloc
	if j.extend(from) != nil {
		return
	}
	to := min(j.grow.alloc, j.base+int64(len(j.win)))
	if from = max(from, j.base); from < to {
		j.fresh(from, to)
	}
}

// fresh gets the pages of [from, to) ready to be written. Those that were
// written already come in large pieces and fault in six times faster than those
// of blocks that are only reserved; but each sync writes a large piece whole, so
// that a journal that is synced as it grows does without. The caller holds the lock.
func (j *Journal) fresh(from, to int64) {
	if !j.grow.small {
		if j.grow.zeros == nil {
			j.grow.zeros = make([]byte, zeroChunk)
		}
		if writeZeros(j.file, j.grow.zeros, from, to) != nil {
			return
		}
	}
	prefault(j.win[from-j.base : to-j.base])
}

// moveWindow maps the file from where the writer is. The caller holds the lock.
func (j *Journal) moveWindow() error {
	base := j.off / pageSize * pageSize
	win, err := mapFile(j.file, base)
	if err != nil {
		return fmt.Errorf("mapping the journal: %w", err)
	}
	if j.grow.small {
		onePageAtATime(win)
	}
	old := j.win
	j.win, j.base, j.recent = win, base, [repeatable]written{}
	if old != nil {
		j.grow.wg.Go(func() { unmap(old) }) // takes as long as it has pages
	}
	return nil
}

// mapFile maps windowBytes of f from base on, beyond its end if need be: an
// access there faults until the file has grown.
func mapFile(f *os.File, base int64) ([]byte, error) {
	p, err := unix.Mmap(int(f.Fd()), base, windowBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return p, os.NewSyscallError("mmap", err)
}

func unmap(p []byte) error {
	if p == nil {
		return nil
	}
	return os.NewSyscallError("munmap", unix.Munmap(p))
}
