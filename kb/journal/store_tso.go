//go:build amd64

package journal

import "unsafe"

// storeWord makes x be there from p on, which is aligned, after all
// that was stored before. This processor stores in order and an aligned word
// whole, so that it takes no more than a store: a process that dies, or reads
// along, sees all of it or nothing.
func storeWord(p *byte, x uint64) { *(*uint64)(unsafe.Pointer(p)) = x }
