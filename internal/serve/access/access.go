package access

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/serve/service"
)

// TenantHeader names the tenant for which the operator asks. Nobody else may
// choose one.
const TenantHeader = "X-Runloop-Tenant"

// minOperatorToken is the least length of the operator's own token, in bytes:
// what people choose is guessed.
const minOperatorToken = 24

// Options say who may ask.
type Options struct {
	// Tokens are the records of tokens; nil: there are none.
	Tokens *Store
	// UID is the user whose service it is, the operator; root is as well.
	UID int
	// Tenant is the operator's, unless they name another.
	Tenant string
	// OperatorToken is a bearer token of the operator's own, serve.token_secret;
	// "" is none.
	OperatorToken string
	// Layers reads what a token narrows: its profiles and its grant, named
	// "token:NAME". It is asked again a second later; an error refuses the token.
	Layers func(ctx context.Context, t *Token) ([]*caps.Layer, error)
	// ClientCAs sign certificates of clients; nil: nobody does, and who shows one
	// is refused.
	ClientCAs *x509.CertPool
	// Hosts are further names by which the service may be called, with a port or
	// without, as serve.hosts has them.
	Hosts []string
	// Port is that of the address which is listened on, for connections that did
	// not come by [Access.ConnContext].
	Port uint16
	// BehindProxy says that a proxy in front ends TLS, and that what arrives over
	// TCP is what it was sent: a connection proves nothing, the last address of
	// X-Forwarded-For is where a request came from.
	BehindProxy bool
	// Open are the paths that anybody may read, exactly; see [OpenPaths].
	Open []string
	// Refuse answers in the place of a handler; nil: JSON, or a redirect of a
	// browser to /login.
	Refuse func(w http.ResponseWriter, r *http.Request, d *Denied)
	Now    func() time.Time
	Log    *slog.Logger // nil: nothing is told
}

// OpenPaths are those that show nothing of anybody.
func OpenPaths() []string { return []string{"/healthz", "/readyz", "/openapi.json", LoginPath} }

// Access judges who asks. It is safe for concurrent use.
type Access struct {
	o        Options
	hosts    hosts
	operator digest
	open     map[string]bool
	tries    *tries
	sessions *sessions

	csrf *http.CrossOriginProtection

	mu     sync.Mutex
	layers map[string]cached

	told told
}

// told bounds what is logged: whoever knocks without end fills no disk.
type told struct {
	mu      sync.Mutex
	since   time.Time
	n, more int
}

// maxTold is how many lines there are in a minute.
const maxTold = 300

// tell logs, unless too much was logged in this minute already.
func (a *Access) tell(level slog.Level, msg string, args ...any) {
	now := a.o.Now()
	a.told.mu.Lock()
	more := 0
	if d := now.Sub(a.told.since); d < 0 || d >= time.Minute {
		more = a.told.more
		a.told.since, a.told.n, a.told.more = now, 0, 0
	}
	silent := a.told.n >= maxTold
	if silent {
		a.told.more++
	} else {
		a.told.n++
	}
	a.told.mu.Unlock()
	if more > 0 {
		a.o.Log.Warn("access.untold", "lines", more)
	}
	if !silent {
		a.o.Log.Log(context.Background(), level, msg, args...)
	}
}

// cached is what a token narrowed a moment ago.
type cached struct {
	token  *Token
	layers []*caps.Layer
	read   time.Time
}

// New checks o.
func New(o Options) (*Access, error) {
	if _, err := ident.ParseTenant(o.Tenant); err != nil {
		return nil, fmt.Errorf("opening the doors of the service: %w", err)
	}
	if o.Now == nil || o.Tokens != nil && o.Layers == nil {
		return nil, errors.New("opening the doors of the service: no clock, or nobody to read grants of tokens")
	}
	if n := len(o.OperatorToken); n > 0 && n < minOperatorToken {
		return nil, fmt.Errorf("opening the doors of the service: the value of serve.token_secret has %d bytes, which can "+
			"be guessed; store at least %d, such as the output of openssl rand -hex 32", n, minOperatorToken)
	}
	if strings.ContainsFunc(o.OperatorToken, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, errors.New("opening the doors of the service: the value of serve.token_secret has characters which no " +
			"header can have; write letters, digits and signs, without spaces")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &Access{
		o: o, tries: newTries(), sessions: newSessions(), csrf: http.NewCrossOriginProtection(),
		layers: make(map[string]cached), open: make(map[string]bool),
	}
	a.hosts = hosts{names: make(map[string]bool), port: o.Port, proxy: o.BehindProxy}
	for _, name := range o.Hosts {
		p, ok := parsePlace(name, 0)
		if !ok {
			p, ok = parsePlace("["+name+"]", 0) // an IPv6 address without its brackets
		}
		if !ok {
			return nil, fmt.Errorf("opening the doors of the service: serve.hosts: %q is no host name or address, with a port "+
				"or without", name)
		}
		if p.port != 0 {
			p.host += ":" + strconv.Itoa(int(p.port))
		}
		a.hosts.names[p.host] = true
	}
	if o.Open == nil {
		o.Open = OpenPaths()
	}
	for _, path := range o.Open {
		a.open[path] = true
	}
	a.operator = digestOf(o.OperatorToken)
	return a, nil
}

// Counts are how many attempts with a token failed, and how many were not judged
// because whoever made them has to wait.
func (a *Access) Counts() (failed, held uint64) { return a.tries.counts() }

// A proof is what a request proved, and by what it is proved again while it
// lasts.
type proof struct {
	caller  service.Caller
	token   *Token            // the record; nil: the operator
	cert    *x509.Certificate // that was bound to it; nil: a token was shown
	session string            // of a browser
	chooses bool              // it may name a tenant
}

// Authenticate says who asks. The error is a [*Denied].
func (a *Access) Authenticate(r *http.Request) (*service.Caller, error) {
	p, err := a.prove(r)
	if err != nil {
		return nil, err
	}
	return &p.caller, nil
}

// prove judges the strongest proof that came, and no other.
func (a *Access) prove(r *http.Request) (*proof, error) {
	var p *proof
	var err error
	headers, cookies := r.Header["Authorization"], a.cookies(r)
	switch {
	case len(headers) > 0:
		p, err = a.byHeader(r, headers)
	case r.TLS != nil && len(r.TLS.PeerCertificates) > 0:
		p, err = a.byCertificate(r)
	case len(cookies) > 0:
		p, err = a.bySession(r, cookies)
	default:
		p, err = a.byPeer(r)
	}
	if err != nil {
		return nil, err
	}
	if err := a.chooseTenant(r, p); err != nil {
		return nil, err
	}
	return p, nil
}

// chooseTenant lets the operator name a tenant, and nobody else.
func (a *Access) chooseTenant(r *http.Request, p *proof) error {
	named := r.Header[TenantHeader]
	if len(named) == 0 {
		return nil
	}
	if len(named) > 1 {
		return denied(http.StatusBadRequest, "bad_tenant", TenantHeader+" is there twice; send it once")
	}
	t, err := ident.ParseTenant(named[0])
	if err != nil {
		return denied(http.StatusBadRequest, "bad_tenant", TenantHeader+": "+err.Error())
	}
	if t.String() == p.caller.Tenant {
		return nil
	}
	if !p.chooses {
		return denied(http.StatusForbidden, "forbidden", "a token is of one tenant; leave "+TenantHeader+
			" out, or use a token of the other tenant")
	}
	p.caller.Tenant = t.String()
	return nil
}

// byPeer takes the operator for who they are, by the connection.
func (a *Access) byPeer(r *http.Request) (*proof, error) {
	p := peerOf(r.Context())
	if isForwarded(r) || p != nil && !p.local && a.o.BehindProxy {
		return nil, a.needsToken(r, "what comes through a proxy needs a token")
	}
	uid, state := p.user()
	switch {
	case state == peerKnown && (uid == a.o.UID || uid == 0):
	case state == peerUntold && (p.local || p.remote().IsLoopback()):
		uid = a.o.UID
	case state == peerKnown:
		return nil, a.needsToken(r, fmt.Sprintf("user %d is not the one whose service this is, and needs a token", uid))
	default:
		return nil, a.needsToken(r, "who asks from elsewhere needs a token")
	}
	name := "user:" + strconv.Itoa(uid)
	return a.operatorProof(name, name), nil
}

func (a *Access) operatorProof(id, name string) *proof {
	return &proof{chooses: true, caller: service.Caller{
		ID: id, Name: name, Tenant: a.o.Tenant,
		May: service.Launch | service.Read | service.Operate, EveryTenant: true,
	}}
}

// isForwarded reports whether a proxy says that it asks for somebody else. rlp
// itself says so of what agents send to addresses of this host.
func isForwarded(r *http.Request) bool {
	for name := range r.Header {
		switch name {
		case "Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Forwarded-For",
			"Cf-Connecting-Ip", "True-Client-Ip":
			return true
		}
		if strings.HasPrefix(name, "X-Forwarded-") {
			return true
		}
	}
	return false
}

// source is where a request came from, as attempts are counted: an address, of
// IPv6 the network that one subscriber has; on this host the user.
func (a *Access) source(r *http.Request) string {
	p := peerOf(r.Context())
	if a.o.BehindProxy && (p == nil || !p.local) {
		if addr, ok := lastForwarded(r); ok {
			return network(addr)
		}
	}
	return p.source()
}

// ConnContext is for [http.Server.ConnContext]: requests of a connection know
// who is at its other end. It asks nobody anything; that is done at the first
// request that needs it.
func (a *Access) ConnContext(ctx context.Context, c net.Conn) context.Context {
	var place placing
	for {
		if p, ok := c.(placing); ok {
			place = p
		}
		inner, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = inner.NetConn()
	}
	return context.WithValue(ctx, peerKey{}, &peer{conn: c, place: place, local: c.LocalAddr().Network() == "unix"})
}
