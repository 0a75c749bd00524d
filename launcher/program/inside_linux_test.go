package program_test

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/secrets"
)

const (
	value = "Sup3r/Secret+Value=="
	route = `[[inject]]
host = "api.test"
methods = ["GET", "POST"]
path = "/v1/*"
header = "Authorization: Bearer {secret}"
secret = "runloop/api/key"
[capabilities]
net = ["api.test"]
secrets = [{ id = "runloop/api/key", hosts = ["api.test"] }]
`
)

// vault has the one secret, in the environment of this process as well: what a program
// can see of that is tried, too.
func vault(t *testing.T) func(*hostcalls.Config, *gate.Options) {
	t.Helper()
	t.Setenv("RLP_SECRET_default_0api_0key", value)
	tenant, err := ident.ParseTenant("default")
	if err != nil {
		t.Fatal(err)
	}
	return func(c *hostcalls.Config, _ *gate.Options) {
		c.Secrets = secrets.NewRun(func() (secrets.Provider, error) {
			return secrets.Open(secrets.Config{Provider: "env", Tenant: tenant, Env: os.Environ()})
		})
	}
}

// forms are the value as servers say it: each encoding that masking knows, and some of
// them together.
func forms() map[string]string {
	b := []byte(value)
	slices.Reverse(b)
	var numeric, escaped, percent, spaced strings.Builder
	for _, c := range []byte(value) {
		fmt.Fprintf(&numeric, "&#x%x;", c)
		fmt.Fprintf(&escaped, `\u%04x`, c)
		fmt.Fprintf(&percent, "%%%02x", c)
		fmt.Fprintf(&spaced, "%02X:", c)
	}
	return map[string]string{
		"plain": value, "base64": base64.StdEncoding.EncodeToString([]byte(value)),
		"base64url, shifted": base64.RawURLEncoding.EncodeToString([]byte("x" + value)),
		"base64, shifted":    base64.StdEncoding.EncodeToString([]byte("xy" + value + "z")),
		"hex":                hex.EncodeToString([]byte(value)), "hex, apart": strings.TrimSuffix(spaced.String(), ":"),
		"query": url.QueryEscape(value), "percent": percent.String(), "reversed": string(b), "entities": numeric.String(),
		"json": strings.ReplaceAll(value, "/", `\/`), "escapes": escaped.String(),
	}
}

const reading = `
import os, sys, urllib.request, urllib.error
class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *a): return None
urls = urllib.request.build_opener(Stay)
for path in sys.argv[1:]:
    try: r = urls.open("http://api.test.rlp/v1/" + path)
    except urllib.error.HTTPError as e: r = e
    print(path, r.status, r.headers, r.read().decode("latin-1"))
for url in ("http://api.test.rlp/v2/x", "http://api.test.rlp/v1/%2e%2e/x", "http://api.test.rlp:81/"):
    try: urllib.request.urlopen(url)
    except Exception as e: print(url, e, getattr(e, "headers", ""), e.read().decode() if hasattr(e, "read") else "")
print(dict(os.environ))
for top in ("/proc", os.environ.get("HOME", "/tmp"), os.getcwd(), "/tmp", "/run", "/dev/shm"):
    for d, dirs, names in os.walk(top):
        if d.startswith("/proc/sys") or d.count("/") > 6: dirs.clear()
        for n in names:
            if n in ("kmsg", "kcore", "kpagecount", "kpageflags", "pagemap", "trace_pipe", "mem"): continue
            p = os.path.join(d, n)
            try:
                with open(os.open(p, os.O_RDONLY | os.O_NONBLOCK), "rb") as f: b = f.read(1 << 14)
                print(p, b.decode("latin-1"))
            except OSError: pass
`

// The value that a route adds is in no byte that the program can read: its environment,
// files, /proc, answers, errors, redirects, whatever the server says of it. The control
// is that the server had it, and said it.
//
//rlp:holds N7
func TestTheValueOfARouteIsNowhereInside(t *testing.T) {
	s := open(t, route, vault(t))
	said := 0
	s.handler = func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer "+value {
			t.Errorf("the server has %q", got)
		}
		kind, form, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
		text := forms()[strings.ReplaceAll(form, "_", " ")]
		if text == "" {
			t.Errorf("no form %q", form)
		}
		said++
		w.Header().Set("X-Echo", text)
		w.Header().Set("Set-Cookie", "token="+text)
		switch kind {
		case "fails":
			w.WriteHeader(500)
		case "moved":
			w.Header().Set("Location", "/v1/whole/"+url.PathEscape(text))
			w.WriteHeader(302)
		case "away":
			w.Header().Set("Location", "https://other.test/?token="+url.QueryEscape(text))
			w.WriteHeader(307)
		case "packed":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, "<<"+text+">>")
			_ = z.Close()
			return
		}
		for _, piece := range strings.SplitAfter("<<"+text+">>", "") { // in pieces of a byte
			_, _ = io.WriteString(w, piece)
			_ = http.NewResponseController(w).Flush()
		}
	}
	var paths []string
	for form := range forms() {
		for _, kind := range []string{"whole", "fails", "moved", "away", "packed"} {
			paths = append(paths, "'"+kind+"/"+strings.ReplaceAll(form, " ", "_")+"'")
		}
	}
	got := s.run(t, "cat >read.py <<'END'\n"+reading+"END\npython3 -u read.py "+strings.Join(paths, " ")+" 2>&1")
	for name, text := range forms() {
		if i := strings.Index(got, text); i >= 0 {
			t.Errorf("%s is inside: %q", name, got[max(0, i-200):min(len(got), i+100)])
		}
	}
	files, marks := strings.Count(got, "/environ "), strings.Count(got, "[secret runloop/api/key]")
	if said != len(paths) || marks < 2*len(paths) || files == 0 || !strings.Contains(got, "route_not_permitted") ||
		strings.Contains(strings.ToLower(got), "set-cookie") {
		t.Errorf("the test says nothing: %d of %d answers, %d marks, %d files, %s", said, len(paths), marks, files,
			got[max(0, len(got)-2000):])
	}
}

const knocking = `
import json, socket, sys
for raw in json.load(sys.stdin):
    c = socket.create_connection(("api.test.rlp", 80))
    c.sendall(raw.encode("latin-1"))
    try: print(c.makefile("rb").readline().decode().split(" ")[1])
    except (IndexError, OSError): print("reset")
    c.close()
`

// Whatever a program writes to get the credential for something else, nothing is sent.
// The control is the same connection with a request that has a route.
//
//rlp:holds N8
func TestNothingElseReachesARoutesCredential(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "hostcalls", "routes", "testdata", "requests.json"))
	if err != nil {
		t.Fatal(err)
	}
	var corpus []struct{ Request string }
	if err := json.Unmarshal(text, &corpus); err != nil {
		t.Fatal(err)
	}
	s := open(t, route+"[limits]\nnet_requests_per_minute = 1000\n", vault(t))
	var list []string
	for _, c := range corpus {
		list = append(list, strings.ReplaceAll(c.Request, "example.com", "api.test"))
	}
	const good = "GET /v1/x HTTP/1.1\r\nHost: api.test.rlp\r\nConnection: close\r\n\r\n"
	asked, err := json.Marshal(append(list, good))
	if err != nil {
		t.Fatal(err)
	}
	got := s.run(t, "cat >knock.py <<'END'\n"+knocking+"END\ncat >asked.json <<'END'\n"+string(asked)+
		"\nEND\npython3 knock.py <asked.json 2>&1")
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != len(list)+1 || lines[len(list)] != "200" {
		t.Fatalf("control: %s", got)
	}
	for i, raw := range list {
		if lines[i] < "400" {
			t.Errorf("%q: %s", raw, lines[i])
		}
	}
	if _, _, served := s.outside(); !slices.Equal(served, []string{"GET https://api.test/v1/x"}) {
		t.Errorf("the server saw %q", served)
	}
}

// Whatever language a program is in, the names that end in .rlp answer it, and keep the
// connection; what streams comes as it is said.
func TestProgramsAskInside(t *testing.T) {
	next := make(chan struct{}, 3)
	s := open(t, route+"model = [\"local:echo\"]\n", vault(t))
	s.handler = func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+" "+r.URL.Path+" "+string(b)+"\n")
		if strings.HasSuffix(r.URL.Path, "/events") {
			_ = http.NewResponseController(w).Flush()
			<-next
			_, _ = io.WriteString(w, "last\n")
		}
	}
	for range 3 {
		next <- struct{}{}
	}
	const asking = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time_now"}}`
	got := s.run(t, `curl -sS http://api.test.rlp/v1/a http://api.test.rlp/v1/b -d x
python3 -c 'import urllib.request as u; print(u.urlopen("http://api.test.rlp/v1/c").read().decode(), end="")'
node --input-type=module -e 'const r = await fetch("http://api.test.rlp/v1/events", {method: "POST", body: "y"})
console.log((await r.text()).trim())'
curl -sS http://api.test.rlp/v2/ -o /dev/null -w '%{http_code}\n'; curl -sS http://other.test.rlp/ 2>&1 | cut -c1-9
curl -sS http://host.rlp/mcp -H 'Accept: application/json, text/event-stream' -H 'Content-Type: application/json' \
	-d '`+asking+`'; echo
curl -sS http://model.rlp/v1/models -o /dev/null -w '%{http_code}\n'`)
	want := "POST /v1/a x\nPOST /v1/b x\nGET /v1/c \nPOST /v1/events y\nlast\n403\ncurl: (6)\n"
	rest, ok := strings.CutPrefix(got, want)
	if !ok || !strings.Contains(rest, "the host answers time_now") || !strings.HasSuffix(rest, "\n404\n") {
		t.Errorf("%s", got)
	}
	if asked, _, _ := s.outside(); slices.ContainsFunc(asked, func(name string) bool { return name != "api.test." }) {
		t.Errorf("looked up %q", asked)
	}
	if !slices.Contains(s.decided(), "net.connect http://other.test.rlp:80 route_not_permitted") {
		t.Errorf("%q", s.decided())
	}
}
