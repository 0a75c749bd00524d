package proxy_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"runloop.dev/rlp/internal/effect/netns/netnstest"
	"runloop.dev/rlp/internal/effect/proxy"
)

// held is how much memory and how many descriptors this process has.
func held(t testing.TB) (bytes int64, descriptors int) {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return int64(m.HeapInuse + m.StackInuse), len(list)
}

// A connection on which nothing is said costs a few buffers and two descriptors;
// what was open is closed again.
func TestManyConnections(t *testing.T) {
	const count, mostBytes = 1000, 40 << 20
	w := newWorld(t, map[string]proxy.Ways{"api.test:5432": proxy.Bytes})
	heard := make(chan struct{}, count)
	w.tcp("5432", func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		heard <- struct{}{}
		_, _ = io.Copy(io.Discard, c)
	})
	bytes, descriptors := held(t)
	p := netnstest.Start(t, netnstest.Config{User: true}, "/proc/self/exe", "client",
		fmt.Sprintf("many api.test:5432 %d", count))
	s, err := proxy.Serve(p.Sockets, proxy.Config{Policy: w.policy, Outside: w.client, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for range count {
		<-heard
	}
	more, open := held(t)
	t.Logf("%d connections: %d KiB and %d descriptors each, of which one is the server's", count,
		(more-bytes)/count>>10, (open-descriptors)/count)
	if more-bytes > mostBytes || open-descriptors > 3*count+200 { // the third is the server's
		t.Errorf("%d connections: %d bytes, %d descriptors", count, more-bytes, open-descriptors)
	}
	s.Close(0)
	if out, err := p.Wait(); err != nil || out != fmt.Sprintf("held %d\n", count) {
		t.Errorf("%v: %s", err, out)
	}
	for range count {
		<-w.policy.done
	}
	w.client.Close()
	for range count { // the server's ends, which are closed by itself
		if _, open = held(t); open <= descriptors+50 {
			break
		}
		runtime.Gosched()
	}
	if open > descriptors+50 {
		t.Errorf("%d descriptors are left of %d", open, descriptors)
	}
}

// Slow connections, half-open ones, resets and those that say nothing leave neither a
// descriptor nor a goroutine behind.
func TestMessyConnections(t *testing.T) {
	const count = 1000
	w := newWorld(t, map[string]proxy.Ways{"api.test:5432": proxy.Bytes})
	w.tcp("5432", func(c net.Conn) { _, _ = io.Copy(c, struct{ io.Reader }{c}) })
	_, descriptors := held(t)
	routines := runtime.NumGoroutine()
	p := netnstest.Start(t, netnstest.Config{User: true}, "/proc/self/exe", "client",
		fmt.Sprintf("mess api.test:5432 %d", count))
	s, err := proxy.Serve(p.Sockets, proxy.Config{Policy: w.policy, Outside: w.client, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := p.Wait(); err != nil || out != fmt.Sprintf("heard %d\n", count/2) {
		t.Errorf("%v: %s", err, out)
	}
	s.Close(patience)
	open, left := 0, 0
	for range 100 * count { // the server's ends, which are closed by itself
		if _, open = held(t); open <= descriptors+20 {
			if left = runtime.NumGoroutine(); left <= routines+10 {
				break
			}
		}
		runtime.Gosched()
	}
	if open > descriptors+20 || left > routines+10 {
		t.Errorf("%d descriptors are left of %d, %d goroutines of %d", open, descriptors, left, routines)
	}
}

// processor is the time that this process and those that it has waited for had.
func processor(t *testing.T) (sum time.Duration) {
	t.Helper()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

// However much goes through connections, little of it is held, and carrying it takes no
// more than four times the processors of plain ones: that bounds throughput on a machine
// that does nothing else, and is known on one that does.
func TestMuchThroughOneConnection(t *testing.T) {
	const most = 16 << 20
	rounds, size := 4, 512<<20
	if testing.Short() {
		rounds, size = 2, 128<<20
	}
	w := newWorld(t, map[string]proxy.Ways{"api.test:5432": proxy.Bytes})
	var least, peak atomic.Int64
	w.tcp("5432", func(c net.Conn) {
		var m runtime.MemStats
		buf := make([]byte, 256<<10)
		for n := 0; n < size; n += len(buf) {
			if _, err := c.Write(buf); err != nil {
				return
			}
			if n%(64<<20) == 0 {
				runtime.GC() // what nobody holds is not counted
				runtime.ReadMemStats(&m)
				now := int64(m.HeapAlloc + m.StackInuse)
				least.CompareAndSwap(0, now)
				peak.Store(max(peak.Load(), now))
			}
		}
	})
	all := fmt.Sprintf("%d\n", size)
	least.Store(0)
	alone, took := time.Hour, time.Hour
	for range rounds {
		began := processor(t)
		plain := exec.Command("/proc/self/exe", "client", "drain "+w.lead[public.String()+":5432"])
		if out, err := plain.CombinedOutput(); err != nil || string(out) != all {
			t.Fatalf("%v %s", err, out)
		}
		alone = min(alone, processor(t)-began)
		began = processor(t)
		if out := w.run(netnstest.Config{User: true}, "/proc/self/exe", "client", "drain api.test:5432"); out != all {
			t.Fatal(out)
		}
		took = min(took, processor(t)-began)
	}
	more := peak.Load() - least.Load()
	t.Logf("%v of the processors, and %v for a plain connection: %.2f; %d KiB more memory", took, alone,
		float64(alone)/float64(took), more>>10)
	if took > 4*alone {
		t.Errorf("%v of the processors, and %v for a plain connection", took, alone)
	}
	if more > most {
		t.Errorf("%d bytes more memory", more)
	}
}

// What a connection under a policy carries in a second, and a plain one.
func BenchmarkThroughput(b *testing.B) {
	size := 1 << 30
	if testing.Short() {
		size = 1 << 24
	}
	for _, direction := range []string{"drain", "fill"} {
		t := &testing.T{}
		w := newWorld(t, map[string]proxy.Ways{"api.test:5432": proxy.Bytes})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					if direction == "fill" {
						_, _ = io.Copy(io.Discard, struct{ io.Reader }{c})
						return
					}
					for buf, n := make([]byte, 256<<10), 0; n < size; n += len(buf) {
						if _, err := c.Write(buf); err != nil {
							return
						}
					}
				}()
			}
		}()
		w.lead[public.String()+":5432"] = l.Addr().String()
		order := direction + " %s " + strconv.Itoa(size)
		b.Run(direction+"/plain", func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, err := do(direction, l.Addr().String(), strconv.Itoa(size)); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(direction+"/policy", func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				p := netnstest.Start(b, netnstest.Config{}, "/proc/self/exe", "client", fmt.Sprintf(order, "api.test:5432"))
				s, err := proxy.Serve(p.Sockets, proxy.Config{Policy: w.policy, Outside: w.client, Now: time.Now})
				if err != nil {
					b.Fatal(err)
				}
				if out, err := p.Wait(); err != nil || strings.Contains(out, "!") {
					b.Fatal(err, out)
				}
				s.Close(time.Minute)
			}
		})
	}
}
