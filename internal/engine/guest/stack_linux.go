package guest

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"syscall"
	"unsafe"
)

const (
	// stackSpare is opened beyond what may be used: the engine looks before a frame is
	// made, and what it does in between is less.
	stackSpare = 2 * pageSize

	// stackKept is how much memory a stack keeps from one run to the next: to map
	// it anew, to take what is used of it page by page from the system and to give
	// that back takes several times as long as the rest of a small run.
	stackKept = 64 << 10

	// grain is what memory is looked at and cleared by.
	grain = 4 << 10
)

// region is as many addresses as the largest stack takes. The last part of them is
// opened, which is to say may be memory.
type region struct {
	all    []byte
	opened int
	used   int  // of what is kept, as far as was seen when a call was over
	deep   bool // more may have been used
}

func newRegion() *region {
	b, err := syscall.Mmap(-1, 0, mostStack+2*stackSpare, syscall.PROT_NONE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	_ = syscall.Madvise(b, syscall.MADV_NOHUGEPAGE) // the first frame is no reason for 2 MiB
	return &region{all: b}
}

// open lets room of it be used.
func (r *region) open(room uint64) bool {
	n := int(room)&^(pageSize-1) + stackSpare
	if n > r.opened {
		if syscall.Mprotect(r.all[len(r.all)-n:], syscall.PROT_READ|syscall.PROT_WRITE) != nil {
			return false
		}
		r.opened = n
	}
	return true
}

func (r *region) release() { release(r.all) }

// clear leaves nothing of what was seen of it, and little memory.
func (r *region) clear() bool {
	if r.deep && syscall.Madvise(r.all[len(r.all)-r.opened:len(r.all)-stackKept], syscall.MADV_DONTNEED) != nil {
		return false
	}
	clear(r.all[len(r.all)-r.used:])
	r.used, r.deep = 0, false
	return true
}

// forget gives memory back that nobody reads any more.
func forget(b []byte) { _ = syscall.Madvise(b, syscall.MADV_DONTNEED) }

// touched is how much of the region's end was used by a guest no frame of which is
// larger than that, in whole pages. Each frame holds where to return to, so that
// there is nothing beyond a gap as large as a frame: of what is kept, pages that are
// zero; of the rest, what is not memory.
func (r *region) touched(frame uint64) uint64 {
	var zeroes [grain]byte
	gap := 0
	for end := len(r.all); end > len(r.all)-stackKept; end -= grain {
		if gap += grain; !bytes.Equal(r.all[end-grain:end], zeroes[:]) {
			r.used, gap = max(r.used, len(r.all)-end+grain), 0
		}
		if uint64(gap) >= frame && gap > 0 {
			return uint64(r.used)
		}
	}
	r.deep = true
	if n := r.beyond(frame); n > 0 {
		r.used = stackKept
		return n
	}
	return uint64(r.used)
}

// beyond is touched for what is not kept; 0: nothing of it was used.
func (r *region) beyond(frame uint64) uint64 {
	end, lowest := len(r.all)-stackKept, len(r.all)-r.opened
	used, step := 0, max(int(min(frame, mostStack))&^(pageSize-1), pageSize)
	for end > lowest {
		begin := max(end-step, lowest)
		at := firstResident(r.all[begin:end])
		if at == end-begin {
			break
		}
		used, end = len(r.all)-begin-at, begin
		step *= 2 // what is deep took long to fill
	}
	return uint64(used)
}

// firstResident is where in b the first page is that is memory; len(b): none is.
func firstResident(b []byte) int {
	page := syscall.Getpagesize()
	there := make([]byte, ((len(b)+page-1)/page+7)&^7)
	if _, _, errno := syscall.Syscall(syscall.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
		uintptr(unsafe.Pointer(unsafe.SliceData(there)))); errno != 0 {
		return 0
	}
	for i := 0; i < len(there); i += 8 {
		if is := binary.LittleEndian.Uint64(there[i:]) & 0x0101010101010101; is != 0 { // the other bits say nothing
			return (i + bits.TrailingZeros64(is)/8) * page
		}
	}
	return len(b)
}
