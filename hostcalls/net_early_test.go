package hostcalls

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"

	"runloop.dev/rlp/internal/effect/egress"
)

// A server that redirects before it was asked anything meets a request that is
// still being sent: its headers and its body are the connection's until it is
// done with them, and the next request is another. Run with -race.
func TestServersThatAnswerTooEarly(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for i := 0; ; i++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { early(c, i%2 == 0) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); conns.Wait() })
	w := newWorld(t)
	r := netRig(t, w, "[capabilities]\nnet = { hosts = [\"api.example.com\", \"other.example\"], allow_http = true }\n")
	client := egress.New(egress.Config{
		Resolve: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{publicAddr}, nil },
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, l.Addr().String())
		},
	})
	t.Cleanup(client.Close)
	r.host.cfg.HTTP = client
	r.mem = make([]byte, 4<<20)
	text := `{"method":"POST","url":"http://api.example.com/","headers":{"Authorization":"a","X-Mine":"b","Accept":"c"},"timeout_ms":5000}`
	copy(r.mem[16:], text)
	answered := 0
	for i := range 50 {
		r.mem[1024] = byte(i) // the memory is the guest's again
		stack := []uint64{16, uint64(len(text)), 1024, 1 << 20, outAt, outRoom}
		if err := r.funcs["net_http"].Call(t.Context(), r.mem, stack); err != nil {
			t.Fatal(err)
		}
		switch n := int64(stack[0]); {
		case n > 0:
			answered++
		case n != -29:
			t.Fatalf("answered %d", n)
		}
	}
	if answered == 0 {
		t.Error("no answer came through")
	}
}

// early answers who connects, whatever is asked, then reads some of it and is
// gone.
func early(c net.Conn, redirect bool) {
	defer c.Close()
	status := "200 OK"
	if redirect {
		status = "307 Temporary Redirect\r\nLocation: http://other.example/"
	}
	fmt.Fprintf(c, "HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status)
	_, _ = io.CopyN(io.Discard, c, 1<<20)
}
