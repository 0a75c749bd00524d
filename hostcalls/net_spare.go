package hostcalls

import (
	"unsafe"
	"weak"
)

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
