package hostcalls

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/egress"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/record/audit"
)

// A world is the network of a test: real listeners on loopback, a resolver
// that may change its mind, and below all judging a dialer that leads public
// addresses to the listeners. What is judged is never mapped.
type world struct {
	t             testing.TB
	roots         *x509.CertPool
	plain, secure string // where the listeners are
	handler       http.HandlerFunc
	protos        []string // that the server with TLS speaks
	maxTLS        uint16   // and its latest version; 0: whatever there is

	mu      sync.Mutex
	answers map[string][][]netip.Addr // by name, successive
	asked   []string
	dialed  []string
	served  []string
}

var publicAddr = netip.MustParseAddr("93.184.215.14")

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, answers: map[string][][]netip.Addr{}, roots: x509.NewCertPool(), protos: []string{"http/1.1"}}
	w.handler = func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("hello")) }
	ca := newAuthority(t)
	w.roots.AddCert(ca.cert)
	w.plain = w.listen(func(l net.Listener) net.Listener { return l })
	w.secure = w.listen(func(l net.Listener) net.Listener {
		return tls.NewListener(l, &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return &tls.Config{GetCertificate: ca.issue, NextProtos: w.protos, MaxVersion: w.maxTLS}, nil
		}})
	})
	return w
}

func (w *world) listen(wrap func(net.Listener) net.Listener) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	s := &http.Server{
		Handler: http.HandlerFunc(w.serve), ErrorLog: log.New(io.Discard, "", 0),
		ReadHeaderTimeout: time.Minute,
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(wrap(l)) }()
	w.t.Cleanup(func() { _ = s.Close(); <-done })
	return l.Addr().String()
}

func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	w.served = append(w.served, r.Method+" "+scheme+"://"+r.Host+r.URL.Path)
	h := w.handler
	w.mu.Unlock()
	h(rw, r)
}

// requests is what the listeners were asked.
func (w *world) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.served)
}

func (w *world) dials() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dialed)
}

// name gives a name its successive answers; the last one stays.
func (w *world) name(name string, answers ...[]netip.Addr) { w.answers[name] = answers }

// resolve is a resolver as systems have them: a name without a dot at its end
// is tried in the search domain as well.
func (w *world) resolve(_ context.Context, name string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, name)
	tries := []string{strings.TrimSuffix(name, ".")}
	if tries[0] == name {
		tries = append(tries, name+".corp.example")
	}
	for _, n := range tries {
		list, ok := w.answers[n]
		if !ok {
			continue
		}
		if len(list) > 1 {
			w.answers[n] = list[1:]
		}
		return list[0], nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// dial leads public addresses to the listeners, by port; loopback is loopback,
// and anything else is an escape.
func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dialed = append(w.dialed, address)
	w.mu.Unlock()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	to := w.secure
	if port == "80" {
		to = w.plain
	}
	switch a := netip.MustParseAddr(host); {
	case a.IsLoopback():
		to = address
	case a != publicAddr && a.Is4():
		w.t.Errorf("connecting to %s", address)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, to)
}

func (w *world) client() *egress.Client {
	return egress.New(egress.Config{Resolve: w.resolve, Dial: w.dial, Roots: w.roots})
}

// plainClient is what an agent would use if nothing stood in its way: the
// client of the standard library on a network that leads everywhere.
func (w *world) plainClient() *http.Client {
	var d net.Dialer
	trusting := &tls.Config{InsecureSkipVerify: true}
	tr := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return d.DialContext(ctx, network, w.plain)
		},
		DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&tls.Dialer{Config: trusting}).DialContext(ctx, network, w.secure)
		},
		DisableKeepAlives: true,
	}
	return &http.Client{Transport: tr}
}

// checkingClient is a plain client that looks a name up, checks what it finds,
// and then connects by name, as many guards do: which resolves again.
func (w *world) checkingClient(name string) (*http.Client, error) {
	addrs, err := w.resolve(context.Background(), name)
	if err != nil || addrs[0] != publicAddr {
		return nil, fmt.Errorf("%v, %w", addrs, err)
	}
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			again, err := w.resolve(ctx, host)
			if err != nil || !again[0].IsLoopback() {
				return nil, fmt.Errorf("%v, %w", again, err)
			}
			var d net.Dialer
			return d.DialContext(ctx, network, w.plain)
		},
	}}, nil
}

// An authority issues certificates for whatever name is asked for.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

func (a *authority) issue(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if strings.IndexFunc(hello.ServerName, func(c rune) bool { return c > 0x7f }) < 0 && hello.ServerName != "" {
		template.DNSNames = []string{hello.ServerName}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, a.key.Public(), a.key)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}, err
}

// netRig is a rig whose base is a policy, and whose network is w.
func netRig(t testing.TB, w *world, text string) *rig {
	t.Helper()
	base, findings := policy.ParseBase("policy.caps", []byte(text), policy.Options{})
	if err := policy.AsError(findings); err != nil {
		t.Fatal(err)
	}
	set, err := caps.Base(base.Entries, base.Limits)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, log: audit.NewMemory(), mem: make([]byte, 1<<17), funcs: map[string]abi.Func{}}
	if r.gate, err = gate.New(set, r.log, gate.Options{KeepAllowed: true, KeepDenied: true, MaxCalls: -1}); err != nil {
		t.Fatal(err)
	}
	c := w.client()
	t.Cleanup(c.Close)
	r.host = New(Config{
		Gate: r.gate, Components: Components{HTTP: c}, Now: func() int64 { return time.Now().UnixNano() },
		Limits: base.Limits, Sources: trusting(t),
	})
	funcs, err := r.host.Funcs()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range funcs {
		r.funcs[f.Name] = f
	}
	return r
}

// An httpAnswer is what a guest makes of a framed answer.
type httpAnswer struct {
	Status  int
	Headers map[string]any
	Body    string
}

// get asks for a URL; a number below zero is a refusal.
func (r *rig) get(url string) (int64, httpAnswer) {
	r.t.Helper()
	return r.http(map[string]any{"url": url}, "")
}

func (r *rig) http(req map[string]any, body string) (int64, httpAnswer) {
	r.t.Helper()
	text, err := json.Marshal(req)
	if err != nil {
		r.t.Fatal(err)
	}
	n, response := r.call("net_http", string(text), body)
	var a httpAnswer
	if n < 0 {
		return n, a
	}
	head := binary.LittleEndian.Uint32([]byte(response))
	if err := json.Unmarshal([]byte(response[4:4+head]), &a); err != nil {
		r.t.Fatalf("the head %q: %v", response[4:4+head], err)
	}
	a.Body = response[4+head:]
	return n, a
}

// refused wants a refusal by this number and for this reason, and returns its hint.
func (r *rig) refused(req map[string]any, body string, number int64, reason string) string {
	r.t.Helper()
	text, err := json.Marshal(req)
	if err != nil {
		r.t.Fatal(err)
	}
	n, a := r.denial("net_http", string(text), body)
	if n != number || a.Reason != reason {
		r.t.Errorf("%v: %d %+v, want %d %s", req, n, a, number, reason)
	}
	return a.Hint
}
