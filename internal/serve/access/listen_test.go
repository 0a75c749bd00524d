package access

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"runloop.dev/rlp/internal/serve/service"
)

// What strangers could reach is listened on with TLS, or behind a proxy that the
// operator named, and with somebody who may come in.
//
//rlp:holds K53
func TestAddressesBeyondThisMachine(t *testing.T) {
	const far = "0.0.0.0:8770"
	for _, c := range []struct {
		l   Listener
		why string // "": it may
	}{
		{Listener{Addr: "127.0.0.1:8770"}, ""},
		{Listener{Addr: "localhost:0"}, ""},
		{Listener{Addr: "[::1]:8770"}, ""},
		{Listener{Addr: "[::ffff:127.0.0.1]:8770"}, ""},
		{Listener{Addr: far, TLS: true, Proofs: 1}, ""},
		{Listener{Addr: far, BehindProxy: true, Proofs: 1}, ""},
		{Listener{Addr: far}, "serve.tls_cert"},
		{Listener{Addr: far, Proofs: 1}, "in the clear"},
		{Listener{Addr: far, TLS: true}, "rlp token new"},
		{Listener{Addr: far, BehindProxy: true}, "rlp token new"},
		{Listener{Addr: ":8770"}, "in the clear"},
		{Listener{Addr: "[::]:8770"}, "in the clear"},
		{Listener{Addr: "192.0.2.1:8770"}, "in the clear"},
		{Listener{Addr: "agents.example:8770"}, "in the clear"},
		{Listener{Addr: "localhost.example:8770"}, "in the clear"},
		{Listener{Addr: "127.0.0.1.example:8770"}, "in the clear"},
		{Listener{Addr: "[fe80::1%lo]:8770"}, "in the clear"},
		{Listener{Addr: "127.0.0.1"}, "no address and port"},
		{Listener{Addr: "8770"}, "no address and port"},
		{Listener{Addr: "127.0.0.1:x"}, "no address and port"},
		{Listener{Addr: "127.0.0.1:99999"}, "no address and port"},
	} {
		_, err := c.l.Check()
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%+v: %v, want %q", c.l, err, c.why)
		}
	}
}

// An authority signs certificates into files.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
	n    int64
}

func newAuthority(t *testing.T, name string) *authority {
	a := &authority{t: t, n: 1}
	a.cert, a.key, a.file, _ = a.sign(name, nil, true)
	return a
}

// sign makes a certificate and its key, and the files of both.
func (a *authority) sign(name string, usage []x509.ExtKeyUsage, isCA bool) (*x509.Certificate, *ecdsa.PrivateKey,
	string, string,
) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	a.n++
	c := &x509.Certificate{
		SerialNumber: big.NewInt(a.n), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(time.Hour),
		ExtKeyUsage: usage, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: isCA,
	}
	parent, signer := a.cert, a.key
	if isCA {
		c.KeyUsage = x509.KeyUsageCertSign
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	must(a.t, err)
	made, err := x509.ParseCertificate(der)
	must(a.t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	must(a.t, err)
	certFile, keyFile := filepath.Join(a.t.TempDir(), "cert.pem"), filepath.Join(a.t.TempDir(), "key.pem")
	must(a.t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	must(a.t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600))
	return made, key, certFile, keyFile
}

// client is one that shows a certificate, if it has one.
func (a *authority) client(roots *x509.CertPool, cert *x509.Certificate, key *ecdsa.PrivateKey) *http.Client {
	c := &tls.Config{RootCAs: roots}
	if cert != nil {
		pair := tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
		// asked or not
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	tr := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}
	a.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// A client certificate is who the operator bound it to, and nobody else is; it
// is nobody's, though the authority is the right one, until then.
func TestClientCertificates(t *testing.T) {
	ours, others := newAuthority(t, "our CA"), newAuthority(t, "another CA")
	_, _, certFile, keyFile := ours.sign("server", []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, false)
	cfg, err := TLSConfig(certFile, keyFile, ours.file, nil)
	must(t, err)
	k := kitOf(t, func(o *Options) { o.UID, o.ClientCAs = os.Geteuid(), cfg.ClientCAs })
	plain, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	l := tls.NewListener(plain, cfg)
	server := &http.Server{
		ConnContext: k.ConnContext, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		Handler: k.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.Proto+" "+service.CallerOf(r.Context()).Name)
		})),
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	address := "https://" + plain.Addr().String()
	roots := x509.NewCertPool()
	roots.AddCert(ours.cert)
	forClients := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	named, namedKey, _, _ := ours.sign("ci-runner", forClients, false)
	hashed, hashedKey, _, _ := ours.sign("laptop", forClients, false)
	unbound, unboundKey, _, _ := ours.sign("stranger", forClients, false)
	forged, forgedKey, _, _ := others.sign("ci-runner", forClients, false)
	wrong, wrongKey, _, _ := ours.sign("ci-runner", []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, false)
	k.token(t, func(o *Token) { o.Name, o.CertName = "ci", "ci-runner" })
	byHash, _ := k.token(t, func(o *Token) { o.Name, o.CertHash = "laptop", hashOf(hashed) })

	ask := func(c *http.Client) string {
		r, err := http.NewRequestWithContext(t.Context(), "GET", address+"/runs", nil)
		must(t, err)
		resp, err := c.Do(r)
		if err != nil {
			return "no connection"
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		must(t, err)
		if resp.StatusCode != 200 {
			return http.StatusText(resp.StatusCode) + " " + string(body)
		}
		return string(body)
	}
	for name, c := range map[string]struct {
		client *http.Client
		want   string
	}{
		"by its name": {ours.client(roots, named, namedKey), "HTTP/2.0 cert:ci"},
		"by its hash": {ours.client(roots, hashed, hashedKey), "HTTP/2.0 cert:laptop"},
		"bound to none": {
			ours.client(roots, unbound, unboundKey),
			`Unauthorized {"error":"unauthorized","message":"this client certificate stands for nobody here`,
		},
		"of another CA": {
			ours.client(roots, forged, forgedKey),
			`Unauthorized {"error":"unauthorized","message":"no authority that serve.client_ca names signed`,
		},
		"not for this": {
			ours.client(roots, wrong, wrongKey),
			`Unauthorized {"error":"unauthorized","message":"this client certificate is not made to prove a client`,
		},
		"no certificate": {ours.client(roots, nil, nil), "HTTP/2.0 user:"},
	} {
		if got := ask(c.client); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	client := ours.client(roots, hashed, hashedKey)
	if got := ask(client); got != "HTTP/2.0 cert:laptop" {
		t.Fatalf("control: %q", got)
	}
	_, err = k.store.Revoke(byHash.ID)
	must(t, err)
	if got := ask(client); !strings.HasPrefix(got, "Unauthorized") {
		t.Errorf("revoked, on the same connection: %q", got)
	}

	old := ours.client(roots, named, namedKey)
	old.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS12
	if got := ask(old); got != "no connection" {
		t.Errorf("an older TLS: %q", got)
	}
}

// showing is a request of a client that shows certificates.
func showing(t *testing.T, chain ...*x509.Certificate) *http.Request {
	r := request(t)
	r.URL.Scheme, r.TLS = "https", &tls.ConnectionState{PeerCertificates: chain}
	return r
}

// pool is authorities.
func pool(all ...*authority) *x509.CertPool {
	p := x509.NewCertPool()
	for _, a := range all {
		p.AddCert(a.cert)
	}
	return p
}

// A certificate that none of the operator's authorities signed is nobody's,
// whatever it says, whoever connects, and whatever the library takes for verified.
func TestUnverifiedCertificates(t *testing.T) {
	ours, others := newAuthority(t, "our CA"), newAuthority(t, "our CA")
	cert, _, _, _ := ours.sign("ci-runner", nil, false)
	forged, _, _, _ := others.sign("ci-runner", nil, false)
	for name, c := range map[string]struct {
		chain []*x509.Certificate
		cas   *x509.CertPool
		want  int
	}{
		"control":                    {[]*x509.Certificate{cert}, pool(ours), http.StatusOK},
		"of two":                     {[]*x509.Certificate{forged}, pool(ours, others), http.StatusOK},
		"forged":                     {[]*x509.Certificate{forged}, pool(ours), http.StatusUnauthorized},
		"with its own authority":     {[]*x509.Certificate{forged, others.cert}, pool(ours), http.StatusUnauthorized},
		"with ours beside it":        {[]*x509.Certificate{forged, ours.cert, cert}, pool(ours), http.StatusUnauthorized},
		"nobody signs":               {[]*x509.Certificate{cert}, x509.NewCertPool(), http.StatusUnauthorized},
		"nobody is said to sign":     {[]*x509.Certificate{cert}, nil, http.StatusUnauthorized},
		"the authority, as a client": {[]*x509.Certificate{others.cert}, pool(ours), http.StatusUnauthorized},
	} {
		k := kitOf(t, func(o *Options) { o.ClientCAs = c.cas })
		k.token(t, func(o *Token) { o.CertName = "ci-runner" })
		k.token(t, func(o *Token) { o.Name, o.CertName = "ca", "our CA" })
		r := asUser(showing(t, c.chain...), 1000)
		r.TLS.VerifiedChains = [][]*x509.Certificate{c.chain}
		for range 2 {
			if got := k.status(t, r); got != c.want {
				t.Errorf("%s: %d, want %d", name, got, c.want)
			}
		}
	}
}

// A certificate ends when it says so, on a connection that began before, and what
// it opened ends with it.
func TestCertificatesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours := newAuthority(t, "our CA")
		cert, _, _, _ := ours.sign("ci-runner", nil, false)
		k := kitOf(t, func(o *Options) { o.ClientCAs = pool(ours) })
		k.token(t, func(o *Token) { o.CertName = "ci-runner" })
		if got := k.status(t, showing(t, cert)); got != http.StatusOK {
			t.Fatalf("control: %d", got)
		}
		if ended := follow(t, k, showing(t, cert)); ended < 59*time.Minute || ended > 61*time.Minute {
			t.Errorf("a stream ends after %v", ended)
		}
		early := kitOf(t, func(o *Options) {
			o.ClientCAs, o.Now = pool(ours), func() time.Time { return cert.NotBefore.Add(-time.Second) }
		})
		if _, err := early.Authenticate(showing(t, cert)); err == nil || !strings.Contains(err.Error(), "good from "+
			cert.NotBefore.UTC().Format(time.RFC3339)) {
			t.Errorf("%v", err)
		}
		_, err := k.Authenticate(showing(t, cert))
		if err == nil || !strings.Contains(err.Error(), "ended at "+cert.NotAfter.UTC().Format(time.RFC3339)) {
			t.Errorf("%v", err)
		}
	})
}

// A certificate that was revoked by its hash does not come in by its name.
func TestACertificateIsRevokedAlone(t *testing.T) {
	ours := newAuthority(t, "our CA")
	cert, _, _, _ := ours.sign("ci-runner", nil, false)
	k := kitOf(t, func(o *Options) { o.ClientCAs = pool(ours) })
	k.token(t, func(o *Token) { o.Name, o.CertName = "all", "ci-runner" })
	r := showing(t, cert)
	if got := k.status(t, r); got != http.StatusOK {
		t.Fatalf("control: %d", got)
	}
	one, _ := k.token(t, func(o *Token) { o.Name, o.CertHash = "one", hashOf(cert) })
	_, err := k.store.Revoke(one.ID)
	must(t, err)
	if got := k.status(t, r); got != http.StatusUnauthorized {
		t.Errorf("status %d", got)
	}
}

func TestTLSConfigRefuses(t *testing.T) {
	ours := newAuthority(t, "our CA")
	_, _, cert, key := ours.sign("server", nil, false)
	if _, err := TLSConfig(cert, key, ours.file, nil); err != nil {
		t.Fatalf("control: %v", err)
	}
	for _, files := range [][2]string{{cert, ""}, {"", key}} {
		if _, err := TLSConfig(files[0], files[1], "", nil); err == nil || !strings.Contains(err.Error(), "go together") {
			t.Errorf("one of two files: %v", err)
		}
	}
	if _, err := TLSConfig(cert, key, cert+"-gone", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no CA: %v", err)
	}
	if c, err := TLSConfig(cert, key, ours.file, nil); err != nil || !c.SessionTicketsDisabled ||
		c.ClientAuth != tls.RequestClientCert || c.MinVersion != tls.VersionTLS13 {
		t.Errorf("%+v, %v", c, err)
	}
	long := filepath.Join(t.TempDir(), "long.pem")
	text, err := os.ReadFile(ours.file)
	must(t, err)
	for size, want := range map[int]bool{maxPEM: true, maxPEM + 1: false} {
		must(t, os.WriteFile(long, append(text, strings.Repeat("\n", size-len(text))...), 0o644))
		if _, err := TLSConfig(cert, key, long, nil); (err == nil) != want {
			t.Errorf("a CA of %d bytes: %v", size, err)
		}
	}
	if _, err := TLSConfig(cert, key, key, nil); err == nil {
		t.Error("a key is a CA")
	}
	must(t, os.Chmod(ours.file, 0o666))
	if _, err := TLSConfig(cert, key, ours.file, nil); err == nil || !strings.Contains(err.Error(), "chmod") {
		t.Errorf("a CA that others can write: %v", err)
	}
	must(t, os.Chmod(key, 0o644))
	if _, err := TLSConfig(cert, key, "", nil); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others can read: %v", err)
	}
}

// A certificate that was renewed is shown without a restart; one that cannot be
// taken leaves the one that was there.
func TestCertificatesAreRenewed(t *testing.T) {
	ours := newAuthority(t, "our CA")
	first, _, cert, key := ours.sign("first", nil, false)
	second, _, cert2, key2 := ours.sign("second", nil, false)
	var said strings.Builder
	cfg, err := TLSConfig(cert, key, "", slog.New(slog.NewTextHandler(&said, nil)))
	must(t, err)
	shows := func(want *x509.Certificate) {
		t.Helper()
		for range 2 {
			got, err := cfg.GetCertificate(nil)
			if err != nil || !got.Leaf.Equal(want) {
				t.Errorf("%v", err)
			}
		}
	}
	shows(first)
	must(t, os.Rename(cert2, cert))
	shows(first) // its key is not there yet
	must(t, os.Chmod(key2, 0o644))
	must(t, os.Rename(key2, key))
	shows(first) // others can read it
	must(t, os.Chmod(key, 0o600))
	shows(second)
	must(t, os.Remove(key))
	shows(second)
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	for i, want := range []string{"tls.not_renewed", "chmod 600", "tls.renewed", "tls.not_renewed"} { // each once
		if len(lines) != 4 || !strings.Contains(lines[i], want) {
			t.Errorf("told, without %q: %q", want, lines)
		}
	}
}
