package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"runloop.dev/rlp/internal/record/otlp"
)

// A Collector is an output to a receiver of OTLP over HTTP. What was accepted
// once is not sent again but after a kill, and then with the same span ids.
type Collector struct {
	url    string
	header http.Header
	send   func(*http.Request) (*http.Response, error)
	// Wait waits between tries; a test does not.
	Wait func(context.Context, time.Duration) error
	// Told is given what a collector says of what it did not take.
	Told func(string)
	// Timeout is for one try.
	Timeout time.Duration
	// Tries is how often one request is sent before it is given up; 0: no end of it.
	Tries int

	Rejected int64 // spans that the collector did not take
}

// Bounds of sending.
const (
	maxTries    = 5
	firstPause  = 500 * time.Millisecond
	longestWait = 30 * time.Second
	maxAnswer   = 64 << 10
	sendTimeout = 10 * time.Second
	grace       = 2 * time.Second
)

// ErrCollector says that spans could not be sent.
var ErrCollector = errors.New("sending spans")

// TracesURL is where spans go of an address as operators give it: with no path
// of its own it gets the one that collectors listen at.
func TracesURL(text string) (string, error) {
	u, err := otlp.Address(text)
	if err != nil {
		return "", fmt.Errorf("the address of the collector %w", err)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

// NewCollector sends to a URL that [TracesURL] made.
func NewCollector(traces string, header http.Header) *Collector {
	// No proxy and no redirect: headers go to where the operator said and nowhere else.
	t := &http.Transport{ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxAnswer, TLSHandshakeTimeout: sendTimeout}
	return &Collector{
		url: traces, header: header, send: t.RoundTrip, Wait: wait, Told: func(string) {},
		Timeout: sendTimeout, Tries: maxTries,
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// Put sends one request, again while the collector says that it is busy.
func (c *Collector) Put(ctx context.Context, p []byte) error {
	pause := firstPause
	for try := 1; ; try++ {
		again, after, err := c.try(ctx, p)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !again:
			return fmt.Errorf("%w: %w", ErrCollector, err)
		case try == c.Tries:
			return fmt.Errorf("%w: %w (tried %d times)", ErrCollector, err, try)
		case try == maxTries:
			c.Told(fmt.Sprintf("%v: %v; going on trying", ErrCollector, err))
		}
		if after == 0 {
			after, pause = pause, min(2*pause, longestWait)
		}
		if err := c.Wait(ctx, min(after, longestWait)); err != nil {
			return err
		}
	}
}

// try sends once. again says that it is worth another try, after a while that
// the collector may have named.
func (c *Collector) try(ctx context.Context, p []byte) (again bool, after time.Duration, err error) {
	// Whoever interrupts waits a little for the answer to what is on its way, or it
	// would be sent again the next time.
	on, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Timeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })()
	req, err := http.NewRequestWithContext(on, http.MethodPost, c.url, bytes.NewReader(p))
	if err != nil {
		return false, 0, errors.New("the address is no URL")
	}
	for name, values := range c.header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := c.send(req)
	if err != nil {
		return true, 0, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case resp.StatusCode/100 == 2 && err == nil:
		c.partial(answer)
		return false, 0, nil
	case resp.StatusCode/100 == 2:
		return true, 0, errors.New("the collector's answer broke off")
	case resp.StatusCode/100 == 3:
		return false, 0, fmt.Errorf("the collector says %s; redirects are not followed, give its own address", resp.Status)
	}
	return otlp.Busy(resp.StatusCode), otlp.RetryAfter(resp.Header), fmt.Errorf("the collector says %s", resp.Status)
}

// partial tells what a collector says of spans that were not taken.
func (c *Collector) partial(answer []byte) {
	rejected, said := otlp.Partial(answer)
	if rejected > 0 {
		c.Rejected += rejected
		c.Told(fmt.Sprintf("the collector did not take %d spans: %s", rejected, said))
	} else if said != "" {
		c.Told("the collector says: " + said)
	}
}

// Mark has nothing to do: what was accepted is the collector's.
func (c *Collector) Mark() (*Place, error) { return nil, nil } //nolint:nilnil // there is no place

// Empty is never asked of spans, which have no head.
func (c *Collector) Empty() bool { return true }

// Close has nothing to do.
func (c *Collector) Close(bool) error { return nil }
