package hostcalls

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/secrets"
)

const (
	boundValue  = "B0und-Value-qwertyuiop-4242"
	boundPolicy = "schema = \"0.2\"\n[capabilities]\nnet = { hosts = [\"api.example.com\", \"other.example\", " +
		"\"*.wild.example\", \"api.example.com:8443\"], allow_http = true }\n" +
		"secrets = [{ id = \"runloop/t/bound\", hosts = [\"api.example.com\", \"api.example.com:8443\"] }, { id = " +
		"\"runloop/t/away\", hosts = [\"other.example\"] }]\n"
	boundMark = "[secret runloop/t/bound]"
)

// boundRig is a run that may send one secret to api.example.com alone, and has
// its handle; with no secrets nothing is looked for.
func boundRig(t testing.TB, w *world, with bool) (r *rig, handle string) {
	t.Helper()
	tenant, err := ident.ParseTenant("default")
	if err != nil {
		t.Fatal(err)
	}
	r, handle = netRig(t, w, boundPolicy), boundValue
	if with {
		r.host.cfg.Secrets = secrets.NewRun(func() (secrets.Provider, error) {
			return secrets.Open(secrets.Config{
				Provider: "env", Tenant: tenant,
				Env: []string{"RLP_SECRET_default_0t_0bound=" + boundValue, "RLP_SECRET_default_0t_0away=An0ther-Away-Value"},
			})
		})
		handle = r.handle("runloop/t/bound")
		r.handle("runloop/t/away")
	}
	return r, handle
}

// seen is what an operator can see of a run, and what the guest was answered, in
// lower case.
func (r *rig) seen(answers ...string) string {
	text := strings.Join(answers, "\n")
	for _, d := range r.log.Decisions {
		text += "\n" + d.Target
	}
	for _, e := range r.log.Events {
		text += "\n" + e.ErrorSummary + e.Message
	}
	return strings.ToLower(text)
}

// lookups are the names that were asked for.
func (w *world) lookups() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked)
}

// ask sends a request with a header of this value and returns what the guest is told.
func (r *rig) ask(rawURL, key string) (int64, string) {
	r.t.Helper()
	text, err := json.Marshal(map[string]any{"url": rawURL, "headers": map[string]string{"X-Key": key}})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.call("net_http", string(text), "")
}

// A server that was sent a secret cannot have it sent on by a redirect, however
// it writes it into the URL, and nothing of it is seen or recorded.
//
//rlp:holds R80 R82 K11
func TestARedirectCarriesNoSecretElsewhere(t *testing.T) {
	b64 := base64.RawURLEncoding.EncodeToString([]byte(boundValue))
	for _, location := range []string{
		"https://other.example/p/" + boundValue,
		"https://other.example/p?q=" + boundValue,
		"https://other.example/p#" + boundValue,
		"//other.example/" + strings.ToLower(boundValue),
		"http://api.example.com/" + boundValue,
		"https://api.example.com:8443/" + boundValue, // another server, though the secret may go there
		"https://other.example/" + hex.EncodeToString([]byte(boundValue)),
		"https://other.example/" + b64,
		"https://other.example/" + strings.ReplaceAll(boundValue, "-", "%2d"),
		"https://other.example/a/../%42%30und-Value-qwertyuiop-%34242",
		"https://" + boundValue + ".wild.example/",
		"https://" + b64 + ".wild.example/",
		"https://" + strings.Map(fullWidth, boundValue) + ".wild.example/",
		"http://" + boundValue + "/",
		"http://" + boundValue + "_x/",
		"http://\u2100" + boundValue + "/",
		"ftp://" + boundValue + "/",
		"https://" + boundValue + "@other.example/",
	} {
		for _, with := range []bool{true, false} {
			w := apiWorld(t)
			for _, name := range []string{"other.example", strings.ToLower(boundValue) + ".wild.example", strings.ToLower(b64) +
				".wild.example"} {
				w.name(name, []netip.Addr{publicAddr})
			}
			hops(w, http.StatusFound, location)
			r, key := boundRig(t, w, with)
			n, told := r.ask("https://api.example.com/a", key)
			last := r.log.Decisions[len(r.log.Decisions)-1]
			if !with { // the control: what is no secret goes where the request may go, or is not even an URL
				if sent := w.requests(); len(sent) != 2 && last.Reason != "host_not_permitted" && last.Reason != "invalid_request" {
					t.Errorf("control: %s: sent %q, recorded %+v", location, sent, r.log.Decisions)
				}
				continue
			}
			if n != -2 || !strings.Contains(told, "another host") || !last.Deny || last.Reason != "secret_not_permitted" ||
				last.Target != "https://api.example.com/a" {
				t.Errorf("%s: %d %s, recorded %+v", location, n, told, last)
			}
			if sent, asked := w.requests(), w.lookups(); len(sent) != 1 || len(asked) != 1 {
				t.Errorf("%s: sent %q, looked up %q", location, sent, asked)
			}
			if seen := r.seen(told); strings.Contains(seen, "qwertyuiop") || strings.Contains(seen, strings.ToLower(b64)) {
				t.Errorf("%s: seen in %q", location, seen)
			}
		}
	}
}

// fullWidth is a letter as another one that hosts map to it.
func fullWidth(c rune) rune {
	if c > ' ' && c < 0x7f && c != '-' {
		return c - 0x20 + 0xff00
	}
	return c
}

// To the server that redirects, and under the same scheme, a value may go that
// may be put into a request to it: a use like any other.
//
//rlp:holds R80 R82
func TestARedirectToTheSameServerMayCarryItsSecret(t *testing.T) {
	for location, reason := range map[string]string{
		"/b/" + boundValue: "", "https://api.example.com/b?q=" + boundValue: "", "b?q=" + url.QueryEscape(boundValue): "",
		"/b/An0ther-Away-Value": "secret_not_permitted", // which another server may be sent
	} {
		w := apiWorld(t)
		hops(w, http.StatusFound, location)
		r, key := boundRig(t, w, true)
		req := map[string]any{"url": "https://api.example.com/a", "headers": map[string]string{"X-Key": key}}
		before := len(r.log.Decisions)
		if reason != "" {
			r.refused(req, "", -2, reason)
			if sent := w.requests(); len(sent) != 1 {
				t.Errorf("%s: sent %q", location, sent)
			}
			continue
		}
		n, _ := r.http(req, "")
		if sent := w.requests(); n < 0 || len(sent) != 2 {
			t.Errorf("%s: %d, sent %q", location, n, sent)
		}
		var uses int
		for _, d := range r.log.Decisions[before:] {
			if d.Cap == "secrets.get" && d.Target == "runloop/t/bound@api.example.com:443" && !d.Deny {
				uses++
			}
		}
		if uses != 2 || strings.Contains(r.seen(), "qwertyuiop") {
			t.Errorf("%s: recorded %+v", location, r.log.Decisions[before:])
		}
	}
}

// The same host and port under another scheme is another server; and what stands
// in a location several times is one use of each secret.
func TestARedirectIsJudgedByItsSchemeAndOncePerSecret(t *testing.T) {
	const from, other = "https://api.example.com:8443/a", "An0ther-Away-Value"
	const bound, away = "runloop/t/bound@api.example.com:8443", "runloop/t/away@api.example.com:8443"
	for location, want := range map[string][]string{
		"http://api.example.com:8443/" + boundValue: {from + " secret_not_permitted"},
		"https://api.example.com:8443/" + boundValue: {bound + " granted", "https://api.example.com:8443/" + boundMark +
			" granted"},
		"/?" + other + "&" + boundValue + "&" + other: {
			away + " granted", bound + " granted",
			"https://api.example.com:8443/ granted",
		},
	} {
		known, key := boundRig(t, newWorld(t), true)
		r := netRig(t, newWorld(t), strings.Replace(boundPolicy, `["other.example"] }]`, `["api.example.com:8443"] }]`, 1))
		r.host.cfg.Secrets, r.host.cfg.HTTP = known.host.cfg.Secrets, &sentTo{location: location}
		r.ask(from, key)
		var got []string
		for _, d := range r.log.Decisions[2:] { // behind the request and its secret
			got = append(got, d.Target+" "+d.Reason)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: recorded %q, want %q", location, got, want)
		}
	}
}

// What a base URL holds is judged with every redirect from it: a relative one
// keeps it, one to another server does not.
func TestAValueInTheBaseOfARedirect(t *testing.T) {
	w := apiWorld(t)
	steps := []string{"/b/" + boundValue + "/c", "d", "//other.example/e"}
	w.handler = func(rw http.ResponseWriter, _ *http.Request) {
		if len(steps) > 0 {
			rw.Header().Set("Location", steps[0])
			rw.WriteHeader(http.StatusFound)
			steps = steps[1:]
		}
	}
	r, _ := boundRig(t, w, true)
	n, _ := r.http(map[string]any{"url": "https://api.example.com/a"}, "")
	if sent := w.requests(); n < 0 || len(sent) != 4 || sent[3] != "GET https://other.example/e" ||
		strings.Contains(r.seen(), "qwertyuiop") {
		t.Errorf("%d, sent %q, recorded %+v", n, sent, r.log.Decisions)
	}
}

// The names of headers come canonical, which is another case than a server
// wrote them in.
//
//rlp:holds R82 K11
func TestHeaderNamesHoldNoValues(t *testing.T) {
	w := apiWorld(t)
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		rw.Header()[r.Header.Get("X-Key")] = []string{"1"}
		rw.Header()["x-"+hex.EncodeToString([]byte(r.Header.Get("X-Key")))] = []string{"2"}
	}
	for _, with := range []bool{true, false} {
		r, key := boundRig(t, w, with)
		n, a := r.http(map[string]any{"url": "https://api.example.com/", "headers": map[string]string{"X-Key": key}}, "")
		canonical := http.CanonicalHeaderKey(boundValue)
		if !with {
			if n < 0 || a.Headers[canonical] != "1" || canonical == boundValue {
				t.Errorf("control: %d %+v", n, a)
			}
			continue
		}
		head, err := json.Marshal(a.Headers)
		if err != nil || n < 0 || a.Headers[boundMark] != "1" || a.Headers["X-"+boundMark] != "2" ||
			strings.Contains(strings.ToLower(string(head)), "qwertyuiop") {
			t.Errorf("%d %s %v", n, head, err)
		}
	}
}

// A request that lost the name which the guest gave it still calls itself rlp.
func TestARequestAlwaysNamesItself(t *testing.T) {
	w := apiWorld(t)
	var names []string
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		names = append(names, r.Header.Get("User-Agent"))
		if len(names) == 1 {
			http.Redirect(rw, r, "https://other.example/", http.StatusFound)
		}
	}
	r, key := boundRig(t, w, true)
	n, _ := r.http(map[string]any{"url": "https://api.example.com/", "headers": map[string]string{"User-Agent": "me/" +
		key}}, "")
	if n < 0 || !slices.Equal(names, []string{"me/" + boundValue, userAgent}) {
		t.Errorf("%d, sent %q", n, names)
	}
}

// A record of what failed is cut after the values in it were taken out, not
// through one of them.
func TestSummariesAreCutWithoutValues(t *testing.T) {
	r, _ := boundRig(t, apiWorld(t), true)
	text := strings.Repeat("x", 190) + boundValue
	if got := summary(text); !strings.HasSuffix(got, boundValue[:10]) {
		t.Errorf("control: %q", got)
	}
	op, err := r.gate.Op("kb_get")
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.host.recorded(op, func() ([]byte, error) { return nil, &Fail{Errno: IO, Hint: text} })
	if last := r.log.Events[len(r.log.Events)-1]; err == nil || last.ErrorSummary == "" || strings.Contains(r.seen(),
		strings.ToLower(boundValue[:5])) {
		t.Errorf("recorded %+v", last)
	}
}
