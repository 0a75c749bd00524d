package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/launcher"
)

// A signer signs certificates, which lie in dir.
type signer struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	n    int64
}

// newSigner is an authority whose own certificate is NAME.pem.
func newSigner(t *testing.T, dir, name string) *signer {
	t.Helper()
	s := &signer{t: t, dir: dir}
	s.sign(name, time.Hour)
	return s
}

// sign makes NAME.pem and NAME.key, good from two hours ago until end from now.
// The first one is the authority's own.
func (s *signer) sign(name string, end time.Duration) *x509.Certificate {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	s.n++
	c := &x509.Certificate{
		SerialNumber: big.NewInt(s.n), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-2 * time.Hour),
		NotAfter:    time.Now().Add(end),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(127, 0, 0, 2)}, BasicConstraintsValid: true,
	}
	parent, by := s.cert, s.key
	if parent == nil {
		c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), by)
	raw, keyErr := x509.MarshalPKCS8PrivateKey(key)
	if err := errors.Join(err, keyErr); err != nil {
		s.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{"pem": {Type: "CERTIFICATE", Bytes: der}, "key": {
		Type:  "PRIVATE KEY",
		Bytes: raw,
	}} {
		if err := os.WriteFile(s.at(name+"."+file), pem.EncodeToMemory(block), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.cert == nil {
		s.cert, s.key = made, key
	}
	return made
}

func (s *signer) at(file string) string { return filepath.Join(s.dir, file) }

// client trusts the authority, and shows the certificate of that name, asked for
// or not. Each of its requests has a connection of its own.
func (s *signer) client(name string, most uint16) *http.Client {
	s.t.Helper()
	c := &tls.Config{RootCAs: x509.NewCertPool(), MaxVersion: most}
	pool, err := os.ReadFile(s.at("ca.pem"))
	if err != nil || !c.RootCAs.AppendCertsFromPEM(pool) {
		s.t.Fatal(err)
	}
	if name != "" {
		pair, err := tls.LoadX509KeyPair(s.at(name+".pem"), s.at(name+".key"))
		if err != nil {
			s.t.Fatal(err)
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
}

// get is what a stranger is answered, or why not. What says that it was
// forwarded is never taken for the operator, at whose loopback this is.
func get(t *testing.T, c *http.Client, address, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Via", "1.1 elsewhere")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := c.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// newToken makes a token, or binds a certificate, and is what is printed and the
// id.
func (h *helped) newToken(t *testing.T, args ...string) (token, id string) {
	t.Helper()
	r := start(t, h.env, "rlp", append([]string{"token", "new", "--expires", "1d"}, args...)...)
	if r.code != 0 {
		t.Fatalf("%+v", r)
	}
	return strings.TrimSpace(r.stdout), strings.Fields(strings.TrimPrefix(r.stderr, "rlp: made "))[0]
}

func (h *helped) revoke(t *testing.T, id string) {
	t.Helper()
	if r := start(t, h.env, "rlp", "token", "revoke", id); r.code != 0 {
		t.Fatalf("%+v", r)
	}
}

// own is the service's own log.
func (s *testService) own(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.home, "log", "serve.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// overTLS is a service for other machines, which takes certificates that "ca"
// signed; and one that signs for somebody else.
func (m *made) overTLS(t *testing.T) (s *testService, ours, others *signer) {
	t.Helper()
	h := m.servable(t)
	dir := t.TempDir()
	ours, others = newSigner(t, dir, "ca"), newSigner(t, dir, "another ca")
	ours.sign("server", time.Hour)
	ours.sign("bound", time.Hour)
	ours.sign("hashed", time.Hour)
	ours.sign("unbound", time.Hour)
	ours.sign("expired", -time.Hour)
	others.sign("foreign", time.Hour)
	text := fmt.Sprintf("[security]\nrun_grant = \"operator_full\"\n[serve]\ngrace = \"300ms\"\ntls_cert = %q\ntls_key "+
		"= %q\nclient_ca = %q\n", ours.at("server.pem"), ours.at("server.key"), ours.at("ca.pem"))
	if err := os.WriteFile(filepath.Join(h.home, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := start(t, h.env, "rlp", "serve", "--listen", "0.0.0.0:0"); r.code != launcher.StatusPolicy ||
		!strings.Contains(r.stderr, "rlp token new") {
		t.Errorf("nobody could come in: %+v", r)
	}
	h.newToken(t, "--name", "bound", "--cert", "bound")
	return h.serving(t, "--listen", "0.0.0.0:0"), ours, others
}

// Who asks from elsewhere is who a certificate or a token says, and everybody
// else is refused and told why.
//
//rlp:holds K53 K71
func TestServeOverTLS(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	s, ours, others := m.overTLS(t)
	host, port, err := net.SplitHostPort(strings.TrimPrefix(s.said.Addresses[1], "https://"))
	if err != nil || host != "0.0.0.0" {
		t.Fatalf("%v %s", err, s.said.Addresses)
	}
	base := "https://127.0.0.2:" + port
	hashed := sha256.Sum256(ours.sign("hashed", time.Hour).Raw)
	_, byHash := s.newToken(t, "--name", "hashed", "--may", "read", "--cert", hex.EncodeToString(hashed[:]))
	// of another authority: its name alone binds nothing
	foreignName, _ := s.newToken(t, "--name", "impostor", "--cert", "foreign")
	expiredName, _ := s.newToken(t, "--name", "late", "--cert", "expired")
	token, id := s.newToken(t, "--name", "ci")
	if foreignName != "" || expiredName != "" {
		t.Error("a certificate needs no token, and one was printed")
	}
	refusals := func(what string, c *http.Client, token string, status int, why, logged string) {
		t.Helper()
		if got, text := get(t, c, base+"/runs", token); got != status || !strings.Contains(text, why) {
			t.Errorf("%s: %d %s, want %d and %q", what, got, text, status, why)
		}
		soon(t, what+" is in the log as "+logged, func() bool { return strings.Contains(s.own(t), logged) })
	}
	for who, c := range map[string]struct{ cert, token string }{
		"bound by its name": {"bound", ""},
		"bound by its hash": {"hashed", ""}, "a token": {"", token}, "a token before a certificate": {"unbound", token},
	} {
		if status, text := get(t, ours.client(c.cert, 0), base+"/runs", c.token); status != http.StatusOK {
			t.Errorf("control: %s: %d %s", who, status, text)
		}
	}
	refusals("nothing", ours.client("", 0), "", 401, "rlp token new", "access.anonymous")
	refusals("no token", ours.client("bound", 0), "rlpt_none", 401, "rlp token new", "no such token")
	refusals("unbound", ours.client("unbound", 0), "", 401, "rlp token new --cert", "no such certificate")
	refusals("of another authority", others.client("foreign", 0), "", 401,
		"no authority that serve.client_ca names signed this", "not signed by serve.client_ca")
	refusals("expired", ours.client("expired", 0), "", 401, "this client certificate ended at 20",
		"the certificate is expired")
	refusals("TLS 1.2", ours.client("bound", tls.VersionTLS12), "", 0, "protocol version", "unsupported versions")
	if status, text := get(t, http.DefaultClient, "http"+strings.TrimPrefix(base, "https")+"/runs", ""); status != 400 ||
		!strings.Contains(text, "HTTPS") {
		t.Errorf("in the clear: %d %s", status, text)
	}
	s.revoke(t, id)
	s.revoke(t, byHash)
	refusals("revoked", ours.client("", 0), token, 401, "the token is revoked", `"why":"revoked"`)
	refusals("a revoked certificate", ours.client("hashed", 0), "", 401, "the token is revoked", `"why":"revoked"`)
	if strings.Contains(s.own(t), token[len("rlpt_"):]) {
		t.Error("the log has the token")
	}

	launch := func(cert string) ran {
		return start(t, s.env, "rlp", "launch", "--remote="+base, "--ca", ours.at("ca.pem"), "--cert", ours.at(cert+".pem"),
			"--key", ours.at(cert+".key"), "probe", "--", "write", s.work+"/"+cert, "x")
	}
	if r := launch("bound"); r.code != 0 {
		t.Errorf("control: %+v", r)
	}
	for cert, why := range map[string]string{
		"unbound": "rlp token new --cert", "hashed": "revoked",
		"foreign": "no authority that serve.client_ca names", "expired": "this client certificate ended at",
	} {
		r := launch(cert)
		if _, err := os.Stat(filepath.Join(s.work, cert)); r.code != launcher.StatusPolicy || !strings.Contains(r.stderr,
			why) || err == nil {
			t.Errorf("%s: %+v", cert, r)
		}
	}
	if r := start(t, s.env, "rlp", "launch", "--remote="+base, "--cert", ours.at("bound.pem"), "--key",
		ours.at("bound.key"), "probe"); r.code == 0 || !strings.Contains(r.stderr, "--ca") {
		t.Errorf("a service of a stranger's: %+v", r)
	}
}

// A certificate of the service that was renewed is shown from the next connection
// on; one that cannot be taken is told, and leaves the one that was there.
func TestServeRenewsItsCertificate(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	s, ours, _ := m.overTLS(t)
	address := strings.Replace(s.said.Addresses[1], "0.0.0.0", "127.0.0.1", 1)
	shown := func() string {
		t.Helper()
		c := ours.client("bound", 0)
		answer, err := c.Get(address + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.TLS.PeerCertificates[0].SerialNumber.String()
	}
	first := shown()
	second := ours.sign("next", time.Hour).SerialNumber.String()
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(ours.at(from), ours.at(to)); err != nil {
			t.Fatal(err)
		}
	}
	move("next.pem", "server.pem")
	for range 3 {
		if got := shown(); got != first {
			t.Errorf("without its key: %s", got)
		}
	}
	if n := strings.Count(s.own(t), "tls.not_renewed"); n != 1 || !strings.Contains(s.own(t),
		"private key does not match") {
		t.Errorf("told %d times: %s", n, s.own(t))
	}
	move("next.key", "server.key")
	if got := shown(); got != second {
		t.Errorf("renewed: %s, want %s", got, second)
	}
	if !strings.Contains(s.own(t), "tls.renewed") {
		t.Errorf("the log does not say so: %s", s.own(t))
	}
}
