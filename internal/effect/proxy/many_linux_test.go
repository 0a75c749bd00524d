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

// leastOfPlain is what a connection under a policy carries, at least, of what a plain one
// carries for the same time of the processors. That bounds throughput on a machine that
// does nothing else, and is known on one that does.
const leastOfPlain = 0.4

// However much goes through connections, in whichever direction, little of it is held,
// and carrying it takes no more of the processors than is promised. What disturbs a
// round makes it longer: rounds are repeated until the least of each side show it.
//
//rlp:holds N16
func TestMuchThroughOneConnection(t *testing.T) {
	const mostMemory, mostRounds = 16 << 20, 12
	size := 512 << 20 // two rounds in two directions are 2 GiB
	if testing.Short() {
		size = 128 << 20
	}
	for _, direction := range []string{"drain", "fill"} {
		w := newWorld(t, map[string]proxy.Ways{"api.test:5432": proxy.Bytes})
		m, served := &memory{}, make(chan int)
		w.tcp("5432", func(c net.Conn) {
			n := m.serve(c, direction, size)
			_ = c.Close()
			served <- n
		})
		client := func(to string) string { return fmt.Sprintf("%s %s %d", direction, to, size) }
		least := [2]time.Duration{time.Hour, time.Hour}
		for round := range mostRounds {
			began := processor(t)
			out, err := exec.Command("/proc/self/exe", "client", client(w.lead[public.String()+":5432"])).CombinedOutput()
			if n := <-served; err != nil || n != size {
				t.Fatalf("%v %s", err, out)
			}
			between := processor(t)
			through := w.run(netnstest.Config{User: true}, "/proc/self/exe", "client", client("api.test:5432"))
			if n := <-served; through != string(out) || n != size {
				t.Fatalf("%q and %q", through, out)
			}
			least = [2]time.Duration{min(least[0], between-began), min(least[1], processor(t)-between)}
			if round > 0 && float64(least[0]) >= leastOfPlain*float64(least[1]) {
				break
			}
		}
		ratio, more := float64(least[0])/float64(least[1]), m.peak.Load()-m.least.Load()
		t.Logf("%s: %v of the processors, and %v for a plain connection: %.2f; %d KiB more memory", direction, least[1],
			least[0], ratio, more>>10)
		if ratio < leastOfPlain || more > mostMemory {
			t.Errorf("%s: %.2f of a plain connection, %d bytes more memory", direction, ratio, more)
		}
	}
}

// A memory is what this process holds while bytes go through it.
type memory struct{ least, peak atomic.Int64 }

// serve sends or takes size bytes, and says how many there were.
func (m *memory) serve(c net.Conn, direction string, size int) (n int) {
	buf, do := make([]byte, 256<<10), c.Write
	if direction == "fill" {
		do = func(b []byte) (int, error) { return io.ReadFull(c, b) }
	}
	for ; n < size; n += len(buf) {
		if _, err := do(buf); err != nil {
			return n
		}
		if n%(64<<20) == 0 {
			runtime.GC() // what nobody holds is not counted
			var s runtime.MemStats
			runtime.ReadMemStats(&s)
			now := int64(s.HeapAlloc + s.StackInuse)
			m.least.CompareAndSwap(0, now)
			m.peak.Store(max(m.peak.Load(), now))
		}
	}
	return n
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
