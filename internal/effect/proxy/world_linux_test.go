package proxy_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
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
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runloop.dev/rlp/internal/effect/egress"
	"runloop.dev/rlp/internal/effect/netns"
	"runloop.dev/rlp/internal/effect/netns/netnstest"
	"runloop.dev/rlp/internal/effect/proxy"
)

func TestMain(m *testing.M) {
	if code, is := netnstest.Child(os.Args); is {
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == "client" {
		client(os.Args[2:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// rules are a policy that is a table, and what it was asked.
type rules struct {
	ways    map[string]proxy.Ways
	wild    string // names that end so are known
	methods []string
	spend   func(int64) error

	mu     sync.Mutex
	log    []string
	ends   []proxy.End
	done   chan struct{}        // one for each end
	grants []context.CancelFunc // of what was allowed
}

func (r *rules) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

// said is what was recorded, in order of its text.
func (r *rules) said() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.log))
}

func (r *rules) Knows(name string) bool {
	if r.wild != "" && strings.HasSuffix(name, r.wild) {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for host := range r.ways {
		if strings.HasPrefix(host, name+":") {
			return true
		}
	}
	return false
}

func (r *rules) Unknown(name, detail string) { r.say("unknown %s%s", name, detail) }

func (r *rules) Ways(hostPort string) proxy.Ways {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ways[hostPort]
}

// revoke takes everything away.
func (r *rules) revoke() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ways = nil
	for _, cancel := range r.grants {
		cancel()
	}
}

func (r *rules) Decide(ctx context.Context, t proxy.Target) (proxy.Grant, error) {
	said := t.String()
	if t.Request != nil {
		said += " " + t.Request.Method
	}
	if r.Ways(t.Host)&t.Way == 0 || t.Request != nil && r.methods != nil && !slices.Contains(r.methods, t.Request.Method) {
		r.say("denied %s", said)
		return proxy.Grant{}, errors.New("not granted")
	}
	r.say("allowed %s", said)
	held, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.mu.Lock()
	r.grants = append(r.grants, cancel)
	r.mu.Unlock()
	return proxy.Grant{Named: true, Context: held, Spend: r.spend}, nil
}

func (r *rules) Refuse(t proxy.Target, why proxy.Refusal, detail string) {
	r.say("refused %s %d %s", t, why, detail)
}

func (r *rules) Done(_ proxy.Target, _ proxy.Grant, e proxy.End) {
	r.mu.Lock()
	r.ends = append(r.ends, e)
	r.mu.Unlock()
	r.done <- struct{}{}
}

// The addresses that names have outside: public ones, of which the dialer of
// these tests leads to servers on loopback.
var (
	public  = netip.MustParseAddr("93.184.215.14")
	private = netip.MustParseAddr("10.0.0.1")
)

// A world is what is outside: names, their servers, and who was asked for what.
type world struct {
	t       *testing.T
	policy  *rules
	inside  proxy.Inside
	client  *egress.Client
	mu      sync.Mutex
	lookups []string
	dialled []string
	lead    map[string]string // "address:port" to where its server is
	addrs   map[string]netip.Addr
}

func newWorld(t *testing.T, ways map[string]proxy.Ways) *world {
	w := &world{
		t: t, policy: &rules{ways: ways, done: make(chan struct{}, 4096)}, lead: map[string]string{},
		addrs: map[string]netip.Addr{"api.test": public, "other.test": public, "inner.test": private},
	}
	w.client = egress.New(egress.Config{Resolve: w.resolve, Dial: w.dial})
	return w
}

func (w *world) resolve(_ context.Context, name string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookups = append(w.lookups, name)
	if a, ok := w.addrs[strings.TrimSuffix(name, ".")]; ok {
		return []netip.Addr{a}, nil
	}
	return nil, &net.DNSError{IsNotFound: true}
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, address)
	if to, ok := w.lead[address]; ok {
		address = to
	}
	w.mu.Unlock()
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// serve serves a program's network until the test ends.
func (w *world) serve(p *netnstest.Program) *proxy.Server {
	s, err := proxy.Serve(p.Sockets, proxy.Config{Policy: w.policy, Outside: w.client, Inside: w.inside, Now: time.Now})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { s.Close(0) })
	return s
}

// run runs a program to its end, in a network that is served.
func (w *world) run(c netnstest.Config, argv ...string) string {
	w.t.Helper()
	p := netnstest.Start(w.t, c, argv...)
	w.serve(p)
	out, err := p.Wait()
	if err != nil {
		out += err.Error() + "\n"
	}
	return out
}

// web is a server on loopback, to which port of the public address leads.
func (w *world) web(port string, cert *tls.Certificate, h http.Handler) {
	s := httptest.NewUnstartedServer(h)
	if cert != nil {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{*cert}}
		s.StartTLS()
	} else {
		s.Start()
	}
	w.t.Cleanup(s.Close)
	w.lead[public.String()+":"+port] = s.Listener.Addr().String()
}

// tcp is a server on loopback that serve serves, a connection at a time.
func (w *world) tcp(port string, serve func(net.Conn)) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c) }()
		}
	}()
	w.lead[public.String()+":"+port] = l.Addr().String()
}

// authority is a certificate for api.test and other.test, and the file of who made
// it, which anybody may read.
func authority(t *testing.T) (*tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a test's"},
		DNSNames: []string{"api.test", "other.test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, text, text, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "ca.pem")
	err = errors.Join(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.Chmod(file, 0o644), os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// who are those who have such a network, by both ways.
func who(t *testing.T, do func(t *testing.T, c netnstest.Config)) {
	t.Helper()
	for _, c := range []netnstest.Config{{}, {User: true}, {User: true, Plan: netns.Plan{Redirect: true}}} {
		t.Run(fmt.Sprintf("user=%v,redirect=%v", c.User, c.Plan.Redirect), func(t *testing.T) { do(t, c) })
	}
}

// last is the innermost error, which is the system's.
func last(err error) string {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err.Error()
}

// client does what it is told, from inside, and prints a line for each.
func client(orders []string) {
	for _, o := range orders {
		kind, rest, _ := strings.Cut(o, " ")
		at, text, _ := strings.Cut(rest, " ")
		said, err := do(kind, at, text)
		if err != nil {
			said += "!" + last(err)
		}
		fmt.Printf("%s\n", said)
	}
}

// A slow connection writes a byte at a time.
type slow struct{ net.Conn }

func (s slow) Write(b []byte) (int, error) {
	for i := range b {
		if _, err := s.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(b), nil
}

func do(kind, at, text string) (string, error) {
	switch kind {
	case "many":
		return many(at, text)
	case "mess":
		return mess(at, text)
	}
	c, err := net.DialTimeout("tcp", at, 10*time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	switch kind {
	case "say": // and hear everything
		if _, err := io.WriteString(c, unescape(text)); err != nil {
			return "", err
		}
		b, err := io.ReadAll(c)
		return escape(string(b)), err
	case "web": // and hear responses: of each the status, and the body of one that is good
		if _, err := io.WriteString(c, unescape(text)); err != nil {
			return "", err
		}
		return responses(c)
	case "drain": // what comes, to its end
		n, err := io.Copy(io.Discard, struct{ io.Reader }{c})
		return strconv.FormatInt(n, 10), err
	case "fill": // so many bytes
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return "", err
		}
		for b := make([]byte, 256<<10); n > 0 && err == nil; n -= int64(len(b)) {
			_, err = c.Write(b[:min(int64(len(b)), n)])
		}
		return "", err
	case "tls", "slow-tls":
		if kind == "slow-tls" {
			c = slow{c}
		}
		t := tls.Client(c, &tls.Config{ServerName: text, InsecureSkipVerify: true})
		if _, err := io.WriteString(t, "GET / HTTP/1.0\r\nHost: "+text+"\r\n\r\n"); err != nil {
			return "", err
		}
		b, err := io.ReadAll(t)
		return string(b[max(0, len(b)-5):]), err
	case "names": // asked of a server by TCP
		r := net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return c, nil }}
		list, err := r.LookupNetIP(context.Background(), "ip4", text+".")
		return fmt.Sprint(len(list) == 1 && netns.Pool4.Contains(list[0].Unmap())), err
	case "ech":
		return hiding(c, text)
	}
	return "", errors.New("no order is called " + kind)
}

// hiding asks hidden.test, whose name only the server reads, by what its clients are told.
func hiding(c net.Conn, words string) (string, error) {
	told, err := hex.DecodeString(words)
	if err != nil {
		return "", err
	}
	t := tls.Client(c, &tls.Config{
		ServerName: "hidden.test", InsecureSkipVerify: true, EncryptedClientHelloConfigList: told,
		MinVersion: tls.VersionTLS13,
	})
	if _, err := io.WriteString(t, "GET / HTTP/1.0\r\nHost: hidden.test\r\n\r\n"); err != nil {
		return "", err
	}
	b, err := io.ReadAll(t)
	_, body, _ := strings.Cut(string(b), "\r\n\r\n")
	return body, err
}

// many opens so many connections, says a word on each, and holds them until the
// other side ends the first.
func many(at, text string) (string, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return "", err
	}
	var all []net.Conn
	for range n {
		c, err := net.Dial("tcp", at)
		if err != nil {
			return "", err
		}
		if _, err := c.Write([]byte("x")); err != nil {
			return "", err
		}
		all = append(all, c)
	}
	_, _ = io.ReadAll(all[0])
	return "held " + strconv.Itoa(len(all)), nil
}

// mess opens so many connections of four kinds: some say a word slowly, or at once and
// are open in one direction then, and hear it; some are reset, some say nothing and go.
func mess(at, text string) (string, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return "", err
	}
	var all sync.WaitGroup
	var heard atomic.Int64
	for i := range n {
		c, err := net.Dial("tcp", at)
		if err != nil {
			return "", err
		}
		t := c.(*net.TCPConn)
		switch i % 4 {
		case 0, 1:
			var w io.Writer = t
			if i%4 == 0 {
				w = slow{t}
			}
			all.Go(func() {
				_, _ = io.WriteString(w, "hello")
				_ = t.CloseWrite()
				if b, _ := io.ReadAll(t); string(b) == "hello" {
					heard.Add(1)
				}
				_ = t.Close()
			})
		case 2:
			_, _ = io.WriteString(t, "hello")
			_ = t.SetLinger(0)
			_ = t.Close()
		case 3:
			_ = t.Close()
		}
	}
	all.Wait()
	return "heard " + strconv.FormatInt(heard.Load(), 10), nil
}

func responses(c net.Conn) (string, error) {
	var all []string
	for r := bufio.NewReader(c); ; {
		if _, err := r.Peek(1); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return strings.Join(all, "; "), err
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return strings.Join(all, "; "), err
		}
		b, err := io.ReadAll(resp.Body)
		one := strconv.Itoa(resp.StatusCode)
		if resp.StatusCode == http.StatusOK {
			one = string(b)
		}
		if all = append(all, one); err != nil {
			return strings.Join(all, "; "), err
		}
	}
}

func unescape(s string) string { return strings.NewReplacer(`\r`, "\r", `\n`, "\n").Replace(s) }

func escape(s string) string { return strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace(s) }
