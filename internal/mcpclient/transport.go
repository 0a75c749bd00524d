package mcpclient

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// MaxMessage bounds one message of a server, in bytes.
const MaxMessage = 8 << 20

// A Transport is a way to a server, for one [Connect].
type Transport struct {
	sdk mcp.Transport
	end func() // makes every reading and writing end
}

// Stdio is the way to a server that reads one message a line and writes one a
// line.
func Stdio(in io.WriteCloser, out io.ReadCloser) Transport {
	return Transport{
		sdk: &mcp.IOTransport{Reader: out, Writer: in, MaxLineLength: MaxMessage},
		end: func() { _, _ = in.Close(), out.Close() },
	}
}

// HTTP is the way to a server at a URL, by streamable HTTP. send sends one
// request to it; no redirect is followed, since another URL is another server.
// A bearer that is not "" goes with every request.
func HTTP(url, bearer string, send func(*http.Request) (*http.Response, error)) Transport {
	r := &round{send: send, bearer: bearer, closed: make(chan struct{})}
	client := &http.Client{Transport: r, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return Transport{
		sdk: &mcp.StreamableClientTransport{
			Endpoint: url, HTTPClient: client, MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: MaxMessage,
		},
		end: r.end,
	}
}

// A round sends the requests of one session, each with the bearer, and bounds
// what comes back.
type round struct {
	send   func(*http.Request) (*http.Response, error)
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
	resp, err := r.send(req)
	if err != nil {
		return nil, err
	}
	resp.Body = &bounded{r: resp.Body, left: MaxMessage}
	return resp, nil
}

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
