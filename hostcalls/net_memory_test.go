package hostcalls

import (
	"io"
	"net/http"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// A large body is in the host's memory once, whether or not the server says how
// large it is, and however often it is asked for.
func TestALargeBodyIsInMemoryOnce(t *testing.T) {
	const size = MaxResponseBody
	w := apiWorld(t)
	piece := make([]byte, 64<<10)
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sized" {
			rw.Header().Set("Content-Length", strconv.Itoa(size))
		}
		for range size / len(piece) {
			if _, err := rw.Write(piece); err != nil {
				return
			}
		}
	}
	for _, path := range []string{"/sized", "/chunked"} {
		r := netRig(t, w, apiPolicy)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range 3 {
			text := `{"url":"https://api.example.com` + path + `"}`
			copy(r.mem[16:], text)
			stack := []uint64{16, uint64(len(text)), 0, 0, outAt, outRoom}
			if err := r.funcs["net_http"].Call(t.Context(), r.mem, stack); err != nil || int64(stack[0]) < size {
				t.Fatalf("%s: %d, %v", path, int64(stack[0]), err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if live := int64(after.HeapAlloc) - int64(before.HeapAlloc); live > size+size/16 {
			t.Errorf("%s: %d MiB live for a body of %d", path, live>>20, size>>20)
		}
		if total := after.TotalAlloc - before.TotalAlloc; total > 4*size {
			t.Errorf("%s: %d MiB allocated for three bodies of %d", path, total>>20, size>>20)
		}
	}
}

// The largest body is sent from one copy of it, which the call gives up; a
// larger one is not copied at all.
func TestALargeBodyIsSentFromOneCopy(t *testing.T) {
	const mostLive = 4 << 20
	w := apiWorld(t)
	got := int64(0)
	w.handler = func(_ http.ResponseWriter, r *http.Request) { got, _ = io.Copy(io.Discard, r.Body) }
	r := netRig(t, w, apiPolicy)
	r.mem = make([]byte, MaxRequestBody+1<<20)
	text := `{"method":"POST","url":"https://api.example.com/"}`
	copy(r.mem[16:], text)
	send := func(size int) (number int64, allocated, live uint64) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		stack := []uint64{16, uint64(len(text)), 1024, uint64(size), outAt, outRoom}
		if err := r.funcs["net_http"].Call(t.Context(), r.mem, stack); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		allocated = after.TotalAlloc - before.TotalAlloc
		until := time.Now().Add(10 * time.Second)
		for { // the connection's own goroutine lets go of what it sent a moment after the answer
			runtime.GC()
			runtime.ReadMemStats(&after)
			live = after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc)
			if live <= mostLive || time.Now().After(until) {
				return int64(stack[0]), allocated, live
			}
		}
	}
	if n, allocated, live := send(MaxRequestBody); n < 0 || got != MaxRequestBody || allocated > MaxRequestBody+32<<20 || live > mostLive {
		t.Errorf("%d, %d bytes arrived, %d allocated, %d live", n, got, allocated, live)
	}
	if n, allocated, _ := send(MaxRequestBody + MaxRequestHead + 1); n != -1 || allocated > 1<<20 {
		t.Errorf("more than the most: %d, %d allocated", n, allocated)
	}
	if n, _, _ := send(MaxRequestBody + 1); n != -1 {
		t.Errorf("one byte more: %d", n)
	}
}
