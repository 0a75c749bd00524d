package proxy_test

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/effect/netns"
	"runloop.dev/rlp/internal/effect/netns/netnstest"
	"runloop.dev/rlp/internal/effect/proxy"
)

// A step is one thing that a program does, what it sees of it, and what is recorded.
type step struct{ order, sees, records string }

func (w *world) steps(c netnstest.Config, list []step) {
	w.t.Helper()
	orders := []string{"/proc/self/exe", "client"}
	want, records := "", []string(nil)
	for _, s := range list {
		orders = append(orders, s.order)
		want += s.sees + "\n"
		if s.records != "" {
			records = append(records, strings.Split(s.records, "; ")...)
		}
	}
	got := strings.ReplaceAll(w.run(c, orders...), "!connection reset by peer", "!reset")
	for i, line := range strings.Split(got, "\n") {
		if wanted := strings.Split(want, "\n"); i >= len(wanted) || line != wanted[i] {
			w.t.Errorf("step %d: %s\ngot  %s\nwant %s", i, append(orders[2:], "")[i], line, append(wanted, "", "")[i])
		}
	}
	slices.Sort(records)
	if said := w.policy.said(); !slices.Equal(said, records) {
		w.t.Errorf("recorded\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(records, "\n"))
	}
}

// A TLS connection is for the name that was judged, or it ends, unless bytes are
// granted there.
//
//rlp:holds N5
func TestTLSIsForTheJudgedName(t *testing.T) {
	cert, _ := authority(t)
	who(t, func(t *testing.T, c netnstest.Config) {
		w := newWorld(t, map[string]proxy.Ways{
			"api.test:443": proxy.TLS, "other.test:443": proxy.TLS | proxy.Bytes, "api.test:8443": proxy.TLS | proxy.HTTP,
			"api.test:80": proxy.HTTP, "inner.test:443": proxy.TLS, "93.184.215.14:443": proxy.TLS,
			"198.18.7.7:443": proxy.TLS,
		})
		served := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "hello") })
		w.web("443", cert, served)
		w.web("80", nil, served)
		w.web("8443", cert, served)
		const ok, no = "allowed https://api.test:443", "refused https://api.test:443 0 "
		const nobody = " 5 no name was answered with this address"
		w.steps(c, []step{
			{"tls api.test:443 api.test", "hello", ok},
			{"tls api.test:443 API.Test", "hello", ok},
			{"slow-tls api.test:443 api.test", "hello", ok},
			{"tls api.test:443 other.test", "!reset", no + `its ClientHello names "other.test"`},
			{"tls api.test:443 api.test.evil.test", "!reset", no + `its ClientHello names "api.test.evil.test"`},
			{"tls api.test:443 192.0.2.1", "!reset", no + "its ClientHello has no server name"},
			{`say api.test:443 GET / HTTP/1.1\r\nHost: api.test\r\n\r\n`, "!reset", no +
				"it does not begin with a ClientHello of TLS"},
			{`say api.test:443 SSH-2.0-x\r\n`, "!reset", no + "it does not begin with a ClientHello of TLS"},
			{"tls other.test:443 api.test", "hello", "allowed tcp://other.test:443"},
			{"tls api.test:8443 api.test", "hello", "allowed https://api.test:8443"},
			{"tls api.test:8443 other.test", "!reset", `refused https://api.test:8443 0 its ClientHello names "other.test"`},
			{"tls api.test:80 api.test", "!reset", "denied https://api.test:80"},
			{"tls inner.test:443 inner.test", "!reset", "allowed https://inner.test:443; " +
				"refused https://inner.test:443 1 inner.test is 10.0.0.1, which is private"},
			{"tls 93.184.215.14:443 192.0.2.1", "hello", "allowed https://93.184.215.14:443"},
			{"tls 93.184.215.14:443 api.test", "!reset", `refused https://93.184.215.14:443 0 its ClientHello names "api.test"`},
			{"tls 93.184.215.15:443 api.test", "!reset", "denied https://93.184.215.15:443"},
			{"tls 198.18.9.9:443 api.test", "!reset", "refused https://198.18.9.9:443" + nobody},
			{"tls 198.18.9.9:443 api.test", "!reset", ""}, // once
			{"tls [fd72:6c70::9:9]:443 api.test", "!reset", "refused https://[fd72:6c70::9:9]:443" + nobody},
			{"tls [fd72:6c70::1:0:0:10]:80 api.test", "!reset", "refused http://[fd72:6c70::1:0:0:10]:80" + nobody},
			{"tls 198.18.7.7:443 api.test", "!reset", "refused https://198.18.7.7:443" + nobody}, // whatever is granted
			{"names 198.18.0.2:53 api.test", "true", ""},
			{"names 198.18.0.2:53 elsewhere.test", "false!lookup elsewhere.test. on 198.18.0.2:53: no such host", "unknown elsewhere.test"},
			{"names 8.8.8.8:53 api.test", "true", ""},
		})
		if slices.Contains(w.dialled, "10.0.0.1:443") {
			t.Error("a private address was dialled")
		}
	})
}

// echKey is a key by which a server reads encrypted ClientHellos, and what its clients
// are told of it; name is in the open in such ones.
func echKey(t *testing.T, name string) (key tls.EncryptedClientHelloKey, told []byte) {
	t.Helper()
	private, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public := private.PublicKey().Bytes()
	body := append([]byte{7, 0, 0x20, 0, byte(len(public))}, public...)
	body = append(body, 0, 4, 0, 1, 0, 1, 64, byte(len(name)))
	body = append(append(body, name...), 0, 0)
	one := append(binary.BigEndian.AppendUint16([]byte{0xfe, 0x0d}, uint16(len(body))), body...)
	key = tls.EncryptedClientHelloKey{Config: one, PrivateKey: private.Bytes(), SendAsRetry: true}
	return key, append(binary.BigEndian.AppendUint16(nil, uint16(len(one))), one...)
}

// A ClientHello that names a granted server in the open, and another one to the server
// alone, is refused. The control is a place that is granted as bytes, where it comes to
// the other one.
//
//rlp:holds N5
func TestNobodyHidesTheServersName(t *testing.T) {
	key, told := echKey(t, "api.test")
	cert, _ := authority(t)
	w := newWorld(t, map[string]proxy.Ways{"api.test:443": proxy.TLS, "other.test:443": proxy.Bytes})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(rw, r.TLS.ServerName, r.TLS.ECHAccepted)
	}))
	keys := []tls.EncryptedClientHelloKey{key}
	s.TLS = &tls.Config{Certificates: []tls.Certificate{*cert}, EncryptedClientHelloKeys: keys}
	s.StartTLS()
	t.Cleanup(s.Close)
	w.lead[public.String()+":443"] = s.Listener.Addr().String()
	words := hex.EncodeToString(told)
	w.steps(netnstest.Config{User: true}, []step{
		{"ech other.test:443 " + words, "hidden.testtrue", "allowed tcp://other.test:443"},
		{"ech api.test:443 " + words, "!reset", "refused https://api.test:443 0 its ClientHello hides a server's name, " +
			"or is made to look so (Encrypted ClientHello)"},
	})
}

// Each request of a connection is judged by its host and method.
//
//rlp:holds N5
func TestRequestsAreJudgedOneByOne(t *testing.T) {
	who(t, func(t *testing.T, c netnstest.Config) {
		w := newWorld(t, map[string]proxy.Ways{"api.test:80": proxy.HTTP, "api.test:8080": proxy.HTTP})
		w.policy.methods = []string{"GET", "POST"}
		served := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header()["Date"] = nil
			b, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(rw, "%s %s %s %q %q", r.Method, r.RequestURI, b, r.Header["X-Forwarded-For"], r.Header["Upgrade"])
		})
		w.web("80", nil, served)
		w.web("8080", nil, served)
		const (
			end   = ` HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n`
			kept  = ` HTTP/1.1\r\nHost: api.test\r\n\r\n`
			get   = "allowed http://api.test:80 GET"
			other = "refused http://api.test:80 0 the request is for another host than the connection"
			no    = "refused http://api.test:80 2 "
		)
		w.steps(c, []step{
			{"web api.test:80 GET /a//b/../c?x=%41;y" + end, "GET /a//b/../c?x=%41;y  [] []", get},
			{"web api.test:80 GET /1" + kept + "GET /2" + end, "GET /1  [] []; GET /2  [] []", get + "; " + get},
			{"web api.test:80 GET /1" + kept + "DELETE /2" + end, "GET /1  [] []; 403", get + "; denied http://api.test:80 DELETE"},
			{"web api.test:80 GET /1" + kept + `GET /2 HTTP/1.1\r\nHost: other.test\r\n\r\n`, "GET /1  [] []; 421", get + "; " + other},
			{`web api.test:80 GET http://other.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n`, "421", other},
			{`web api.test:80 GET / HTTP/1.1\r\nHost: api.test:81\r\n\r\n`, "421", other},
			{`web api.test:8080 GET / HTTP/1.1\r\nHost: api.test\r\n\r\n`, "421", strings.Replace(other, "80", "8080", 1)},
			{`web api.test:80 GET / HTTP/1.1\r\nHost: api.test\r\nHost: other.test\r\n\r\n`, "400", ""},
			{`web api.test:80 GET / HTTP/1.1\r\n\r\n`, "400", ""},
			{`web api.test:80 CONNECT api.test:80 HTTP/1.1\r\nHost: api.test\r\n\r\n`, "501", no + "the method CONNECT"},
			{`web api.test:80 TRACE / HTTP/1.1\r\nHost: api.test\r\n\r\n`, "501", no + "the method TRACE"},
			{
				`web api.test:80 GET / HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`, "501",
				no + "another protocol by Upgrade",
			},
			{
				`web api.test:80 GET / HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n`,
				"GET /  [] []", get,
			},
			{`web api.test:80 PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`, "505", no + "HTTP/2 without TLS"},
			{
				`web api.test:80 POST / HTTP/1.1\r\nHost: api.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n` +
					`Connection: close\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: other.test\r\n\r\n`,
				"POST /  [] []", "allowed http://api.test:80 POST",
			},
			{"web other.test:80 GET /" + end, "!lookup other.test on 198.18.0.2:53: no such host", "unknown other.test"},
		})
	})
}

// What is granted of the host's loopback is a port inside that leads there.
func TestLoopback(t *testing.T) {
	who(t, func(t *testing.T, c netnstest.Config) {
		w := newWorld(t, map[string]proxy.Ways{
			"127.0.0.1:7001": proxy.Bytes, "localhost:7002": proxy.HTTP, "[::1]:7003": proxy.Bytes,
		})
		for _, port := range []string{"7001", "7002", "7003", "7004"} {
			w.tcp(port, func(c net.Conn) {
				_, _ = c.Read(make([]byte, 100)) // or the end is a reset
				_, _ = io.WriteString(c, "HTTP/1.0 200 OK\r\n\r\nhello")
			})
			w.lead["127.0.0.1:"+port], w.lead["[::1]:"+port] = w.lead[public.String()+":"+port], w.lead[public.String()+":"+port]
		}
		c.Plan.Ports = []uint16{7001, 7002, 7003}
		w.steps(c, []step{
			{"say 127.0.0.1:7001 x", `HTTP/1.0 200 OK\r\n\r\nhello`, "allowed tcp://127.0.0.1:7001"},
			{"say [::1]:7001 x", "!reset", "denied tcp://[::1]:7001"},
			{"say [::1]:7003 x", `HTTP/1.0 200 OK\r\n\r\nhello`, "allowed tcp://[::1]:7003"},
			{`web 127.0.0.1:7002 GET / HTTP/1.0\r\nHost: localhost:7002\r\n\r\n`, "hello", "allowed http://localhost:7002 GET"},
			{`web [::1]:7002 GET / HTTP/1.0\r\nHost: [::1]:7002\r\n\r\n`, "hello", "allowed http://localhost:7002 GET"},
			{
				`web 127.0.0.1:7002 GET / HTTP/1.0\r\nHost: other.test:7002\r\n\r\n`, "421",
				"refused http://localhost:7002 0 the request is for another host than the connection",
			},
			{
				"say 127.0.0.1:7004 x", "!connection refused",
				"refused tcp://127.0.0.1:7004 5 nobody listens there in the sandbox, and no port of the host's is granted",
			},
			{"say 127.0.0.1:1 x", "!reset", "denied tcp://127.0.0.1:1"},
		})
	})
}

// What is taken away ends what is open, and what came of it is known.
func TestCut(t *testing.T) {
	ways := map[string]proxy.Ways{"api.test:5432": proxy.Bytes, "api.test:80": proxy.HTTP}
	w := newWorld(t, ways)
	first := make(chan struct{}, 2)
	w.tcp("5432", func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, len("hello")))
		first <- struct{}{}
		_, _ = io.Copy(io.Discard, c)
	})
	w.web("80", nil, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(rw, "first ")
		_ = http.NewResponseController(rw).Flush()
		first <- struct{}{}
		<-r.Context().Done()
	}))
	for _, order := range []string{"say api.test:5432 hello", `say api.test:80 GET / HTTP/1.0\r\nHost: api.test\r\n\r\n`} {
		p := netnstest.Start(t, netnstest.Config{}, "/proc/self/exe", "client", order)
		w.policy.ways = ways
		w.serve(p)
		<-first
		w.policy.revoke()
		out, err := p.Wait()
		if err != nil || !strings.HasSuffix(out, "!connection reset by peer\n") {
			t.Errorf("%s: %v, %q", order, err, out)
		}
		<-w.policy.done
		e := w.policy.ends[len(w.policy.ends)-1]
		if !errors.Is(e.Err, context.Canceled) || e.Sent == 0 || e.Took <= 0 {
			t.Errorf("%s: %+v", order, e)
		}
	}
}

// A limit of bytes ends a connection when it is reached, and counts both ways.
func TestSpend(t *testing.T) {
	errOver := errors.New("no more bytes")
	w := newWorld(t, map[string]proxy.Ways{"api.test:5432": proxy.Bytes, "api.test:80": proxy.HTTP})
	const most = 1 << 20
	var spent int64
	w.policy.spend = func(n int64) error {
		w.policy.mu.Lock()
		defer w.policy.mu.Unlock()
		if spent+n > most {
			return errOver
		}
		spent += n
		return nil
	}
	endless := func(c io.Writer) {
		for b := make([]byte, 64<<10); ; {
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	}
	w.tcp("5432", func(c net.Conn) { endless(c) })
	w.web("80", nil, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { endless(rw) }))
	for _, order := range []string{"say api.test:5432 hello", `say api.test:80 GET / HTTP/1.0\r\nHost: api.test\r\n\r\n`} {
		spent = 0
		out := w.run(netnstest.Config{}, "/proc/self/exe", "client", order)
		<-w.policy.done
		e := w.policy.ends[len(w.policy.ends)-1]
		if e.Err == nil || e.Received > most+pieces || spent < most/2 || int64(len(out)) > 2*most {
			t.Errorf("%s: %+v, %d spent, %d bytes seen", order, e, spent, len(out))
		}
	}
}

// pieces is how much more than what was spent is counted: the piece that was too much.
const pieces = 256 << 10

const patience = 10 * time.Second

// A connection that the program has ended, with all it had to say, is carried out
// to its end when the network is closed.
func TestWhatWasSaidArrives(t *testing.T) {
	w := newWorld(t, map[string]proxy.Ways{"api.test:5432": proxy.Bytes})
	heard, proceed := make(chan string, 1), make(chan struct{})
	w.tcp("5432", func(c net.Conn) {
		<-proceed
		b, _ := io.ReadAll(c)
		heard <- string(b)
	})
	p := netnstest.Start(t, netnstest.Config{}, "bash", "-c", "exec 3<>/dev/tcp/api.test/5432; printf hello >&3")
	s := w.serve(p)
	if out, err := p.Wait(); err != nil {
		t.Fatal(err, out)
	}
	close(proceed)
	s.Close(patience)
	if got := <-heard; got != "hello" {
		t.Errorf("%q", got)
	}
}

// Datagrams go nowhere, and the first to each place is told of; whoever sent them hears
// at once that nobody takes them, so that clients of QUIC go on over TCP.
func TestDatagrams(t *testing.T) {
	for _, c := range []netnstest.Config{
		{}, {User: true}, {Plan: netns.Plan{Redirect: true}}, {User: true, Plan: netns.Plan{Redirect: true}},
	} {
		w := newWorld(t, map[string]proxy.Ways{"api.test:443": proxy.TLS})
		out := w.run(c, "bash", "-c", `for i in 1 2 3; do
for to in 8.8.8.8/443 api.test/443 2001:db8::1/9 198.18.9.9/1 127.0.0.1/9 239.1.2.3/5353 ff05::1/9; do echo x >/dev/udp/$to; done; done
for to in 1.1.1.1/443 2001:db8::2/443; do exec 3<>/dev/udp/$to; echo x >&3; echo x >&3; done 2>&1 | sed 's/.*: //'`)
		const no = " 2 UDP has no way out"
		want := []string{
			"refused udp://8.8.8.8:443" + no, "refused udp://[2001:db8::1]:9" + no, "refused udp://api.test:443" + no,
			"refused udp://1.1.1.1:443" + no, "refused udp://[2001:db8::2]:443" + no, "refused udp://198.18.9.9:1" + no,
			"refused udp://239.1.2.3:5353" + no, "refused udp://[ff05::1]:9" + no, // groups
		}
		if said := w.policy.said(); !slices.Equal(slices.Sorted(slices.Values(said)), slices.Sorted(slices.Values(want))) ||
			out != "Connection refused\nConnection refused\n" {
			t.Errorf("%+v: %q: %s", c, said, out)
		}
		if len(w.dialled)+len(w.lookups) != 0 {
			t.Errorf("connected to %q", w.dialled)
		}
	}
}
