package providers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// maxBody bounds one answer, in bytes.
const maxBody = 128 << 20

// NewTransport is the way out: no proxy whatever the environment says, TLS 1.2
// or newer, always verified, bounded times to get a connection.
func NewTransport() http.RoundTripper {
	return &http.Transport{
		Proxy:                 nil,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   10 * time.Second,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          32,
		MaxIdleConnsPerHost:   8,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

var errElsewhere = errors.New("a redirect to another host")

func newClient(t http.RoundTripper) *http.Client {
	return &http.Client{
		Transport: watched{t},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if first := via[0].URL; req.URL.Scheme != first.Scheme || req.URL.Host != first.Host || len(via) > 3 {
				return errElsewhere
			}
			return nil
		},
	}
}

// An attempt is what the wire saw of one try.
type attempt struct {
	mu     sync.Mutex
	sent   bool // at least the head of a request went out
	status int
	header http.Header
}

type attemptKey struct{}

func withAttempt(ctx context.Context) (context.Context, *attempt) {
	a := &attempt{}
	return context.WithValue(ctx, attemptKey{}, a), a
}

func (a *attempt) note(change func(a *attempt)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

func (a *attempt) look() (sent bool, status int, header http.Header) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sent, a.status, a.header
}

// watched tells the attempt of a request's context what comes of it, and
// bounds the answer.
type watched struct{ next http.RoundTripper }

func (w watched) RoundTrip(req *http.Request) (*http.Response, error) {
	a, ok := req.Context().Value(attemptKey{}).(*attempt)
	if !ok {
		return nil, fmt.Errorf("sending a request: nobody watches it")
	}
	trace := &httptrace.ClientTrace{WroteHeaders: func() { a.note(func(a *attempt) { a.sent = true }) }}
	res, err := w.next.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		return nil, err
	}
	a.note(func(a *attempt) { a.sent, a.status, a.header = true, res.StatusCode, res.Header })
	res.Body = &bounded{ReadCloser: res.Body, left: maxBody}
	return res, nil
}

var errTooLarge = errors.New("an answer that is too large")

// bounded is a body that ends with an error after so many bytes.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
