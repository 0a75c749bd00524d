//go:build !race

package hostcalls

import (
	"bytes"
	"runtime"
	"testing"
)

// An answer that says how long it is has memory of its length, and no more; a
// small one leaves its memory to the next, a large one does not.
func TestAnAnswerHasMemoryOfItsLength(t *testing.T) {
	for _, size := range []int{64 << 10, 3 << 20} {
		body := make([]byte, size)
		a := &answering{status: 200, length: int64(size), body: bytes.NewReader(body)}
		r := answeredRig(t, a)
		used := func() uint64 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s := []uint64{16, uint64(copy(r.mem[16:], getAPI)), 0, 0, outAt, outRoom}
			if err := r.funcs["net_http"].Call(t.Context(), r.mem, s); err != nil || int64(s[0]) < int64(size) {
				t.Fatalf("%d, %v", int64(s[0]), err)
			}
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		if n := used(); n > uint64(size)*3/2+16<<10 {
			t.Errorf("%d bytes for a body of %d", n, size)
		}
		a.body = bytes.NewReader(body)
		if n := used(); size <= smallAnswer && n > uint64(size)/2 {
			t.Errorf("%d bytes for the second body of %d", n, size)
		}
		if kept := cap(r.host.out); kept > 2*smallAnswer {
			t.Errorf("%d bytes are kept of an answer of %d", kept, size)
		}
	}
}
