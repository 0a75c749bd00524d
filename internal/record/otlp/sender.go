package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// A Sender sends requests to a collector. It is for any number of goroutines.
type Sender struct {
	set       *Settings
	transport *http.Transport
	stop      context.CancelFunc
	stopped   context.Context
	now       func() time.Time
	// Wait waits between tries; a test does not.
	Wait func(context.Context, time.Duration) error
}

// Bounds of sending.
const (
	firstPause = time.Second
	mostPause  = 10 * time.Second
	mostTime   = time.Minute // of all tries of a request, unless the caller's is shorter
	mostAnswer = 64 << 10
	idle       = 90 * time.Second
)

// What came of a request that was not taken. None of these tells the address, a
// header or what the collector said: the operator's log has no use for them.
var (
	errSlow  = errors.New("it does not answer in time")
	errAway  = errors.New("it cannot be reached, or broke off")
	errTrust = errors.New("its certificate is none that is trusted; OTEL_EXPORTER_OTLP_CERTIFICATE names a file with " +
		"the authority's")
	errStopped = errors.New("sending has ended")
)

// NewSender makes a sender. Stop ends it.
func NewSender(s *Settings, now func() time.Time) *Sender {
	n := &Sender{set: s, Wait: wait, now: now}
	n.stopped, n.stop = context.WithCancel(context.Background())
	// No proxy and no redirect: headers go to where the operator said and nowhere else.
	n.transport = &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: s.TLS, TLSHandshakeTimeout: s.Timeout, MaxResponseHeaderBytes: mostAnswer,
		IdleConnTimeout: idle,
	}
	return n
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Stop ends what is being sent, and sends nothing any more.
func (n *Sender) Stop() {
	n.stop()
	n.transport.CloseIdleConnections()
}

// Send sends one request, again while the collector is away or says that it is busy
// and there is time left.
func (n *Sender) Send(ctx context.Context, message []byte) error {
	ctx, cancel := context.WithTimeout(ctx, mostTime)
	defer cancel()
	defer context.AfterFunc(n.stopped, cancel)()
	body, err := n.pack(message)
	if err != nil {
		return err
	}
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		again, after, err := n.try(ctx, body)
		if err == nil {
			return nil
		}
		delay := max(after, pause/2+rand.N(pause))
		if end, ok := ctx.Deadline(); !again || ctx.Err() != nil || ok && !n.now().Add(delay).Before(end) {
			return err
		}
		if n.Wait(ctx, delay) != nil {
			return err
		}
	}
}

// pack is a message as it goes over the wire.
func (n *Sender) pack(message []byte) ([]byte, error) {
	if !n.set.Gzip {
		return message, nil
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(message); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// try sends once. again says that it is worth another try, after a while that
// the collector may have named.
func (n *Sender) try(ctx context.Context, body []byte) (again bool, after time.Duration, err error) {
	if n.stopped.Err() != nil {
		return false, 0, errStopped
	}
	ctx, cancel := context.WithTimeout(ctx, n.set.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.set.URL, bytes.NewReader(body))
	if err != nil {
		return false, 0, errors.New("the address is no URL")
	}
	for name, values := range n.set.Header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Del("Content-Encoding")
	if n.set.Gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := n.transport.RoundTrip(req)
	if err != nil {
		return true, 0, n.plain(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	switch {
	case resp.StatusCode/100 == 2 && err != nil:
		return true, 0, n.plain(err)
	case resp.StatusCode/100 == 2:
		if rejected, _ := Partial(answer); rejected > 0 {
			return false, 0, fmt.Errorf("it did not take %d of what it was sent", rejected)
		}
		return false, 0, nil
	case resp.StatusCode/100 == 3:
		return false, 0, fmt.Errorf("it answers %d; redirects are not followed, give its own address", resp.StatusCode)
	}
	return Busy(resp.StatusCode), RetryAfter(resp.Header), fmt.Errorf("it answers %d", resp.StatusCode)
}

// plain is an error of the transport without the address that it speaks of.
func (n *Sender) plain(err error) error {
	var slow interface{ Timeout() bool }
	var bad *tls.CertificateVerificationError
	switch {
	case n.stopped.Err() != nil:
		return errStopped
	case errors.As(err, &bad):
		return errTrust
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return errSlow
	}
	return errAway
}
