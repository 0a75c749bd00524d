//go:build !amd64

package journal

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// storeWord makes x be there from p on, which is aligned, whole and
// after all that was stored before.
func storeWord(p *byte, x uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], x)
	atomic.StoreUint64((*uint64)(unsafe.Pointer(p)), binary.NativeEndian.Uint64(b[:]))
}
