//go:build amd64 && !race

package gate

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// add adds without a fence, which costs a call three nanoseconds. This processor
// makes stores seen in their order, but later than loads that follow.
func add(at *atomic.Uint32, n uint32) { *(*uint32)(unsafe.Pointer(at)) += n }

// fence has every goroutine pass a fence: to read these figures the world is
// stopped, and whatever runs Go stops by an atomic exchange.
func fence() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
}
