package access

import (
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/serve/service"
)

// What a certificate proves ends with the first of it and its record; it is
// believed by what lies between it and an authority, and made for a client.
func TestWhatACertificateProves(t *testing.T) {
	ours := newAuthority(t, "our CA")
	cert, _, _, _ := ours.sign("ci-runner", nil, false)
	for name, c := range map[string]struct {
		expires time.Time
		want    time.Time
	}{
		"no end":    {time.Time{}, cert.NotAfter},
		"later":     {cert.NotAfter.Add(time.Hour), cert.NotAfter},
		"earlier":   {cert.NotAfter.Add(-time.Minute), cert.NotAfter.Add(-time.Minute)},
		"as it is ": {cert.NotAfter, cert.NotAfter},
	} {
		k := kitOf(t, func(o *Options) { o.ClientCAs = pool(ours) })
		k.token(t, func(o *Token) { o.CertName, o.Expires = "ci-runner", c.expires })
		caller, err := k.Authenticate(showing(t, cert))
		if err != nil || !caller.Until.Equal(c.want) {
			t.Errorf("%s: until %v, %v; want %v", name, caller, err, c.want)
		}
	}
	own, key, _, _ := ours.sign("between", nil, true)
	der, err := x509.CreateCertificate(rand.Reader, own, ours.cert, key.Public(), ours.key)
	must(t, err)
	between, err := x509.ParseCertificate(der)
	must(t, err)
	below := &authority{t: t, cert: between, key: key}
	leaf, _, _, _ := below.sign("ci-runner", nil, false)
	server, _, _, _ := ours.sign("ci-runner", []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, false)
	var log *lines
	k := kitOf(t, func(o *Options) { o.ClientCAs = pool(ours); log = logged(o) })
	k.token(t, func(o *Token) { o.CertName = "ci-runner" })
	for name, c := range map[string]struct {
		chain []*x509.Certificate
		want  int
		say   string
	}{
		"with what lies between": {[]*x509.Certificate{leaf, between}, http.StatusOK, ""},
		"without what lies between": {
			[]*x509.Certificate{leaf},
			http.StatusUnauthorized,
			"no authority that serve.client_ca names signed",
		},
		"of a server": {[]*x509.Certificate{server}, http.StatusUnauthorized, "not made to prove a client"},
	} {
		_, err := k.Authenticate(showing(t, c.chain...))
		if c.want == http.StatusOK && err != nil || c.want != http.StatusOK &&
			(err == nil || asDenied(err).Status != c.want || !strings.Contains(err.Error(), c.say)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, os.Chmod(k.store.dir, 0o755))
	if got := k.status(t, showing(t, cert)); got != http.StatusServiceUnavailable {
		t.Errorf("records that cannot be read: %d", got)
	}
	log.has(t, "unreadable", "access.unreadable", k.store.dir)
	nobody := kitOf(t, func(o *Options) { o.Tokens, o.ClientCAs = nil, pool(ours) })
	if _, err := nobody.Authenticate(showing(t, cert)); err == nil || !strings.Contains(err.Error(),
		"stands for nobody here") {
		t.Errorf("without records: %v", err)
	}
}

// Of two records of one certificate that of its hash counts, however often and in
// whatever order they are looked at; one hash is of one record.
func TestOneRecordOfACertificate(t *testing.T) {
	k := kitOf(t, nil)
	cert := &x509.Certificate{Raw: []byte("y")}
	cert.Subject.CommonName = "runner"
	k.token(t, func(o *Token) { o.Name, o.CertName = "all", "runner" })
	one, _ := k.token(t, func(o *Token) { o.Name, o.CertHash = "one", hashOf(cert) })
	for range 50 {
		if found, err := k.store.byCert(cert); err != nil || found == nil || found.ID != one.ID {
			t.Fatalf("%+v, %v", found, err)
		}
	}
	if _, _, err := k.store.New(Token{
		Name: "two", Tenant: "acme", May: service.Read,
		CertHash: hashOf(cert),
	}); err == nil || !strings.Contains(err.Error(), one.ID) {
		t.Errorf("two records of one hash: %v", err)
	}
	other := strings.Repeat("ab", 32)
	if _, _, err := k.store.New(Token{Name: "two", Tenant: "acme", May: service.Read, CertHash: other}); err != nil {
		t.Errorf("another hash: %v", err)
	}
}

// There are as many tokens as there may be, files that are none among them.
func TestHowManyTokensThereAre(t *testing.T) {
	k := kitOf(t, nil)
	k.token(t, nil)
	for i := range maxTokens - 2 {
		id := fmt.Sprintf("%c%c%caaaaaaa", letters[i%32], letters[i/32%32], letters[i/1024])
		must(t, os.WriteFile(filepath.Join(k.store.dir, id+".toml"), nil, 0o600))
	}
	k.token(t, func(o *Token) { o.Name = "last" })
	if _, _, err := k.store.New(Token{Name: "more", Tenant: "acme", May: service.Read}); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprintf("there are %d", maxTokens)) {
		t.Errorf("one more: %v", err)
	}
}

// Guesses at one token are none at another, though the operator has one of their own.
func TestGuessesAreOfTheirToken(t *testing.T) {
	k := kitOf(t, func(o *Options) { o.OperatorToken = strings.Repeat("o", minOperatorToken) })
	_, text := k.token(t, nil)
	_, other := k.token(t, func(o *Token) { o.Name = "other" })
	for i := range freeTries {
		if got := k.status(t, withPeer(bearer(t, wrongOf(text)), fmt.Sprintf("192.0.2.%d",
			i+1))); got != http.StatusUnauthorized {
			t.Fatalf("guess %d: %d", i, got)
		}
	}
	if got := k.status(t, withPeer(bearer(t, text), "198.51.100.1")); got != http.StatusTooManyRequests {
		t.Errorf("control: the token that was guessed at: %d", got)
	}
	for _, good := range []string{other, strings.Repeat("o", minOperatorToken)} {
		if got := k.status(t, withPeer(bearer(t, good), "198.51.100.2")); got != http.StatusOK {
			t.Errorf("another: %d", got)
		}
	}
}

// What is no place is the origin of nothing, not even of itself.
func TestWhatIsNoPlaceHasNoOrigin(t *testing.T) {
	h := hosts{names: map[string]bool{}, port: 0}
	for _, s := range []string{"a..b", ":1", "a:0", "b.9"} {
		if h.sameOrigin("http://"+s, s, false) {
			t.Errorf("%q is the origin of itself", s)
		}
	}
	if !h.sameOrigin("http://a:80", "a", false) || h.sameOrigin("http://a..b", "a", false) || h.sameOrigin("http://a",
		"a..b", false) {
		t.Error("control")
	}
	if p, ok := parsePlace("-a", 80); !ok || p.host != "-a" {
		t.Errorf("a label that begins with a sign: %+v", p)
	}
}
