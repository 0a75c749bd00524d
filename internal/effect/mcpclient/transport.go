package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// MaxMessage bounds one message of a server, in bytes.
const MaxMessage = 8 << 20

// A Transport is a way to a server, for one [Connect].
type Transport struct {
	sdk     mcp.Transport
	end     func()       // makes every reading and writing end
	changed *atomic.Bool // the server said that its tools are others
}

// Bounds of what a server says unasked, and of all that it says in one session.
const (
	maxAsked = 1000     // requests of its own
	maxSaid  = 64 << 20 // bytes
)

// Stdio is the way to a server that reads one message a line and writes one a
// line.
func Stdio(in io.WriteCloser, out io.ReadCloser) Transport {
	changed := &atomic.Bool{}
	said := &bounded{r: out, left: maxSaid}
	end := func() { _, _ = in.Close(), out.Close() }
	way := &mcp.IOTransport{Reader: said, Writer: in, MaxLineLength: MaxMessage}
	return Transport{sdk: &watched{way, changed, end}, end: end, changed: changed}
}

// watched is a way on which is seen, before any answer that comes after it, that
// the server's tools are others, and nothing else that the server says unasked.
type watched struct {
	mcp.Transport
	changed *atomic.Bool
	end     func()
}

// Connect implements [mcp.Transport].
func (w *watched) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := w.Transport.Connect(ctx)
	return &watchedConn{Connection: c, way: w}, err
}

type watchedConn struct {
	mcp.Connection
	way   *watched
	asked int
}

const listChanged = "notifications/tools/list_changed"

// Read implements [mcp.Connection]. What the server notifies of is not kept, for
// it would be without bounds; what it asks is answered, so many times, and never
// by what it says beside. After an error nobody waits for the server to read what
// is being written.
func (w *watchedConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := w.next(ctx)
	if err != nil {
		w.way.end()
	}
	return m, err
}

func (w *watchedConn) next(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := w.Connection.Read(ctx)
		r, ok := m.(*jsonrpc.Request)
		switch {
		case err != nil || !ok:
			return m, err
		case r.Method == listChanged:
			w.way.changed.Store(true)
		case r.IsCall():
			if w.asked++; w.asked > maxAsked {
				return nil, errAsks
			}
			r.Params = nil
			return r, nil
		}
	}
}

var errAsks = errors.New("the server asks too much")

// A Sender sends one request. named says that the address that is written in its
// URL, if one is, was named by the operator.
type Sender interface {
	Send(req *http.Request, named bool) (*http.Response, error)
}

// HTTP is the way to a server at a URL that the operator wrote, by streamable
// HTTP. No redirect is followed, since another URL is another server. A bearer
// that is not "" goes with every request.
func HTTP(url, bearer string, by Sender) Transport {
	r := &round{by: by, bearer: bearer, closed: make(chan struct{})}
	client := &http.Client{Transport: r, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return Transport{
		sdk: &mcp.StreamableClientTransport{
			Endpoint: url, HTTPClient: client, MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: MaxMessage,
		},
		end: r.end, changed: &atomic.Bool{},
	}
}

// A round sends the requests of one session, each with the bearer, and bounds
// what comes back.
type round struct {
	by     Sender
	bearer string
	closed chan struct{}
}

func (r *round) end() {
	select {
	case <-r.closed:
	default:
		close(r.closed)
	}
}

var errEnded = errors.New("the session has ended")

// RoundTrip implements [http.RoundTripper].
func (r *round) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case <-r.closed:
		return nil, errEnded
	default:
	}
	if r.bearer != "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+r.bearer)
	}
	resp, err := r.by.Send(req, true)
	if err != nil {
		return nil, &WayError{err}
	}
	resp.Body = &bounded{r: resp.Body, left: MaxMessage}
	return resp, nil
}

// A WayError is a request that did not reach the server, or had no answer, in
// the words of who sent it.
type WayError struct{ Err error }

func (e *WayError) Error() string { return "it cannot be reached: " + e.Err.Error() }
func (e *WayError) Unwrap() error { return e.Err }

// bounded is a body that is an error where it is too long.
type bounded struct {
	r    io.ReadCloser
	left int
}

// ErrTooLarge is a message, or a list, beyond what is taken of a server.
var ErrTooLarge = fmt.Errorf("a message of more than %d MiB", MaxMessage>>20)

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, ErrTooLarge
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func (b *bounded) Close() error { return b.r.Close() }
