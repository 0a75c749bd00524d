package routes

import (
	"bufio"
	"context"
	"crypto/x509"
	"fmt"
	"io"
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
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/effect/egress"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/secrets"
)

const (
	value = "Sup3r/Secret+Value=="
	grant = `schema = "0.2"
[[inject]]
host = "example.com"
methods = ["GET", "POST", "HEAD"]
path = "/v1/*"
header = "Authorization: Bearer {secret}"
secret = "runloop/api/key"
[capabilities]
net = ["example.com", "www.example.com"]
secrets = [{ id = "runloop/api/key", hosts = ["example.com"] }]
`
)

// A rig is a run's routes, a program's connection to them, and the server behind.
type rig struct {
	t     *testing.T
	log   *audit.Memory
	gate  *gate.Gate
	front *httptest.Server
	mu    sync.Mutex
	seen  []string // what the server was asked: method, URI and the header
	judge sync.Mutex
}

func (r *rig) asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

// last is the newest decision.
func (r *rig) last() audit.Kept {
	r.judge.Lock()
	defer r.judge.Unlock()
	return r.log.Decisions[len(r.log.Decisions)-1]
}

func set(t *testing.T, text string) (caps.Set, *policy.Base) {
	t.Helper()
	base, findings := policy.ParseBase("policy.caps", []byte(text), policy.Options{})
	if err := policy.AsError(findings); err != nil {
		t.Fatal(err)
	}
	made, err := caps.Base(base.Entries, base.Limits)
	if err != nil {
		t.Fatal(err)
	}
	return made, base
}

// open serves the routes of a policy; answer is the server at example.com.
func open(t *testing.T, text string, answer http.HandlerFunc, change ...func(*hostcalls.Config, *gate.Options)) *rig {
	t.Helper()
	r := &rig{t: t, log: audit.NewMemory()}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		r.seen = append(r.seen, q.Method+" "+q.Host+q.RequestURI+" "+q.Header.Get("Authorization"))
		r.mu.Unlock()
		answer(w, q)
	}))
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	client := egress.New(egress.Config{
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
		},
		Roots: roots,
	})
	t.Cleanup(client.Close)
	held, base := set(t, text)
	trusted, _ := set(t, "[capabilities]\nnet = [\"example.com\"]\n")
	opt := gate.Options{KeepAllowed: true, KeepDenied: true, MaxCalls: -1}
	cfg := hostcalls.Config{
		Components: hostcalls.Components{HTTP: client, Secrets: vault(t)},
		Now:        func() int64 { return time.Now().UnixNano() }, Limits: base.Limits,
		Sources: hostcalls.Sources{Trusted: trusted},
	}
	for _, c := range change {
		c(&cfg, &opt)
	}
	var err error
	if r.gate, err = gate.New(held, r.log, opt); err != nil {
		t.Fatal(err)
	}
	cfg.Gate = r.gate
	p, err := hostcalls.NewProgramHost(hostcalls.New(cfg), &r.judge)
	if err != nil {
		t.Fatal(err)
	}
	r.front = httptest.NewUnstartedServer(&Handler{Sender: p, Routes: base.Routes})
	r.front.Config.DisableGeneralOptionsHandler = true
	r.front.Start()
	t.Cleanup(r.front.Close)
	return r
}

func vault(t *testing.T) *secrets.Run {
	t.Helper()
	tenant, err := ident.ParseTenant("default")
	if err != nil {
		t.Fatal(err)
	}
	return secrets.NewRun(func() (secrets.Provider, error) {
		return secrets.Open(secrets.Config{
			Provider: "env", Tenant: tenant, Env: []string{"RLP_SECRET_default_0api_0key=" + value},
		})
	})
}

// A reply is all that a program can read of an answer.
type reply struct {
	status int
	head   http.Header
	body   string
	raw    string
}

// send writes a request as it is, on a connection of its own.
func (r *rig) send(raw string) reply {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.front.Listener.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, raw) }()
	var text strings.Builder
	resp, err := http.ReadResponse(bufio.NewReader(io.TeeReader(conn, &text)), nil)
	if err != nil {
		r.t.Fatalf("%q: %v", raw, err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body) // what broke off is what came
	return reply{resp.StatusCode, resp.Header, string(body), text.String()}
}

// ask sends a request of a program that has nothing to hide.
func (r *rig) ask(method, target, more string) reply {
	r.t.Helper()
	return r.send(fmt.Sprintf("%s %s HTTP/1.1\r\nHost: example.com.rlp\r\nConnection: close\r\n%s\r\n", method, target, more))
}
