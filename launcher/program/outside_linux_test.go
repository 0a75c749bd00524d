package program_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/internal/record/audit"
)

const naming = `
import socket, sys
found = 0
for i in range(5000):
    for name in ("made-up-%d.wild.test" % i, "secret-word-%d.other.test" % i):
        try: found += bool(socket.getaddrinfo(name, 443, proto=socket.IPPROTO_TCP))
        except socket.gaierror: pass
print("found", found)
`

// Whatever names a program asks for, no resolver hears of one before a connection to it
// is allowed; what a wildcard lets out by connecting, net_requests_per_minute bounds.
//
//rlp:holds N3
func TestNamesReachNoResolver(t *testing.T) {
	s := open(t, "[capabilities]\nnet = [\"*.wild.test\", \"api.test\"]\n[limits]\nnet_requests_per_minute = 3\n")
	const connecting = `for i in 1 2 3 4 5 6; do curl -sko /dev/null -w '%{http_code} ' https://word-$i.wild.test/; done; echo
curl -sko /dev/null https://word-7.other.test/ || echo refused`
	if got := s.run(t, "cat >name.py <<'END'\n"+naming+"END\npython3 name.py"); got != "found 5000\n" {
		t.Fatalf("%s", got)
	}
	if asked, _, _ := s.outside(); len(asked) != 0 {
		t.Errorf("%d names were looked up, such as %q", len(asked), asked[0])
	}
	got := s.run(t, connecting)
	asked, _, _ := s.outside()
	if !slices.Equal(asked, []string{"word-1.wild.test.", "word-2.wild.test.", "word-3.wild.test."}) ||
		got != "200 200 200 000 000 000 \nrefused\n" {
		t.Errorf("control: %s, looked up %q", got, asked)
	}
}

// An ssrfCase is one of hostcalls' corpus, which net_http is held to.
type ssrfCase struct {
	ID           string
	URL          string
	Allow        []string
	AllowHTTP    bool `json:"allow_http"`
	Expect       string
	DNS          map[string][]json.RawMessage
	Redirects    []string
	Method       string
	Headers      map[string]string
	Env          map[string]string
	Body         string
	EntryInvalid bool `json:"entry_invalid"`
}

// spellings are cases that net_http refuses for how they are written. Whatever a program
// makes of them, the places that it then asks for have net_http's verdicts.
var spellings = []string{
	"deny-three-slash", "deny-userinfo", "deny-backslash", "deny-unicode-slash", "deny-octal-of-entry", "deny-redirect-07",
	"deny-redirect-loop",
}

// contents are cases of what a request says. Nobody sees that within TLS; in plain HTTP
// it is refused, or the server does not get it.
var contents = []string{
	"deny-trace", "deny-header-name", "deny-te-smuggle", "deny-cl-smuggle", "deny-upgrade", "deny-proxy-auth",
}

func (c *ssrfCase) argv() string {
	list := []string{"curl", "-gskL", "--max-redirs", "12", "--max-time", "20", "-o", "/dev/null"}
	if c.Method != "" {
		list = append(list, "-X", c.Method)
	}
	for name, v := range c.Headers {
		list = append(list, "-H", name+": "+v)
	}
	if c.Body != "" {
		list = append(list, "-d", c.Body)
	}
	for i, a := range append(list, c.URL) {
		if i == 0 {
			list = nil
		}
		list = append(list, "'"+strings.ReplaceAll(a, "'", `'\''`)+"'")
	}
	return strings.Join(list, " ")
}

// The verdicts on the corpus are those of net_http, from inside of a sandbox. Its control
// is hostcalls': a client that nothing stands in the way of.
//
//rlp:holds N4
func TestSSRFCasesFromInside(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "hostcalls", "testdata", "ssrf_cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []ssrfCase }
	if err := json.Unmarshal(text, &file); err != nil || len(file.Cases) < 100 {
		t.Fatal(err)
	}
	l := newLane(t)
	for _, c := range file.Cases {
		if strings.Contains(c.URL, "\x00") || c.Env != nil { // no argument; no proxy is used
			continue
		}
		do := c.judged
		if slices.Contains(contents, c.ID) {
			do = c.said
		}
		t.Run(c.ID, func(t *testing.T) { do(t, l) })
	}
}

func (c *ssrfCase) judged(t *testing.T, l lane.Lane) {
	hosts, err := json.Marshal(c.Allow)
	if err != nil {
		t.Fatal(err)
	}
	grants := fmt.Sprintf("[capabilities]\nnet = { hosts = %s, allow_http = %v }\n", hosts, c.AllowHTTP)
	if c.EntryInvalid {
		_, findings := policy.ParseBase("policy.caps", []byte(grants), policy.Options{})
		if !policy.HasErrors(findings) {
			t.Errorf("the policy is taken: %s", grants)
		}
		grants = "[capabilities]\nnet = [\"other.example\"]\n" // what is left of such a policy
	}
	s := open(t, grants)
	s.strict = true
	c.URL = strings.Replace(c.URL, ":8080", ":"+s.port, 1)
	for name, raw := range c.DNS {
		s.names[name] = addresses(t, raw)
	}
	n := 0
	s.handler = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		if n < len(c.Redirects) {
			n++
			w.Header().Set("Location", c.Redirects[n-1])
			w.WriteHeader(http.StatusFound)
		}
	}
	out := s.runIn(t, l, c.argv()+" 2>&1")
	_, dialled, served := s.outside()
	want := 0
	if c.Expect == "allow" || len(c.Redirects) > 0 {
		want = 1
	}
	if c.Expect == "allow" {
		want += len(c.Redirects)
	}
	if c.ID == "dns-rebind" {
		want = 1 // and the second connection is refused
		s.runIn(t, l, c.argv())
		_, dialled, served = s.outside()
	}
	if !slices.Contains(spellings, c.ID) && (len(served) != want || len(dialled) > want) {
		t.Errorf("sent %q, connected to %q: %s", served, dialled, out)
	}
	s.handler = func(http.ResponseWriter, *http.Request) {}
	for target, granted := range s.verdicts() {
		if c.ID == "dns-rebind" {
			break
		}
		if other := s.netHTTP(t, target+"/"); other != granted {
			t.Errorf("%s: granted %v, net_http %v", target, granted, other)
		}
	}
}

// verdicts are what was decided on each place, all in all, but for what was refused for
// the name that was said there.
func (s *site) verdicts() map[string]bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	of := map[string]bool{}
	for _, d := range s.log.Decisions {
		if d.Reason == "server_name_mismatch" {
			delete(of, d.Target)
			continue
		}
		before, known := of[d.Target]
		of[d.Target] = d.Reason == "granted" && (before || !known)
	}
	return of
}

// netHTTP is what the import net_http of the same run decides on a request.
func (s *site) netHTTP(t *testing.T, url string) (granted bool) {
	t.Helper()
	funcs, err := s.imports.Funcs()
	if err != nil {
		t.Fatal(err)
	}
	request, err := json.Marshal(map[string]string{"method": "GET", "url": url})
	if err != nil {
		t.Fatal(err)
	}
	mem := append(request, make([]byte, 64<<10)...)
	size := uint64(len(request))
	stack := []uint64{0, size, size, 0, size, 64 << 10} // the request, no body, and where the answer goes
	before := len(s.log.Decisions)
	for _, f := range funcs {
		if f.Name != "net_http" {
			continue
		}
		if err := f.Call(t.Context(), mem, stack); err != nil {
			t.Fatal(err)
		}
	}
	decided := s.log.Decisions[before:]
	return len(decided) > 0 && !slices.ContainsFunc(decided, func(d audit.Kept) bool { return d.Reason != "granted" })
}

// said is a case of contents, in plain HTTP.
func (c *ssrfCase) said(t *testing.T, l lane.Lane) {
	s := open(t, "[capabilities]\nnet = { hosts = [\"api.example.com\"], allow_http = true }\n")
	c.URL = strings.Replace(c.URL, "https:", "http:", 1)
	s.handler = func(_ http.ResponseWriter, r *http.Request) {
		for name := range c.Headers {
			if name != "Content-Length" && r.Header.Get(name) != "" {
				t.Errorf("the server got %s", name)
			}
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || len(body) > 5 || r.TransferEncoding != nil || r.Method != "GET" && r.Method != "POST" {
			t.Errorf("the server got %s %q", r.Method, body)
		}
	}
	out := s.runIn(t, l, c.argv()+" 2>&1")
	if _, _, served := s.outside(); len(served) > 1 {
		t.Errorf("sent %q: %s", served, out)
	}
}

// addresses reads a list of addresses, or a list of such lists.
func addresses(t *testing.T, raw []json.RawMessage) (lists [][]netip.Addr) {
	t.Helper()
	var one []netip.Addr
	for _, r := range raw {
		var a netip.Addr
		var list []netip.Addr
		switch {
		case json.Unmarshal(r, &a) == nil:
			one = append(one, a)
		case json.Unmarshal(r, &list) == nil:
			lists = append(lists, list)
		default:
			t.Fatalf("no address: %s", r)
		}
	}
	if one != nil {
		lists = append(lists, one)
	}
	return lists
}

const probing = `
import errno, socket, struct, sys
def says(what, do):
    try: do(); print(what, "done")
    except OSError as e: print(what, errno.errorcode.get(e.errno, e))
def tcp(family, to):
    c = socket.socket(family, socket.SOCK_STREAM); c.settimeout(10); c.connect(to)
    c.sendall(b"GET / HTTP/1.0\r\n\r\n"); c.recv(1) or sys.exit("ended")
def udp(family, to):
    c = socket.socket(family, socket.SOCK_DGRAM)
    for _ in range(3): c.sendto(b"out", to)
def query(to):
    c = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); c.settimeout(10)
    name = b"".join(bytes([len(l)]) + l for l in b"word.evil.test".split(b".")) + b"\0"
    c.sendto(b"\0\7\1\0\0\1\0\0\0\0\0\0" + name + b"\0\1\0\1", (to, 53)); a = c.recv(512)
    if a[3] & 15 != 3: raise OSError(0, "answered")
for to in ("8.8.8.8", "1.1.1.1"): says("query " + to, lambda: query(to))
for to in ("8.8.8.8", "169.254.169.254", "127.0.0.1", "198.18.0.9"):
    says("udp " + to, lambda: udp(socket.AF_INET, (to, 9999)))
says("udp6", lambda: udp(socket.AF_INET6, ("2001:db8::9", 9999)))
says("icmp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP))
says("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW))
says("raw icmp", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
says("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
says("sctp", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132))
says("vsock", lambda: socket.socket(40, socket.SOCK_STREAM))
says("bluetooth", lambda: socket.socket(31, socket.SOCK_RAW, 1))
for p in range(140, 200): says("protocol", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, p))
for _ in range(3):
    says("icmp6", lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM, socket.IPPROTO_ICMPV6))
    says("docker", lambda: socket.socket(socket.AF_UNIX).connect(sys.argv[2]))
    says("none", lambda: socket.socket(socket.AF_UNIX).connect(sys.argv[2] + ".none"))
    says("mptcp", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262))
for to in ("93.184.215.14", "169.254.169.254", "10.0.0.1"): says(to, lambda: tcp(socket.AF_INET, (to, 80)))
for to in ("2001:db8::1", "fd00:ec2::254"): says(to, lambda: tcp(socket.AF_INET6, (to, 80, 0, 0)))
says("link-local", lambda: tcp(socket.AF_INET6, ("fe80::1", 80, 0, 1)))
says("host", lambda: tcp(socket.AF_INET, ("127.0.0.1", int(sys.argv[1]))))
`

// Nothing leaves but what is granted, by any kind of socket, and what is tried is
// recorded once. Its controls: a program in no lane (the probes of the lanes), and the
// socket of the host, which others reach.
//
//rlp:holds N6
func TestNothingElseLeaves(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	docker, err := net.Listen("unix", filepath.Join(dir, "docker.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer docker.Close()
	s := open(t, "[capabilities]\nnet = { hosts = [\"api.test\"], allow_http = true }\n")
	s.folders = []lane.Folder{{Path: dir, Access: lane.ReadWrite}}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	got := s.run(t, "cat >probe.py <<'END'\n"+probing+"END\npython3 probe.py "+port+" "+dir+"/docker.sock 2>&1; "+
		"curl -s http://api.test/")
	for line := range strings.SplitSeq(strings.TrimSpace(got), "\n") {
		what, _, _ := strings.Cut(line, " ")
		if strings.HasSuffix(line, " done") && what != "udp" && what != "udp6" && what != "query" {
			t.Errorf("%s", line)
		}
	}
	asked, dialled, served := s.outside()
	if !slices.Equal(asked, []string{"api.test."}) || len(dialled) != 1 || len(served) != 1 ||
		!strings.HasSuffix(got, "hello") {
		t.Errorf("looked up %q, connected to %q, sent %q:\n%s", asked, dialled, served, got)
	}
	times := map[string]int{}
	for _, d := range s.decided() {
		times[d]++
	}
	for _, what := range []string{
		"http://93.184.215.14:80", "http://169.254.169.254:80", "http://10.0.0.1:80", "http://[2001:db8::1]:80",
		"http://[fd00:ec2::254]:80", "http://[fe80::1]:80", "https://word.evil.test:443", "udp://8.8.8.8:9999",
		"udp://169.254.169.254:9999", "udp://[2001:db8::9]:9999", "udp://198.18.0.9:9999",
	} {
		if n := times["net.connect "+what+" host_not_permitted"]; n != 1 {
			t.Errorf("%s is recorded %d times", what, n)
		}
	}
	for _, what := range []string{
		"icmp://*", "raw://*", "packet://*", "protocol-132://*", "family-40://*", "family-31://*", "*://*",
		"unix://" + dir + "/docker.sock",
	} {
		if n := times["net.connect "+what+" invalid_request"]; n != 1 {
			t.Errorf("%s is recorded %d times", what, n)
		}
	}
	if n := times["net.connect tcp://127.0.0.1:"+port+" host_not_permitted"]; n != 1 {
		t.Errorf("the host's port is recorded %d times", n)
	}
	if len(times) != 47 { // with 26 protocols, behind which one record stands for all
		t.Errorf("%v", times)
	}
	if c, err := net.Dial("unix", dir+"/docker.sock"); err != nil {
		t.Error(err)
	} else {
		_ = c.Close()
	}
}

const speaking = `
import socket, ssl, sys
for at in sys.argv[1:]:
    place, name = at.split("=")
    host, port = place.split(":")
    c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
    try:
        s = c.wrap_socket(socket.create_connection((host, int(port))), server_hostname=name or None)
        s.sendall(b"GET / HTTP/1.0\r\nHost: " + name.encode() + b"\r\n\r\n")
        print(at, s.makefile("rb").read()[-5:].decode())
    except OSError as e: print(at, "refused")
`

// What is said on a connection is for the name that was judged, by the policy of a run;
// where the place is granted for bytes nobody looks.
func TestWhatIsSaidIsForTheJudgedName(t *testing.T) {
	s := open(t, "[capabilities]\nnet = { hosts = [\"api.test\", \"web.test\"], allow_http = true, methods = [\"GET\"], "+
		"tcp = [\"db.test:443\"] }\n")
	// A grant of some methods is no grant of connections that nobody looks into.
	got := s.run(t, "cat >say.py <<'END'\n"+speaking+"END\npython3 say.py api.test:443=api.test db.test:443=api.test; "+
		`printf 'GET / HTTP/1.1\r\nHost: web.test\r\n\r\nPOST / HTTP/1.1\r\nHost: web.test\r\n\r\n' | python3 -c '
import re, socket, sys
c = socket.create_connection(("web.test", 80)); c.sendall(sys.stdin.buffer.read())
print(re.findall("HTTP/1.1 ([0-9]+)", c.makefile("rb").read().decode()))'`)
	if want := "api.test:443=api.test refused\ndb.test:443=api.test hello\n['200', '403']\n"; got != want {
		t.Errorf("%s", got)
	}
	s = open(t, "[capabilities]\nnet = { hosts = [\"api.test\", \"web.test\"], allow_http = true }\n")
	got = s.run(t, "cat >say.py <<'END'\n"+speaking+"END\n"+
		"python3 say.py api.test:443=api.test api.test:443=web.test api.test:443=")
	if want := "api.test:443=api.test hello\napi.test:443=web.test refused\napi.test:443= refused\n"; got != want {
		t.Errorf("%s", got)
	}
	if want := []string{
		"net.connect https://api.test:443 granted", "net.connect https://api.test:443 server_name_mismatch",
		"net.connect https://api.test:443 server_name_mismatch",
	}; !slices.Equal(s.decided(), want) {
		t.Errorf("%q", s.decided())
	}
}

// A lane goes on while what was refused waits to be recorded; the end of the program
// waits for that.
func TestALaneWaitsForNoRecord(t *testing.T) {
	s := open(t, "[capabilities]\nnet = [\"api.test\"]\n")
	own := s.network.Own()
	s.lock.Lock() // as a host call that has not ended does
	own.Refused("icmp://*")
	s.lock.Unlock()
	sh, err := lane.Resolve("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newLane(t).Run(t.Context(), &lane.Command{
		Program: sh.File, Argv: []string{"sh", "-c", ":"}, Timeout: time.Minute, Network: own,
	}); err != nil {
		t.Fatal(err)
	}
	if got := s.decided(); len(got) != 1 || !strings.Contains(got[0], " icmp://* ") {
		t.Errorf("%q", got)
	}
}
