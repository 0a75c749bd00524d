package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"runloop.dev/rlp/caps"
)

// Bounds of connections.
const (
	maxAnswers  = 64               // addresses of one name
	maxTries    = 4                // addresses of one name that are tried
	dialTimeout = 10 * time.Second // for the last address that is tried
	moveOn      = 3 * time.Second  // for one that is not
	maxHeader   = 256 << 10        // bytes of a response's header
	tlsTimeout  = 10 * time.Second // for a handshake
	readBuffer  = 16 << 10         // of a connection
)

// A Config is what a test puts in the place of the world. The zero Config is
// the real one: Go's resolver, the network, the system's certificates.
type Config struct {
	// Resolve is every address of a name, which ends in a dot.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	// Dial connects to an address that has been judged.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Roots are the certificates that are trusted.
	Roots *x509.CertPool
}

// A Client sends the requests of one run, over one pool of connections.
type Client struct {
	cfg       Config
	once      sync.Once
	transport *http.Transport
	strict    *http.Transport // of TLS 1.3 and nothing below
	inflaters sync.Pool       // of *gzip.Reader
}

// New makes a client. Nothing is opened before the first request.
func New(cfg Config) *Client {
	if cfg.Resolve == nil {
		cfg.Resolve = resolve
	}
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{KeepAlive: 30 * time.Second, Control: marked}).DialContext
	}
	return &Client{cfg: cfg}
}

// Close gives up the connections that are kept.
func (c *Client) Close() {
	c.once.Do(func() {})
	if c.transport != nil {
		c.transport.CloseIdleConnections()
		c.strict.CloseIdleConnections()
	}
}

// Vet reports, as an [*AddressError], that host must not be reached whatever it
// resolves to: host is a canonical host:port, and named says that a grant names
// exactly it. A name is nothing that can be judged before it is resolved.
func (c *Client) Vet(host string, named bool) error {
	if !caps.IsHostPort(host) {
		return errTarget
	}
	return vetLiteral(bare(host), named)
}

// Connect connects to hostPort, by an address of its that was judged; named is as
// in [Client.Vet]. Errors are as those of [Client.Send].
func (c *Client) Connect(ctx context.Context, hostPort string, named bool) (net.Conn, error) {
	if err := c.Vet(hostPort, named); err != nil {
		return nil, err
	}
	conn, err := c.dial(ctx, "tcp", hostPort)
	if err != nil {
		return nil, plain(err)
	}
	return conn, nil
}

// vetLiteral judges the addresses that are written in host.
func vetLiteral(host string, named bool) error {
	addrs, n := literal(host)
	for _, a := range addrs[:n] {
		if err := vet(host, a, named); err != nil {
			return err
		}
	}
	return nil
}

// Send sends one request and returns its answer, whatever its status; the
// caller closes its body. The URL is absolute, its host canonical. named is as
// in [Client.Vet]. A request says itself what encodings it takes; an answer to
// one that takes gzip is decompressed as it is read. Errors hold nothing of what
// was sent or received. A request whose TLS names a version goes over no
// connection of a lower one: nothing of it is sent before that is settled.
func (c *Client) Send(req *http.Request, named bool) (*http.Response, error) {
	host, err := target(req.URL)
	if err != nil {
		return nil, err
	}
	if err := vetLiteral(bare(host), named); err != nil {
		return nil, err
	}
	c.once.Do(c.open)
	if c.transport == nil {
		return nil, errors.New("sending a request: the client is closed")
	}
	pool, err := c.pool(req)
	if err != nil {
		return nil, err
	}
	resp, err := pool.RoundTrip(announced(req, host))
	if err != nil {
		return nil, plain(err)
	}
	if resp.StatusCode < 200 { // a switch of protocols that nobody asked for
		_ = resp.Body.Close()
		return nil, errProtocol
	}
	if req.Header.Get("Accept-Encoding") == "gzip" {
		c.inflate(resp)
	}
	return resp, nil
}

// announced is req, which says that it was sent for somebody else if it goes to
// this host: a server that asks the kernel whose connection it is would take an
// agent for its operator otherwise. No header of req takes it away.
func announced(req *http.Request, host string) *http.Request {
	if addrs, _ := literal(bare(host)); !addrs[0].Unmap().IsLoopback() { // of a name, none
		return req
	}
	said := *req
	if said.Header = req.Header.Clone(); said.Header == nil {
		said.Header = make(http.Header)
	}
	said.Header.Add("Via", "1.1 rlp")
	return &said
}

// target is the host:port that u leads to, if u is canonical and nothing but
// scheme, host, path and query.
func target(u *url.URL) (string, error) {
	port := ""
	switch u.Scheme {
	case "https":
		port = ":443"
	case "http":
		port = ":80"
	}
	if port == "" || u.User != nil || u.Opaque != "" {
		return "", errTarget
	}
	host := u.Host
	if u.Port() == "" {
		host += port
	}
	if !caps.IsHostPort(host) {
		return "", errTarget
	}
	return host, nil
}

func (c *Client) pool(req *http.Request) (*http.Transport, error) {
	switch {
	case req.TLS == nil || req.TLS.Version <= tls.VersionTLS12:
		return c.transport, nil
	case req.TLS.Version == tls.VersionTLS13 && req.URL.Scheme == "https":
		return c.strict, nil
	}
	return nil, errTLS
}

func (c *Client) open() {
	c.transport, c.strict = c.connections(tls.VersionTLS12), c.connections(tls.VersionTLS13)
}

func (c *Client) connections(least uint16) *http.Transport {
	return &http.Transport{
		Proxy:                  nil, // the environment has no say
		DialContext:            c.dial,
		TLSClientConfig:        &tls.Config{MinVersion: least, RootCAs: c.cfg.Roots},
		TLSHandshakeTimeout:    tlsTimeout,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // what a request takes is in its headers, which are made once
		MaxIdleConns:           16,
		MaxIdleConnsPerHost:    2,
		MaxResponseHeaderBytes: maxHeader,
		ReadBufferSize:         readBuffer,
	}
}

// dial connects to one of the addresses that host has, all of which it judges.
// Whether a request may use an address that is written in it was asked by Send.
func (c *Client) dial(ctx context.Context, network, hostPort string) (net.Conn, error) {
	host, port, err := split(hostPort)
	if err != nil {
		return nil, err
	}
	own, n := literal(host)
	addrs, named := own[:n], n > 0
	if !named {
		if addrs, err = c.lookup(ctx, host); err != nil {
			return nil, err
		}
	}
	for _, a := range addrs { // one bad address spoils the answer
		if err := vet(host, a, named); err != nil {
			return nil, err
		}
	}
	return c.connect(ctx, network, addrs, port)
}

func (c *Client) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if caps.IsOwnName(host) {
		return nil, errNoName
	}
	// The dot keeps the resolver from trying the machine's search domains.
	addrs, err := c.cfg.Resolve(ctx, host+".")
	switch {
	case err != nil:
		return nil, err
	case len(addrs) == 0:
		return nil, errNoName
	case len(addrs) > maxAnswers:
		return nil, errManyAddresses
	}
	return addrs, nil
}

func (c *Client) connect(ctx context.Context, network string, addrs []netip.Addr, port string) (net.Conn, error) {
	var first error
	addrs = addrs[:min(len(addrs), maxTries)]
	for i, a := range addrs {
		if ctx.Err() != nil {
			break
		}
		patience := moveOn
		if i == len(addrs)-1 {
			patience = dialTimeout
		}
		try, cancel := context.WithTimeout(ctx, patience)
		conn, err := c.cfg.Dial(try, network, net.JoinHostPort(a.Unmap().String(), port))
		cancel()
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
	}
	if first == nil {
		first = context.Cause(ctx)
	}
	return nil, first
}

// literal is what host says without being looked up: an address, or the two of
// localhost, which no resolver is asked for. There are none in a name.
func literal(host string) (addrs [2]netip.Addr, n int) {
	if host == "localhost" {
		return [2]netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, 2
	}
	// An address ends in a digit, or has colons.
	if last := host[len(host)-1]; last < '0' || last > '9' && strings.IndexByte(host, ':') < 0 {
		return addrs, 0
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return addrs, 0
	}
	addrs[0] = a
	return addrs, 1
}

func split(hostPort string) (host, port string, err error) {
	if !caps.IsHostPort(hostPort) {
		return "", "", errTarget
	}
	return bare(hostPort), hostPort[strings.LastIndexByte(hostPort, ':')+1:], nil
}

func bare(hostPort string) string {
	return strings.Trim(hostPort[:strings.LastIndexByte(hostPort, ':')], "[]")
}

// resolve asks Go's own resolver, which takes no numbers in disguise for
// addresses, as the system's does.
func resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	r := net.Resolver{PreferGo: true}
	return r.LookupNetIP(ctx, "ip", name)
}
