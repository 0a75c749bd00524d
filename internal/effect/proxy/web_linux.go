package proxy

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"runloop.dev/rlp/caps"
)

// Bounds of plain HTTP.
const (
	mostHead = 64 << 10
	webIdle  = 5 * time.Minute // between two requests of one connection
)

// A webConn is a connection that speaks plain HTTP. It begins with what was read
// of it already.
type webConn struct {
	net.Conn
	k     *conn
	ended chan struct{}
	once  sync.Once
}

func (w *webConn) Read(b []byte) (n int, err error) {
	if n = copy(b, w.k.head); n > 0 {
		w.k.head = w.k.head[n:]
	} else {
		n, err = w.Conn.Read(b)
	}
	w.k.sent.Add(int64(n))
	if spend := w.k.spend.Load(); spend != nil && n > 0 {
		if over := (*spend)(int64(n)); over != nil {
			return 0, over
		}
	}
	return n, err
}

func (w *webConn) Write(b []byte) (int, error) {
	if spend := w.k.spend.Load(); spend != nil {
		if over := (*spend)(int64(len(b))); over != nil {
			return 0, over
		}
	}
	n, err := w.Conn.Write(b)
	w.k.received.Add(int64(n))
	return n, err
}

func (w *webConn) CloseWrite() error { return w.k.c.CloseWrite() }

func (w *webConn) Close() error {
	defer w.once.Do(func() { close(w.ended) })
	return w.Conn.Close()
}

// serveWeb has the connection served request by request.
func (k *conn) serveWeb() {
	w := &webConn{Conn: k.c, k: k, ended: make(chan struct{})}
	select {
	case k.s.handed <- w:
	case <-k.s.ctx.Done():
		return
	}
	<-w.ended
}

type connKey struct{}

func (s *Server) newWeb() *http.Server {
	return &http.Server{
		Handler:           http.HandlerFunc(serveRequest),
		ReadHeaderTimeout: helloTime,
		IdleTimeout:       webIdle,
		MaxHeaderBytes:    mostHead,

		DisableGeneralOptionsHandler: true, // "OPTIONS *" is judged as well
		ErrorLog:                     slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c.(*webConn).k)
		},
	}
}

// serveRequest judges one request, and sends it on.
func serveRequest(w http.ResponseWriter, r *http.Request) {
	k := r.Context().Value(connKey{}).(*conn)
	t := Target{Way: HTTP, Host: k.host, Request: r}
	if k.isOwn() {
		k.answer(w, r, t)
		return
	}
	if status, why, detail := k.misplaced(r); status != 0 {
		k.s.cfg.Policy.Refuse(t, why, detail)
		w.Header().Set("Connection", "close")
		http.Error(w, "refused by the policy of this network: "+detail, status)
		return
	}
	g, err := k.s.cfg.Policy.Decide(r.Context(), t)
	if err != nil {
		w.Header().Set("Connection", "close") // what was not read of the request is not read as another one
		http.Error(w, "refused by the policy of this network: "+err.Error(), http.StatusForbidden)
		return
	}
	k.forward(w, r, t, g)
}

// misplaced is the status of a request that has no place on this connection, and
// why; 0 of one that has.
func (k *conn) misplaced(r *http.Request) (status int, why Refusal, detail string) {
	upgrade := r.Header.Get("Upgrade")
	switch {
	case r.ProtoMajor != 1:
		return http.StatusHTTPVersionNotSupported, Protocol, "HTTP/2 without TLS"
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace:
		return http.StatusNotImplemented, Protocol, "the method " + r.Method
	case upgrade != "" && !strings.EqualFold(upgrade, "h2c"): // which servers may leave unanswered
		return http.StatusNotImplemented, Protocol, "another protocol by Upgrade"
	}
	if !k.isFor(r.Host) {
		return http.StatusMisdirectedRequest, ServerName, elsewhere
	}
	return 0, 0, ""
}

const elsewhere = "the request is for another host than the connection"

// isFor reports whether the Host of a request is what the connection was made to.
func (k *conn) isFor(host string) bool {
	asked, err := caps.HostPort("http", unmapped(host))
	port := k.host[strings.LastIndexByte(k.host, ':'):]
	name, matches := strings.CutSuffix(asked, port)
	return err == nil && matches && k.isNamed(strings.Trim(name, "[]"))
}

// unmapped writes an address of IPv4 that is in the form of IPv6 as one, as the kernel
// connects to it.
func unmapped(host string) string {
	if at, err := netip.ParseAddrPort(host); err == nil && at.Addr().Is4In6() {
		return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).String()
	}
	if at, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil && at.Is4In6() {
		return at.Unmap().String()
	}
	return host
}

// forward sends r on to where the connection was judged to go.
func (k *conn) forward(w http.ResponseWriter, r *http.Request, t Target, g Grant) {
	ctx, stop := either(g.Context, r.Context())
	defer stop()
	var failed error
	if g.Spend != nil {
		k.spend.Store(&g.Spend)
		defer k.spend.Store(nil)
		failed = g.Spend(k.sent.Load()) // its head, at least
	}
	k.began = k.s.cfg.Now()
	whole := false
	defer func() { // also when the copying broke off, which ends by a panic
		if !whole || ctx.Err() != nil {
			reset(k.c) // or what there is would look like all of it
			failed = cmp.Or(failed, context.Cause(ctx), errBroken)
		}
		e := k.end(failed)
		k.sent.Add(-e.Sent)
		k.received.Add(-e.Received)
		k.s.cfg.Policy.Done(t, g, e)
	}()
	p := httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { k.rewrite(p.Out, p.In) },
		Transport:     sender{k, g.Named},
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			failed = err
			status := http.StatusBadGateway
			if isAddressError(err) {
				k.s.cfg.Policy.Refuse(t, Address, err.Error())
				status = http.StatusForbidden
			}
			w.Header().Set("Connection", "close")
			http.Error(w, "the request was not sent on", status)
		},
	}
	if failed != nil {
		whole = true
		w.Header().Set("Connection", "close")
		http.Error(w, "refused by the policy of this network: "+failed.Error(), http.StatusForbidden)
		return
	}
	r.Header.Del("Upgrade") // one that may be left unanswered
	p.ServeHTTP(w, r.WithContext(ctx))
	whole = true
}

// rewrite makes of a request the one that is sent: to the place that was judged,
// and otherwise as it came, without what concerns this connection alone.
func (k *conn) rewrite(out, in *http.Request) {
	out.URL = &url.URL{
		Scheme: "http", Host: k.host, Path: in.URL.Path, RawPath: in.URL.RawPath, RawQuery: in.URL.RawQuery,
		ForceQuery: in.URL.ForceQuery,
	}
	out.Host = in.Host
	if _, has := in.Header["User-Agent"]; !has {
		out.Header["User-Agent"] = nil // or one is put in
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, has := in.Header[name]; has {
			out.Header[name] = values
		}
	}
}

// A sender sends a request by the way out of the machine.
type sender struct {
	k     *conn
	named bool
}

func (s sender) RoundTrip(r *http.Request) (*http.Response, error) {
	return s.k.s.cfg.Outside.Send(r, s.named)
}
