package server

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A pipe listener accepts one end of each pipe: in a bubble of synctest, where time
// goes by when nobody has anything to do.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeListener) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// The head of a request has ten seconds and 64 KiB, and a connection on which
// nothing is asked two minutes, as docs/service.md has it.
func TestSlowHeads(t *testing.T) {
	const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, c := range map[string]struct {
		sent   string
		answer string        // of the status line; "": none
		closed time.Duration // when
	}{
		"nothing":      {"", "", 10 * time.Second},
		"half a head":  {request[:20], "400", 10 * time.Second},
		"a whole one":  {request, "204", 2 * time.Minute},
		"a large head": {request[:len(request)-2] + "X: " + strings.Repeat("x", 70<<10) + "\r\n\r\n", "431", 0},
		"as large as it may be": {
			request[:len(request)-2] + "X: " + strings.Repeat("x", 60<<10) + "\r\n\r\n", "204",
			2 * time.Minute,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
			server := overHTTP(http.HandlerFunc(func(w http.ResponseWriter,
				_ *http.Request,
			) {
				w.WriteHeader(http.StatusNoContent)
			}), slog.New(slog.DiscardHandler), time.Now)
			over := make(chan error)
			go func() { over <- server.Serve(p) }()
			t.Cleanup(func() {
				if err := server.Close(); err != nil || !errors.Is(<-over, http.ErrServerClosed) {
					t.Error(err)
				}
			})
			mine, theirs := net.Pipe()
			defer mine.Close()
			p.conns <- theirs
			began := time.Now()
			go func() { _, _ = io.WriteString(mine, c.sent) }() // they may take no more of it
			in := bufio.NewReader(mine)
			if c.answer != "" {
				resp, err := http.ReadResponse(in, nil)
				if err != nil || !strings.Contains(resp.Status, c.answer) {
					t.Fatalf("%s: %v %v", name, resp, err)
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					t.Error(err)
				}
			}
			if _, err := in.ReadByte(); !errors.Is(err, io.EOF) || time.Since(began).Truncate(time.Second) != c.closed {
				t.Errorf("%s: %v after %v, want %v", name, err, time.Since(began), c.closed)
			}
		})
	}
}
