package connect_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/hostcalls/connect"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/proxy"
	"runloop.dev/rlp/internal/record/audit"
)

// A run is one whose programs connect.
type run struct {
	*connect.Policy
	gate *gate.Gate
	log  *audit.Memory
	lock sync.Mutex
	now  time.Time
}

// newRun is one under a policy and layers, as they are written.
func newRun(t *testing.T, base string, layers ...string) *run {
	t.Helper()
	opt := policy.Options{Home: "/home/op"}
	p, findings := policy.ParseBase("policy.caps", []byte("schema = \"0.2\"\n"+base), opt)
	if policy.HasErrors(findings) {
		t.Fatal(findings)
	}
	set, err := caps.Base(p.Entries, p.Limits)
	if err != nil {
		t.Fatal(err)
	}
	limits := p.Limits
	for _, text := range layers {
		l, findings := policy.ParseLayer("override", "override.toml", []byte("schema = \"0.2\"\n"+text), opt)
		if policy.HasErrors(findings) {
			t.Fatal(findings)
		}
		if set, _, err = set.Narrow(l.Layer); err != nil {
			t.Fatal(err)
		}
	}
	r := &run{log: audit.NewMemory(), now: time.Unix(1_800_000_000, 0)}
	r.gate, err = gate.New(set, r.log, gate.Options{
		KeepAllowed: true, KeepDenied: true, MaxCalls: -1, Now: func() int64 { return r.now.UnixMilli() },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Policy, err = connect.New(connect.Config{
		Gate: r.gate, Lock: &r.lock, Budget: budget.New(limits, nil), Now: func() time.Time { return r.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ways are the ways to a place, in words.
func (r *run) ways(hostPort string) string {
	var words []string
	for i, w := range []string{"https", "http", "tcp"} {
		if r.Ways(hostPort)&(1<<i) != 0 {
			words = append(words, w)
		}
	}
	return strings.Join(words, " ")
}

// decided is the last decision, in words.
func (r *run) decided() string {
	d := r.log.Decisions[len(r.log.Decisions)-1]
	return strings.Join([]string{d.Cap, d.Op, d.Target, d.Reason}, " ")
}

func request(method, query string, header ...string) *http.Request {
	q := &http.Request{Method: method, URL: &url.URL{Path: "/", RawQuery: query}, Header: http.Header{}}
	for _, h := range header {
		q.Header.Set(h, "x")
	}
	return q
}

const everywhere = "[capabilities]\nnet = { hosts = [\"api.example:443\", \"*.example.org\", \"10.1.2.3:8443\"], " +
	"tcp = [\"db.example:5432\", \"api.example:443\"], allow_http = true }\n"

// Policies are rows, places are columns: how each may be spoken to.
func TestWays(t *testing.T) {
	places := []string{
		"api.example:443", "a.example.org:443", "a.example.org:80", "a.b.example.org:443", "db.example:5432",
		"10.1.2.3:8443", "other.example:443",
	}
	for name, c := range map[string]struct {
		policy string
		layers []string
		want   []string
	}{
		"everything": {everywhere, nil, []string{"https http tcp", "https", "http", "", "tcp", "https http", ""}},
		"nothing":    {"", nil, []string{"", "", "", "", "", "", ""}},
		"no http": {
			everywhere,
			[]string{"[capabilities]\nnet = { allow_http = false }\n"},
			[]string{"https tcp", "https", "", "", "tcp", "https", ""},
		},
		"methods": {
			everywhere,
			[]string{"[capabilities]\nnet = { methods = [\"GET\"] }\n"},
			[]string{"http", "", "http", "", "", "http", ""},
		},
		"a method is denied": {
			everywhere,
			[]string{"[deny]\ncapabilities = [\"network:https:delete@a.example.org\"]\n"},
			[]string{"https http tcp", "", "http", "", "tcp", "https http", ""},
		},
		"a condition": {
			everywhere, []string{"[constraints.net]\nmax_response_bytes = 10\n"}, []string{"", "", "", "", "", "", ""},
		},
		"a lease of a method": {
			everywhere,
			[]string{"[leases]\n\"network:https:get@a.example.org\" = { max_uses = 1 }\n"},
			[]string{"https http tcp", "", "http", "", "tcp", "https http", ""},
		},
		"the tool is hidden": {
			everywhere, []string{"[deny]\ntools = [\"web:*\"]\n"}, []string{"", "", "", "", "", "", ""},
		},
		"denied": {
			everywhere, []string{"[deny]\ncapabilities = [\"network:*:*\"]\n"}, []string{"", "", "", "", "", "", ""},
		},
	} {
		r := newRun(t, c.policy, c.layers...)
		for i, place := range places {
			if got := r.ways(place); got != c.want[i] {
				t.Errorf("%s, %s: %q, want %q", name, place, got, c.want[i])
			}
		}
		if len(r.log.Decisions) != 0 {
			t.Errorf("%s: asking recorded %+v", name, r.log.Decisions)
		}
	}
}

// Every decision is recorded, with its reason, before anything is done.
func TestDecisions(t *testing.T) {
	for name, c := range map[string]struct {
		layer  string
		target proxy.Target
		named  bool
		want   string
	}{
		"https": {"", proxy.Target{Way: proxy.TLS, Host: "api.example:443"}, true, "https://api.example:443 granted"},
		"a wildcard": {
			"", proxy.Target{Way: proxy.TLS, Host: "a.example.org:443"}, false, "https://a.example.org:443 granted",
		},
		"bytes": {"", proxy.Target{Way: proxy.Bytes, Host: "db.example:5432"}, true, "tcp://db.example:5432 granted"},
		"a request": {
			"",
			proxy.Target{Way: proxy.HTTP, Host: "a.example.org:80", Request: request("PUT", "")},
			false,
			"http://a.example.org:80 granted",
		},
		"another host": {
			"", proxy.Target{Way: proxy.TLS, Host: "other.example:443"}, false, "https://other.example:443 host_not_permitted",
		},
		"bytes elsewhere": {
			"", proxy.Target{Way: proxy.Bytes, Host: "a.example.org:443"}, false, "tcp://a.example.org:443 host_not_permitted",
		},
		"another method": {
			"[capabilities]\nnet = { methods = [\"GET\"] }\n",
			proxy.Target{Way: proxy.HTTP, Host: "a.example.org:80", Request: request("PUT", "")},
			false,
			"http://a.example.org:80 method_not_permitted",
		},
		"another method in disguise": {
			"[capabilities]\nnet = { methods = [\"GET\"] }\n",
			proxy.Target{Way: proxy.HTTP, Host: "a.example.org:80", Request: request("GET", "", "X-HTTP-Method-Override")},
			false,
			"http://a.example.org:80 method_not_permitted",
		},
		"the same where every method is granted": {
			"",
			proxy.Target{Way: proxy.HTTP, Host: "a.example.org:80", Request: request("GET", "", "X-HTTP-Method-Override")},
			false, "http://a.example.org:80 granted",
		},
		"TLS where methods are": {
			"[capabilities]\nnet = { methods = [\"GET\"] }\n",
			proxy.Target{Way: proxy.TLS, Host: "api.example:443"},
			false,
			"https://api.example:443 method_not_permitted",
		},
		"a condition": {
			"[constraints.net]\nmin_tls = \"1.3\"\n",
			proxy.Target{Way: proxy.TLS, Host: "api.example:443"},
			false,
			"https://api.example:443 method_not_permitted",
		},
	} {
		r := newRun(t, everywhere, c.layer)
		g, err := r.Decide(t.Context(), c.target)
		if got, want := r.decided(), "net.connect connect "+c.want; got != want || g.Named != c.named {
			t.Errorf("%s: %q, named %v; want %q", name, got, g.Named, want)
		}
		if allowed := strings.HasSuffix(c.want, " granted"); (err == nil) != allowed || allowed != (g.Context != nil) {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
}

// What is refused after all, and what came of what was allowed, are records too.
func TestEnds(t *testing.T) {
	r := newRun(t, everywhere)
	api := proxy.Target{Way: proxy.TLS, Host: "api.example:443"}
	r.Refuse(api, proxy.ServerName, "its ClientHello has no server name")
	r.Refuse(api, proxy.Address, "it is private")
	r.Refuse(proxy.Target{Way: proxy.HTTP, Host: "other.example:80"}, proxy.Protocol, "CONNECT")
	r.Unknown("github.example", "")
	r.Unknown("api.example", "")
	r.Unknown("other.rlp", "")
	r.Refuse(proxy.Target{Way: proxy.TLS, Host: "model.rlp:443"}, proxy.Service, "plain HTTP")
	var got []string
	for _, d := range r.log.Decisions {
		got = append(got, d.Target+" "+d.Reason)
	}
	if want := []string{
		"https://api.example:443 server_name_mismatch", "https://api.example:443 address_not_permitted",
		"http://other.example:80 host_not_permitted", "https://github.example:443 host_not_permitted",
		"https://api.example:443 host_not_permitted", "http://other.rlp:80 route_not_permitted",
		"https://model.rlp:443 route_not_permitted",
	}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	r.Done(api, proxy.Grant{}, proxy.End{Sent: 3, Received: 4, Took: 1500 * time.Microsecond})
	r.Done(api, proxy.Grant{}, proxy.End{Err: errors.New("reset")})
	e := r.log.Events[len(r.log.Events)-2:]
	if e[0].Verb != "connect" || e[0].Status != "ok" || e[0].Bytes != 7 || e[0].DurationMS != 1.5 ||
		e[1].Status != "error" || e[1].ErrorSummary != "reset" || e[0].Kind != audit.KindCallDone {
		t.Errorf("%+v", e)
	}
	if first := r.log.Events[0]; first.ErrorSummary != "its ClientHello has no server name" {
		t.Errorf("%+v", first)
	}
}

// What stands for many is recorded with what it stands for; an address that stands for
// no name is refused even where a policy grants it.
func TestEndsOfRecords(t *testing.T) {
	r := newRun(t, everywhere)
	r.Unknown("github.example", "others are not recorded")
	r.Refuse(proxy.Target{Way: proxy.TLS, Host: "api.example:443"}, proxy.Unassigned, "it stands for no name")
	for i, want := range []struct{ reason, summary string }{
		{"host_not_permitted", "others are not recorded"}, {"address_not_permitted", "it stands for no name"},
	} {
		if d, e := r.log.Decisions[i], r.log.Events[i]; d.Reason != want.reason || e.ErrorSummary != want.summary {
			t.Errorf("%+v, %+v", d, e)
		}
	}
}

// A name is known if some port of it may be connected to.
func TestKnows(t *testing.T) {
	r := newRun(t, everywhere)
	for name, want := range map[string]bool{
		"api.example": true, "db.example": true, "a.example.org": true, "example.org": false, "a.b.example.org": false,
		"other.example": false, "xapi.example": false, "": false,
	} {
		if r.Knows(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
	if newRun(t, "").Knows("api.example") {
		t.Error("without grants a name is known")
	}
}

// What is taken away is cut, and nothing else; what has ended is let go.
func TestReview(t *testing.T) {
	r := newRun(t, everywhere, "[leases]\n\"network:tcp:db.example:5432\" = { expires = 2027-01-15T08:00:10Z }\n")
	r.now = time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	over, end := context.WithCancel(t.Context())
	var grants []proxy.Grant
	for _, c := range []struct {
		ctx context.Context
		t   proxy.Target
	}{
		{t.Context(), proxy.Target{Way: proxy.Bytes, Host: "db.example:5432"}},
		{t.Context(), proxy.Target{Way: proxy.TLS, Host: "a.example.org:443"}},
		{over, proxy.Target{Way: proxy.Bytes, Host: "db.example:5432"}},
	} {
		g, err := r.Decide(c.ctx, c.t)
		if err != nil {
			t.Fatal(err)
		}
		grants = append(grants, g)
	}
	end()
	<-grants[2].Context.Done()
	r.Review()
	if grants[0].Context.Err() != nil || grants[1].Context.Err() != nil {
		t.Fatal("cut, and nothing was taken away")
	}
	r.now = r.now.Add(time.Minute)
	r.Review()
	if grants[0].Context.Err() == nil || grants[1].Context.Err() != nil {
		t.Errorf("%v, %v", grants[0].Context.Err(), grants[1].Context.Err())
	}
	if cause := context.Cause(grants[0].Context); cause == nil || !strings.Contains(cause.Error(), "taken away") {
		t.Error(cause)
	}
}

// Connections count for the limits of their run.
func TestLimits(t *testing.T) {
	r := newRun(t, everywhere+"[limits]\nnet_requests_per_minute = 2\nnet_bytes = 10\n")
	api := proxy.Target{Way: proxy.TLS, Host: "api.example:443"}
	g, err := r.Decide(t.Context(), api)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Decide(t.Context(), api); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Decide(t.Context(), api); err == nil || !strings.HasSuffix(r.decided(), "rate_limited") {
		t.Errorf("%v, %s", err, r.decided())
	}
	r.now = r.now.Add(2 * time.Minute)
	if err := g.Spend(10); err != nil {
		t.Error(err)
	}
	if err := g.Spend(1); err == nil {
		t.Error("more bytes than there were")
	}
	if _, err := r.Decide(t.Context(), api); err == nil || !strings.HasSuffix(r.decided(), "budget_exhausted") {
		t.Errorf("%v, %s", err, r.decided())
	}
}

// What is used up is named: calls, and not bytes.
func TestNoMoreCalls(t *testing.T) {
	r := newRun(t, everywhere)
	api := proxy.Target{Way: proxy.TLS, Host: "api.example:443"}
	r.gate.Bound(1)
	if _, err := r.Decide(t.Context(), api); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Decide(t.Context(), api); err == nil || !strings.Contains(err.Error(), "limits.hostcalls_max") ||
		!strings.HasSuffix(r.decided(), "budget_exhausted") {
		t.Errorf("%v, %s", err, r.decided())
	}
}

// A connection to a host that nobody trusts marks the run before anything comes back,
// and says by which; what is granted of the network stays.
func TestConnectionsMark(t *testing.T) {
	trust := func(words ...string) caps.Set {
		var list []caps.Entry
		for _, w := range words {
			g, err := caps.ParseTrustedHost(w)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, caps.Entry{Grant: g})
		}
		set, err := caps.Base(list, caps.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	get := &http.Request{Method: "GET", URL: &url.URL{Path: "/"}}
	for _, c := range []struct {
		trusted []string
		target  proxy.Target
		cause   string
	}{
		{nil, proxy.Target{Way: proxy.TLS, Host: "api.example:443"}, "http:https://api.example:443"},
		{[]string{"api.example"}, proxy.Target{Way: proxy.TLS, Host: "api.example:443"}, ""},
		{[]string{"*.example"}, proxy.Target{Way: proxy.TLS, Host: "api.example:443"}, ""},
		{[]string{"http://api.example"}, proxy.Target{Way: proxy.TLS, Host: "api.example:443"}, "http:https://api.example:443"},
		{
			[]string{"api.example"},
			proxy.Target{Way: proxy.HTTP, Host: "api.example:80", Request: get},
			"http:http://api.example:80",
		},
		{[]string{"http://api.example"}, proxy.Target{Way: proxy.HTTP, Host: "api.example:80", Request: get}, ""},
		{[]string{"db.example:5432"}, proxy.Target{Way: proxy.Bytes, Host: "db.example:5432"}, "http:tcp://db.example:5432"},
		{nil, proxy.Target{Way: proxy.TLS, Host: "other.example:443"}, ""}, // which is denied
	} {
		r := newRun(t, "[capabilities]\nnet = { hosts = [\"api.example\"], allow_http = true, "+
			"tcp = [\"db.example:5432\"] }\n")
		p, err := connect.New(connect.Config{
			Gate: r.gate, Lock: &r.lock, Budget: budget.New(caps.Limits{}, nil), Now: time.Now, Trusted: trust(c.trusted...),
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Decide(t.Context(), c.target)
		if cause, _ := r.gate.Tainted(); cause != c.cause || (err == nil) != (c.target.Host != "other.example:443") {
			t.Errorf("%v, %v: %q, %v", c.trusted, c.target, cause, err)
		}
		if again, err := p.Decide(t.Context(), c.target); err == nil && again.Context.Err() != nil {
			t.Errorf("%v: %v", c.target, again.Context.Err())
		}
	}
}
