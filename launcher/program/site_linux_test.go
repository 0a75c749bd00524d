package program_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/hostcalls/connect"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/egress"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/launcher/program"
)

var public = netip.MustParseAddr("93.184.215.14")

// A site is a run under a policy with all that its program may ask of its host, and
// what is outside: names with their addresses, and two servers to which every public
// address leads, by port.
type site struct {
	world
	gate    *gate.Gate
	host    *hostcalls.ProgramHost
	imports *hostcalls.Host
	handler http.HandlerFunc
	port    string // of the plain server on loopback, which policies write as 8080
	strict  bool   // there are no names but those that are given

	mu      sync.Mutex
	names   map[string][][]netip.Addr // successive answers; the last one stays
	asked   []string                  // the resolver
	dialled []string
	served  []string
}

// A call is what a program asks of host.rlp; the imports are tried elsewhere.
type calls func(name string, args []string) ([]byte, error)

func (c calls) Call(_ context.Context, name string, args ...string) ([]byte, error) {
	return c(name, args)
}

// open makes a site of a policy. Every name that is not given leads to a public address.
func open(t *testing.T, base string, change ...func(*hostcalls.Config, *gate.Options)) *site {
	t.Helper()
	s := &site{names: map[string][][]netip.Addr{}}
	s.handler = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }
	plain, secure, roots := s.listen(t)
	s.port = plain[strings.LastIndexByte(plain, ':')+1:]
	base = "schema = \"0.2\"\n" + strings.ReplaceAll(base, ":8080", ":"+s.port)
	p, findings := policy.ParseBase("policy.caps", []byte(base), policy.Options{})
	if policy.HasErrors(findings) {
		t.Fatal(findings)
	}
	set, err := caps.Base(p.Entries, p.Limits)
	if err != nil {
		t.Fatal(err)
	}
	s.log, s.budget = audit.NewMemory(), budget.New(p.Limits, nil)
	out := egress.New(egress.Config{Resolve: s.resolve, Dial: s.dial(plain, secure), Roots: roots})
	t.Cleanup(out.Close)
	opt := gate.Options{KeepAllowed: true, KeepDenied: true, MaxCalls: -1}
	cfg := hostcalls.Config{
		Components: hostcalls.Components{HTTP: out}, Now: func() int64 { return time.Now().UnixNano() }, Limits: p.Limits,
		Above: s.budget,
	}
	for _, c := range change {
		c(&cfg, &opt)
	}
	if s.gate, err = gate.New(set, s.log, opt); err != nil {
		t.Fatal(err)
	}
	cfg.Gate = s.gate
	s.imports = hostcalls.New(cfg)
	if s.host, err = hostcalls.NewProgramHost(s.imports, &s.lock); err != nil {
		t.Fatal(err)
	}
	pol, err := connect.New(connect.Config{
		Gate: s.gate, Lock: &s.lock, Budget: s.budget, Now: time.Now, Confirm: s.host.Confirm(),
	})
	if err != nil {
		t.Fatal(err)
	}
	asked := calls(func(name string, _ []string) ([]byte, error) { return []byte("the host answers " + name), nil })
	s.network = program.Network{
		Policy: pol, Now: time.Now, Base: set, Outside: out, Inside: program.Inside(s.host, asked, p.Routes, time.Now),
	}
	return s
}

// listen starts the servers, whose TLS is for whatever name is asked for.
func (s *site) listen(t *testing.T) (plain, secure string, roots *x509.CertPool) {
	t.Helper()
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme := "http://"
		if r.TLS != nil {
			scheme = "https://"
		}
		s.mu.Lock()
		s.served = append(s.served, r.Method+" "+scheme+r.Host+r.URL.Path)
		s.mu.Unlock()
		s.handler(w, r)
	})
	quiet := log.New(io.Discard, "", 0)
	one, two := httptest.NewUnstartedServer(serve), httptest.NewUnstartedServer(serve)
	one.Config.ErrorLog, two.Config.ErrorLog = quiet, quiet
	issue, root := issuer(t)
	two.TLS = &tls.Config{GetCertificate: issue, NextProtos: []string{"http/1.1"}}
	roots = x509.NewCertPool()
	roots.AddCert(root)
	one.Start()
	two.StartTLS()
	t.Cleanup(func() { one.Close(); two.Close() })
	return one.Listener.Addr().String(), two.Listener.Addr().String(), roots
}

// issuer makes certificates of one authority, which is root, for whatever name is asked for.
func issuer(t *testing.T) (issue func(*tls.ClientHelloInfo) (*tls.Certificate, error), root *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := func(name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true,
			NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0), KeyUsage: x509.KeyUsageCertSign,
		}
	}
	top := text("a test's authority")
	top.IsCA = true
	der, err := x509.CreateCertificate(rand.Reader, top, top, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if root, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		leaf := text("a server")
		leaf.KeyUsage = x509.KeyUsageDigitalSignature
		if hello.ServerName != "" {
			leaf.DNSNames = []string{hello.ServerName}
		}
		der, err := x509.CreateCertificate(rand.Reader, leaf, root, key.Public(), key)
		return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
	}, root
}

func (s *site) resolve(_ context.Context, name string) ([]netip.Addr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, name)
	name = strings.TrimSuffix(name, ".")
	list, known := s.names[name]
	switch {
	case !known && !s.strict:
		return []netip.Addr{public}, nil
	case len(list) == 0:
		return nil, &net.DNSError{Name: name, IsNotFound: true}
	case len(list) > 1:
		s.names[name] = list[1:]
	}
	return list[0], nil
}

// dial leads public addresses to the servers, and loopback to itself.
func (s *site) dial(plain, secure string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		s.mu.Lock()
		s.dialled = append(s.dialled, address)
		s.mu.Unlock()
		to := secure
		switch at := netip.MustParseAddrPort(address); {
		case at.Addr().IsLoopback():
			to = address
		case at.Port() == 80:
			to = plain
		}
		return new(net.Dialer).DialContext(ctx, network, to)
	}
}

// outside is what left: what was looked up, connected to and asked.
func (s *site) outside() (asked, dialled, served []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked), slices.Clone(s.dialled), slices.Clone(s.served)
}
