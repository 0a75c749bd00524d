package hostcalls

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps/policy"
)

// An ssrfCase is one case of testdata/ssrf_cases.json: what is asked for, what
// the policy names, what the resolver says and what the servers answer.
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
	Body         string
	Env          map[string]string
	EntryInvalid bool `json:"entry_invalid"`
}

func ssrfCases(t *testing.T) []ssrfCase {
	t.Helper()
	text, err := os.ReadFile("testdata/ssrf_cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []ssrfCase }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 100 {
		t.Fatalf("%d cases", len(file.Cases))
	}
	return file.Cases
}

// on puts the case into a world: the port 8080 of the cases is the listener's.
func (c *ssrfCase) on(t *testing.T) *world {
	w := newWorld(t)
	port := w.plain[strings.LastIndexByte(w.plain, ':')+1:]
	c.URL = strings.Replace(c.URL, ":8080", ":"+port, 1)
	c.Allow = slices.Clone(c.Allow)
	for i := range c.Allow {
		c.Allow[i] = strings.Replace(c.Allow[i], ":8080", ":"+port, 1)
	}
	for name, raw := range c.DNS {
		w.name(name, addresses(t, raw)...)
	}
	n := 0
	w.handler = func(rw http.ResponseWriter, _ *http.Request) {
		if n < len(c.Redirects) {
			n++
			rw.Header().Set("Location", c.Redirects[n-1])
			rw.WriteHeader(http.StatusFound)
		}
	}
	return w
}

// addresses reads a list of addresses, or a list of such lists.
func addresses(t *testing.T, raw []json.RawMessage) [][]netip.Addr {
	var lists [][]netip.Addr
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

func (c *ssrfCase) policy() string {
	hosts, err := json.Marshal(c.Allow)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("[capabilities]\nnet = { hosts = %s, allow_http = %v }\n", hosts, c.AllowHTTP)
}

// attack makes the request of the case with the client of the standard library.
func (c *ssrfCase) attack(client *http.Client) error {
	method := c.Method
	if method == "" {
		method = "GET"
	}
	req, err := http.NewRequest(method, c.URL, strings.NewReader(c.Body))
	if err != nil {
		return err
	}
	for name, v := range c.Headers {
		req.Header[name] = []string{v}
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return err
}

// refusedByAnyone are attacks that the client of the standard library does not
// make either. That they get nowhere is held as well, but proves nothing.
var refusedByAnyone = []string{
	"deny-backslash", "deny-backslash2", "deny-crlf-host", "deny-header-name", "deny-leading-space", "deny-newline",
	"deny-no-host",
	"deny-nul", "deny-opaque", "deny-port-digits-unicode", "deny-port-name", "deny-port-plus", "deny-redirect-04",
	"deny-redirect-09",
	"deny-redirect-10", "deny-scheme-data", "deny-scheme-dict", "deny-scheme-file", "deny-scheme-http-unix",
	"deny-scheme-javascript",
	"deny-scheme-ldap", "deny-scheme-netdoc", "deny-scheme-relative", "deny-scheme-ws", "deny-three-slash",
	"deny-unicode-slash",
}

// Every case ends as it says, and nothing but what it allows is connected to.
// Each attack works with a client that nothing stands in the way of, but for
// those that no client makes.
//
//rlp:holds R18 R20 R80 C17
func TestSSRFCases(t *testing.T) {
	for _, c := range ssrfCases(t) {
		if c.Env != nil {
			continue // TestProxiesOfTheEnvironmentAreNotUsed
		}
		t.Run(c.ID, func(t *testing.T) {
			w := c.on(t)
			if c.EntryInvalid {
				if _, findings := policy.ParseBase("policy.caps", []byte(c.policy()),
					policy.Options{}); !policy.HasErrors(findings) {
					t.Errorf("the policy is taken: %s", c.policy())
				}
				c.Allow = []string{"other.example"} // what is left of such a policy
			}
			n := c.ask(netRig(t, w, c.policy()))
			guarded := w.requests()
			if (n >= 0) != (c.Expect == "allow") && c.ID != "dns-rebind" {
				t.Fatalf("answered %d, after %v", n, guarded)
			}
			if c.Expect == "allow" && len(guarded) != 1+len(c.Redirects) {
				t.Errorf("sent %v", guarded)
			}
			if strings.HasPrefix(c.ID, "deny-redirect") && len(guarded) != min(len(c.Redirects), 1+MaxRedirects) &&
				len(guarded) != 1 {
				t.Errorf("sent %v", guarded)
			}
			if !strings.HasPrefix(c.ID, "deny-redirect") && n < 0 && len(w.dials()) > 0 {
				t.Errorf("connected to %v", w.dials())
			}
			c.control(t, guarded)
		})
	}
}

// ask makes the request through net_http.
func (c *ssrfCase) ask(r *rig) int64 {
	req := map[string]any{"url": c.URL}
	if c.Method != "" {
		req["method"] = c.Method
	}
	if c.Headers != nil {
		req["headers"] = c.Headers
	}
	n, _ := r.http(req, c.Body)
	return n
}

// control shows that the attack reaches more without the guard.
func (c *ssrfCase) control(t *testing.T, guarded []string) {
	if c.Expect == "allow" || c.ID == "dns-rebind" { // the latter: TestRebindingIsJudgedWhenDialled
		return
	}
	w := c.on(t)
	err := c.attack(w.plainClient())
	reached := len(w.requests()) > len(guarded)
	if known := slices.Contains(refusedByAnyone, c.ID); reached == known {
		t.Errorf("control: plain client reached %v, guarded %v (%v)", w.requests(), guarded, err)
	}
}

// A name that leads to a public address first and to this machine then is
// judged by what is connected to, each time.
//
//rlp:holds R80
func TestRebindingIsJudgedWhenDialled(t *testing.T) {
	rebinding := [][]netip.Addr{{publicAddr}, {netip.MustParseAddr("127.0.0.1")}}
	victim := newWorld(t)
	victim.name("api.example.com", rebinding...)
	naive, err := victim.checkingClient("api.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if err := (&ssrfCase{URL: "http://api.example.com/"}).attack(naive); err != nil || len(victim.requests()) != 1 {
		t.Fatalf("control: checked, then resolved again: %v, %v", victim.requests(), err)
	}
	w := newWorld(t)
	w.name("api.example.com", rebinding...)
	w.handler = func(rw http.ResponseWriter, _ *http.Request) { rw.Header().Set("Connection", "close") }
	r := netRig(t, w, "[capabilities]\nnet = [\"api.example.com\"]\n")
	if n, a := r.get("https://api.example.com/"); n < 0 || a.Status != 200 {
		t.Fatalf("control: the public address: %d %+v", n, a)
	}
	r.refused(map[string]any{"url": "https://api.example.com/"}, "", -2, "address_not_permitted")
	if got := w.dials(); !slices.Equal(got, []string{"93.184.215.14:443"}) {
		t.Errorf("connected to %v", got)
	}
	last := r.log.Decisions[len(r.log.Decisions)-1]
	if !last.Deny || last.Reason != "address_not_permitted" || last.Target != "https://api.example.com/" {
		t.Errorf("recorded %+v", last)
	}
	if e := r.log.Events[len(r.log.Events)-1]; e.Status != "error" || !strings.Contains(e.ErrorSummary,
		"127.0.0.1, which is loopback") {
		t.Errorf("the operator is told %+v", e)
	}
	for _, name := range w.asked {
		if name != "api.example.com." {
			t.Errorf("the resolver was asked for %q: a search domain may complete it", name)
		}
	}
}

// proxySpy is set in the process that the test starts, to a listener's address.
const proxySpy = "RLP_TEST_PROXY_SPY"

// The proxies that the environment names are not used. The standard library
// reads them once a process, so each client gets one of its own.
func TestProxiesOfTheEnvironmentAreNotUsed(t *testing.T) {
	if os.Getenv(proxySpy) != "" {
		proxiedChild(t)
		return
	}
	c := slices.IndexFunc(ssrfCases(t), func(c ssrfCase) bool { return c.ID == "env-proxy" })
	if c < 0 {
		t.Fatal("the case env-proxy is gone")
	}
	for client, used := range map[string]bool{"plain": true, "guarded": false} {
		spy := newWorld(t)
		cmd := exec.Command(os.Args[0], "-test.run=^TestProxiesOfTheEnvironmentAreNotUsed$")
		cmd.Env = append(os.Environ(), proxySpy+"="+client)
		for name := range ssrfCases(t)[c].Env {
			cmd.Env = append(cmd.Env, name+"=http://"+spy.plain)
		}
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", client, err, text)
		}
		if got := len(spy.requests()) > 0; got != used {
			t.Errorf("%s: the proxy was asked %v", client, spy.requests())
		}
	}
}

// proxiedChild makes the request in a process whose environment names a proxy.
func proxiedChild(t *testing.T) {
	w := newWorld(t)
	w.name("api.example.com", []netip.Addr{publicAddr})
	if os.Getenv(proxySpy) == "plain" {
		client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}}
		if resp, err := client.Get("http://api.example.com/"); err == nil {
			_ = resp.Body.Close()
		}
		return
	}
	r := netRig(t, w, "[capabilities]\nnet = { hosts = [\"api.example.com\"], allow_http = true }\n")
	for _, url := range []string{"https://api.example.com/", "http://api.example.com/"} {
		if n, a := r.get(url); n < 0 || a.Status != 200 {
			t.Errorf("%s: %d %+v", url, n, a)
		}
	}
}
