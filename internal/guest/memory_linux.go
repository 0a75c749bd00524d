package guest

import "syscall"

// reserves says that reserve is nil only where there is no memory.
const reserves = true

// reserve maps n bytes that cost nothing until they are touched, so that a
// memory grows in place. It is nil when the system will not: then growing
// copies.
func reserve(n uint64) []byte {
	if n == 0 || n > 1<<32 {
		return nil
	}
	b, err := syscall.Mmap(-1, 0, int(n), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	return b
}

func release(b []byte) {
	if b != nil {
		_ = syscall.Munmap(b)
	}
}
