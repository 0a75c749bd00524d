package guest

import (
	"syscall"
	"unsafe"
)

// stackSpare is opened beyond what may be used: the engine looks before a frame is
// made, and what it does in between is less.
const stackSpare = 2 * pageSize

// reserveStack maps as many addresses as the largest stack takes, and makes the
// last of them memory.
func reserveStack(room uint64) []byte {
	b, err := syscall.Mmap(-1, 0, mostStack+2*stackSpare, syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	from := len(b) - int(room)&^(pageSize-1) - stackSpare
	if syscall.Mprotect(b[from:], syscall.PROT_READ|syscall.PROT_WRITE) != nil {
		releaseStack(b)
		return nil
	}
	return b
}

func releaseStack(b []byte) { release(b) }

// forget gives memory back that nobody reads any more.
func forget(b []byte) { _ = syscall.Madvise(b, syscall.MADV_DONTNEED) }

// touched is how much of b is memory by now.
func touched(b []byte) uint64 {
	page := syscall.Getpagesize()
	there := make([]byte, (len(b)+page-1)/page)
	if _, _, errno := syscall.Syscall(syscall.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), uintptr(unsafe.Pointer(&there[0]))); errno != 0 {
		return uint64(len(b))
	}
	for i, t := range there {
		if t&1 != 0 {
			return uint64(len(b) - i*page)
		}
	}
	return 0
}
