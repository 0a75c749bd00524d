package hostcalls

import (
	"unsafe"
	"weak"
)

// A spare is memory of an earlier answer, which nobody needs by the time of the
// next one. It is there as long as no collection has taken it.
type spare struct {
	first weak.Pointer[byte]
	room  int
}

func spareOf(b []byte) spare { return spare{weak.Make(unsafe.SliceData(b)), cap(b)} }

// slice is the memory, empty, if it is there and large enough.
func (s spare) slice(room int) []byte {
	if s.room < room {
		return nil
	}
	first := s.first.Value()
	if first == nil {
		return nil
	}
	return unsafe.Slice(first, s.room)[:0]
}
