package guest

import "syscall"

// reserves says that reserve is nil only where there is no room, and open false
// only where there is no memory.
const reserves = true

// guard is address space behind a memory that is never anybody's, so that two
// guests' memories are not neighbours.
const guard = pageSize

// reserve maps n bytes of addresses and none of memory, so that a memory grows in
// place. They count for nothing until they are opened: not for the system's bound
// on what processes were promised (vm.overcommit_memory), be a thousand guests
// allowed 4 GiB each. It is nil when the system will not: then growing copies.
func reserve(n uint64) []byte {
	if n == 0 || n > 1<<32 {
		return nil
	}
	b, err := syscall.Mmap(-1, 0, int(n)+guard, syscall.PROT_NONE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	return b
}

// open makes the first n bytes of what was reserved memory, which is zero and
// there from its first use on.
func open(b []byte, n uint64) bool {
	return syscall.Mprotect(b[:n], syscall.PROT_READ|syscall.PROT_WRITE) == nil
}

func release(b []byte) {
	if b != nil {
		_ = syscall.Munmap(b)
	}
}
