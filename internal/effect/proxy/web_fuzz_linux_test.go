package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// noted is a policy that allows requests, and an outside that takes them as a
// server would that reads what is sent.
type noted struct {
	wildcard
	mu      sync.Mutex
	allowed []string
	sent    []string
}

func (n *noted) Decide(_ context.Context, t Target) (Grant, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.allowed = append(n.allowed, t.Request.Method+" "+strings.ToLower(t.Request.Host))
	return Grant{}, nil
}

func (*noted) Connect(context.Context, string, bool) (net.Conn, error) { return nil, errProtocol }

func (n *noted) Send(r *http.Request, _ bool) (*http.Response, error) {
	var wire bytes.Buffer
	if err := r.Write(&wire); err != nil {
		return nil, err
	}
	for b := bufio.NewReader(&wire); ; {
		got, err := http.ReadRequest(b)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		_, _ = io.Copy(io.Discard, got.Body)
		n.mu.Lock()
		n.sent = append(n.sent, got.Method+" "+strings.ToLower(got.Host))
		n.mu.Unlock()
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
}

// Whatever is said on a connection, a server outside reads no request but those
// that were judged, and each with the host and the method that it was judged by.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: api.example.org\r\n\r\n", "GET / HTTP/1.0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: api.example.org\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n" +
			"GET /x HTTP/1.1\r\nHost: other.example.org\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: 30\r\n\r\nDELETE / HTTP/1.1\r\nHost: api.example.org\r\n\r\n",
		"GET http://api.example.org/ HTTP/1.1\r\nHost: other\r\n\r\nDELETE / HTTP/1.1\r\nHost:api.example.org:80\r\nUpgrade: h2c\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\nHost: api.example.org\n\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		n := &noted{}
		s := &Server{handed: make(chan net.Conn, 1)}
		s.cfg = Config{Policy: n, Outside: n, Now: func() time.Time { return time.Time{} }}
		var cut context.CancelFunc
		s.ctx, cut = context.WithCancel(t.Context())
		s.web = s.newWeb()
		here, there := net.Pipe()
		k := &conn{s: s, host: "api.example.org:80", names: []string{"api.example.org"}}
		w := &webConn{Conn: there, k: k, ended: make(chan struct{})}
		s.handed <- w
		go func() { _ = s.web.Serve(handedOver{s}) }()
		go func() { _, _ = here.Write(said); _ = here.SetReadDeadline(time.Time{}) }()
		go func() { _, _ = io.Copy(io.Discard, here) }()
		stop := time.AfterFunc(5*time.Millisecond, func() { _ = here.Close() }) // what waits for more
		<-w.ended
		stop.Stop()
		_ = here.Close()
		cut()
		_ = s.web.Close()
		n.mu.Lock()
		defer n.mu.Unlock()
		if !slices.Equal(n.sent, n.allowed[:min(len(n.sent), len(n.allowed))]) && len(n.sent) > 0 {
			t.Fatalf("judged %q, sent %q", n.allowed, n.sent)
		}
		for _, a := range n.allowed {
			_, host, _ := strings.Cut(a, " ")
			if name := strings.TrimSuffix(strings.TrimSuffix(host, ":80"), "."); name != "api.example.org" {
				t.Fatalf("judged for another host: %q", a)
			}
		}
	})
}
