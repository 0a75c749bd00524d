package export

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
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
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "", errors.New("the address of the collector is no URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", errors.New("the address of the collector is no http or https URL, such as http://localhost:4318")
	case u.User != nil:
		return "", errors.New("the address of the collector has user info in it; put what it stands for into OTEL_EXPORTER_OTLP_HEADERS")
	case u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("the address of the collector has a query or a fragment")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

// ParseHeaders reads headers as OTEL_EXPORTER_OTLP_HEADERS has them:
// name=value, separated by commas, values percent-encoded. An error tells no
// value.
func ParseHeaders(text string) (http.Header, error) {
	h := http.Header{}
	for i, pair := range strings.Split(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		name = strings.TrimSpace(name)
		if !ok || err != nil || name == "" || strings.ContainsAny(name, " \t\r\n:()<>@,;\\\"/[]?={}") || strings.ContainsAny(value, "\r\n\x00") {
			return nil, fmt.Errorf("header %d is not name=value, with what is not plain in the value percent-encoded", i+1)
		}
		h.Add(name, value)
	}
	return h, nil
}

// NewCollector sends to a URL that [TracesURL] made.
func NewCollector(traces string, header http.Header) *Collector {
	// No proxy and no redirect: headers go to where the operator said and nowhere else.
	t := &http.Transport{ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxAnswer, TLSHandshakeTimeout: sendTimeout}
	return &Collector{url: traces, header: header, send: t.RoundTrip, Wait: wait, Told: func(string) {}, Timeout: sendTimeout, Tries: maxTries}
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
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	return again, retryAfter(resp.Header.Get("Retry-After")), fmt.Errorf("the collector says %s", resp.Status)
}

// retryAfter reads seconds; a date is as good as nothing said.
func retryAfter(text string) time.Duration {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n <= 0 || n > 3600 {
		return 0
	}
	return time.Duration(n) * time.Second
}

// partial tells what an ExportTraceServiceResponse says of spans that were not
// taken: its field 1, and of that the fields 1 (a number) and 2 (a text).
func (c *Collector) partial(answer []byte) {
	rejected, said := int64(0), ""
	fields(answer, func(field uint64, _ uint64, p []byte) {
		if field != 1 {
			return
		}
		fields(p, func(field, n uint64, text []byte) {
			switch field {
			case 1:
				rejected = int64(n)
			case 2:
				said = string(text)
			}
		})
	})
	if rejected > 0 {
		c.Rejected += rejected
		c.Told(fmt.Sprintf("the collector did not take %d spans: %s", rejected, said))
	} else if said != "" {
		c.Told("the collector says: " + said)
	}
}

// fields calls do with the numbers and byte strings of a message, as far as it
// is one.
func fields(p []byte, do func(field, number uint64, bytes []byte)) {
	for len(p) > 0 {
		tag, n := binary.Uvarint(p)
		if n <= 0 {
			return
		}
		p = p[n:]
		v, n := binary.Uvarint(p)
		switch tag & 7 {
		case 0:
			if n <= 0 {
				return
			}
			p = p[n:]
			do(tag>>3, v, nil)
		case 2:
			if n <= 0 || v > uint64(len(p)-n) {
				return
			}
			do(tag>>3, 0, p[n:n+int(v)])
			p = p[n+int(v):]
		default:
			return
		}
	}
}

// Mark has nothing to do: what was accepted is the collector's.
func (c *Collector) Mark() (*Place, error) { return nil, nil } //nolint:nilnil // there is no place

// Empty is never asked of spans, which have no head.
func (c *Collector) Empty() bool { return true }

// Close has nothing to do.
func (c *Collector) Close(bool) error { return nil }
