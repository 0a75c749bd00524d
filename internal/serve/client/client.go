// Package client asks a service that rlp serve is: for runs, for what they do,
// and for their end.
//
// Its law: what the service answered is told as it was, its status, its code and
// every violation; and what proves who asks goes to the service that was named and
// to no other, so that no redirect is followed. It knows HTTP and the names of
// fields; what a run is, it leaves to who asks.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"runloop.dev/rlp/internal/base/strictjson"
)

// Options say which service is asked, and by whom. Exactly one of Socket and URL
// is set.
type Options struct {
	Socket string // path of a Unix socket
	URL    string // http://HOST:PORT or https://HOST:PORT
	Token  string // a bearer token; "": the connection says who asks
	Tenant string // asked for at a socket or on loopback; "": the default one
	TLS    *tls.Config
}

// A Client asks one service. It may be used by several goroutines.
type Client struct {
	base   string
	token  string
	tenant string
	http   *http.Client
}

const (
	mostAnswer  = 256 << 20 // bytes of one answer
	mostProblem = 1 << 20
	dialTime    = 10 * time.Second
)

// New returns a client. It asks nothing yet.
func New(o Options) (*Client, error) {
	if (o.Socket == "") == (o.URL == "") {
		return nil, errors.New("a service is named by a socket or by an address, one of them")
	}
	if strings.ContainsAny(o.Token, " \t\r\n\x00") {
		return nil, errors.New("the token has a blank in it; a token is one word, as rlp token new printed it")
	}
	d := &net.Dialer{Timeout: dialTime}
	t := &http.Transport{
		TLSClientConfig: o.TLS, TLSHandshakeTimeout: dialTime, ForceAttemptHTTP2: true,
		MaxResponseHeaderBytes: mostProblem,
	}
	base := "http://localhost"
	if o.Socket != "" {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", o.Socket)
		}
	} else {
		t.DialContext = d.DialContext
		var err error
		if base, err = address(o.URL, o.Token != ""); err != nil {
			return nil, err
		}
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{base: base, token: o.Token, tenant: o.Tenant, http: &http.Client{Transport: t, CheckRedirect: stay}},
		nil
}

// address is the part of a URL that all paths follow. A token goes over TLS, or
// stays on this host.
func address(text string, token bool) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return "", errors.New("the address of a service is http://HOST:PORT or https://HOST:PORT, with nothing else in it")
	}
	if ip := net.ParseIP(u.Hostname()); token && u.Scheme == "http" && u.Hostname() != "localhost" && !ip.IsLoopback() {
		return "", fmt.Errorf("a token is not sent to %s in the clear; write https://", u.Hostname())
	}
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(u.Path, "/"), nil
}

// Close gives up the connections that are kept for further requests.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// An Error is an answer that is none of those that were hoped for.
type Error struct {
	Status     int         `json:"-"` // of HTTP
	Code       string      `json:"error"`
	Message    string      `json:"message"`
	Fields     []Field     `json:"fields"`
	RunID      string      `json:"run_id"`
	TraceID    string      `json:"trace_id"`
	Violations []Violation `json:"violations"`
	RetryAfter string      `json:"-"` // as the head has it
}

// A Field is one field of a request and what is wrong with it.
type Field struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// A Violation is one reason why policy refuses a run.
type Violation struct {
	Code       string `json:"code"`
	Message    string `json:"message"`
	Capability string `json:"capability"`
	Layer      string `json:"layer"`
}

func (e *Error) Error() string {
	return cmp.Or(e.Message, e.Code, fmt.Sprintf("the service answered %d", e.Status))
}

// ErrUnreachable says that nobody answered: no service, or none at that address.
var ErrUnreachable = errors.New("no service answers (is rlp serve running there?)")

// Errors of a service that answered, and with which nothing could be spoken.
var (
	ErrUnproved = errors.New("who answers does not prove to be the service (--ca names the certificate of whoever " +
		"signed its own)")
	ErrDeclined = errors.New("the service does not take the connection")
)

// unspoken is why nobody was asked.
func unspoken(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err // without the address, which the caller knows
	}
	var cert *tls.CertificateVerificationError
	var alert *net.OpError
	switch {
	case errors.As(err, &cert):
		return fmt.Errorf("%w: %w", ErrUnproved, cert.Err)
	case errors.As(err, &alert) && alert.Op == "remote error": // as TLS calls what the other side says
		return fmt.Errorf("%w: %w", ErrDeclined, err)
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// request makes a request; body is a JSON document or nil.
func (c *Client) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.tenant != "" {
		r.Header.Set("X-Runloop-Tenant", c.tenant)
	}
	return r, nil
}

// do asks. An answer outside 2xx is an *Error.
func (c *Client) do(r *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(r)
	if err != nil {
		if r.Context().Err() != nil {
			return nil, r.Context().Err()
		}
		return nil, unspoken(err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	e := &Error{}
	if data, err := io.ReadAll(io.LimitReader(resp.Body, mostProblem)); err == nil {
		_ = strictjson.Unmarshal(data, e, ofService) // what is no such document says no more than its status
	}
	e.Status, e.RetryAfter = resp.StatusCode, resp.Header.Get("Retry-After")
	return nil, e
}

// ofService reads answers of a service that may be newer, with results in them.
const ofService = strictjson.UnknownFields | strictjson.Enclosing

// document asks for one JSON document.
func (c *Client) document(ctx context.Context, method, path string, body []byte) (json.RawMessage, error) {
	r, err := c.request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer+1))
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("reading the answer of the service: %w", err)
	case len(data) > mostAnswer:
		return nil, fmt.Errorf("the answer of the service has more than %d MiB", mostAnswer>>20)
	case strictjson.Check(data, ofService) != nil:
		return nil, errors.New("the answer is not one JSON document; is it rlp serve that is asked?")
	}
	return data, nil
}
