package kb

import (
	"runtime/debug"
	"runtime/metrics"
)

// garbage bounds how much the heap grows while journals are taken in, before it is
// collected and given back to the system. Badger's tables in the making are tens of
// megabytes each, and the collector by itself lets as much garbage come together as
// is in use. Short intakes never come so far.
const garbage = 16 << 20

// A heapWatch is how large the heap was when it was last collected.
type heapWatch struct{ since uint64 }

// tidy collects what has come together since it was first called.
func (w *heapWatch) tidy() {
	now := heapSize()
	if w.since != 0 && now <= w.since+garbage {
		return
	}
	if w.since != 0 {
		debug.FreeOSMemory()
		now = heapSize()
	}
	w.since = now
}

// heapSize is what the heap has of the system.
func heapSize() uint64 {
	s := [...]metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(s[:])
	return s[0].Value.Uint64() + s[1].Value.Uint64()
}
