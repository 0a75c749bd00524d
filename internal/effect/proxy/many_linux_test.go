package proxy_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
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
