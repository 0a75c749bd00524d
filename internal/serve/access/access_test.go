package access

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/serve/service"
)

// A caller is what the record of its token says, and nothing else is.
//
//rlp:holds K54 K59
func TestATokenIsItsCaller(t *testing.T) {
	k := kitOf(t, nil)
	_, text := k.token(t, func(o *Token) {
		o.Grant, o.Expires, o.May = "{}", time.Now().Add(time.Hour).Truncate(time.Second), service.Read
	})
	c, err := k.Authenticate(bearer(t, text))
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "token:ci" || c.Tenant != "acme" || c.May != service.Read || len(c.Layers) != 1 ||
		c.Layers[0].Name != "token:ci" || c.Until.IsZero() {
		t.Errorf("%+v", c)
	}
}

// A request with Authorization is judged by that alone: the operator's own
// connection does not make a bad token good, nor does a good cookie.
func TestABadTokenIsNobodyWhoeverConnects(t *testing.T) {
	k := kitOf(t, nil)
	_, text := k.token(t, nil)
	operator := func(r *http.Request) *http.Request { return asUser(r, 1000) }
	if got := k.status(t, operator(request(t))); got != http.StatusOK {
		t.Fatalf("control: the operator is not let in: %d", got)
	}
	if got := k.status(t, operator(bearer(t, text))); got != http.StatusOK {
		t.Fatalf("control: the token is not good: %d", got)
	}
	for name, header := range map[string]string{
		"wrong secret": "Bearer " + wrongOf(text), "nothing": "", "no scheme": text, "another scheme": "Basic " + text,
		"empty": "Bearer ", "spaces": "Bearer  " + text,
		"behind it": "Bearer " + text + " x", "a list": "Bearer " + text + ", Bearer " + text, "NUL": "Bearer " + text +
			"\x00", "no UTF-8": "Bearer \xff" + text[1:],
		"upper case": "Bearer " + strings.ToUpper(text), "quoted": `Bearer "` + text + `"`,
		"an operator's": "Bearer user:1000", "the digest": "Bearer " + digestOf(text).String(),
	} {
		k.tries = newTries()
		if got := k.status(t, operator(request(t, "Authorization", header))); got != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, got)
		}
	}
	for _, second := range []string{"Bearer " + text, "Bearer x", "Basic x", ""} {
		for _, pair := range [][]string{{"Bearer " + text, second}, {second, "Bearer " + text}} {
			if got := k.status(t, operator(request(t, "Authorization", pair[0], "Authorization",
				pair[1]))); got != http.StatusBadRequest {
				t.Errorf("%q: %d", pair, got)
			}
		}
	}
}

// No name of another tenant becomes one: the operator alone chooses.
//
//rlp:holds K54 K59
func TestTenantsComeFromProofs(t *testing.T) {
	k := kitOf(t, nil)
	_, text := k.token(t, nil)
	c, err := k.Authenticate(asUser(request(t, TenantHeader, "other"), 1000))
	if err != nil || c.Tenant != "other" || !c.EveryTenant {
		t.Fatalf("control: the operator may not choose: %+v, %v", c, err)
	}
	if c, err := k.Authenticate(bearer(t, text)); err != nil || c.EveryTenant {
		t.Errorf("a token is of every tenant: %+v, %v", c, err)
	}
	if got := k.status(t, bearer(t, text, TenantHeader, "acme")); got != http.StatusOK {
		t.Errorf("its own tenant: %d", got)
	}
	for name, r := range map[string]struct {
		r    *http.Request
		want int
	}{
		"another":                {bearer(t, text, TenantHeader, "other"), http.StatusForbidden},
		"the operator's":         {bearer(t, text, TenantHeader, "default"), http.StatusForbidden},
		"twice":                  {bearer(t, text, TenantHeader, "acme", TenantHeader, "other"), http.StatusBadRequest},
		"twice, of the operator": {asUser(request(t, TenantHeader, "a", TenantHeader, "b"), 1000), http.StatusBadRequest},
		"a path":                 {asUser(request(t, TenantHeader, "../x"), 1000), http.StatusBadRequest},
		"empty":                  {asUser(request(t, TenantHeader, ""), 1000), http.StatusBadRequest},
		"a list":                 {asUser(request(t, TenantHeader, "a, b"), 1000), http.StatusBadRequest},
		"NUL":                    {asUser(request(t, TenantHeader, "a\x00"), 1000), http.StatusBadRequest},
	} {
		if got := k.status(t, r.r); got != r.want {
			t.Errorf("%s: %d, want %d", name, got, r.want)
		}
	}
	for _, other := range []string{"X_Runloop_Tenant", "X-Tenant", "Tenant"} {
		if c, err := k.Authenticate(bearer(t, text, other, "other")); err != nil || c.Tenant != "acme" {
			t.Errorf("%s: %+v, %v", other, c, err)
		}
	}
	r := bearer(t, text)
	r.URL.RawQuery = "tenant=other&token=x"
	if c, err := k.Authenticate(r); err != nil || c.Tenant != "acme" {
		t.Errorf("in the address: %+v, %v", c, err)
	}
}

// A token that there is not is refused in the same words as one with another
// secret; what is expired or revoked says so to whoever has the secret alone.
func TestRefusalsTellNothing(t *testing.T) {
	now := time.Now()
	k := kitOf(t, func(o *Options) {
		o.Now = func() time.Time { return now }
		o.Tokens.now = o.Now
	})
	expired, text := k.token(t, func(o *Token) { o.Expires = now.Add(time.Hour) })
	if k.status(t, bearer(t, text)) != http.StatusOK {
		t.Fatal("control: the token is not good")
	}
	message := func(token string) string {
		k.tries = newTries()
		_, err := k.Authenticate(bearer(t, token))
		if err == nil {
			t.Fatal("let in")
		}
		if d := asDenied(err); d.Status != http.StatusUnauthorized || strings.Contains(d.Message, expired.ID) ||
			!errors.Is(err, service.ErrForbidden) {
			t.Errorf("%+v", d)
		}
		return err.Error()
	}
	wrong := wrongOf(text)
	none, before := message(newToken().text), message(wrong)
	now = now.Add(2 * time.Hour)
	if after := message(wrong); before != none || after != none {
		t.Errorf("%q, %q, %q", none, before, after)
	}
	if got := message(text); !strings.Contains(got, "expired") {
		t.Errorf("its holder learns %q", got)
	}
}

// The operator's own token is the operator, of their own tenant.
func TestTheOperatorsToken(t *testing.T) {
	const secret = "0123456789abcdef0123456789abcdef"
	k := kitOf(t, func(o *Options) { o.OperatorToken = secret })
	c, err := k.Authenticate(bearer(t, secret))
	if err != nil || c.Tenant != "default" || !c.Can(service.Operate) || c.EveryTenant || len(c.Layers) != 0 {
		t.Fatalf("control: %+v, %v", c, err)
	}
	if got := k.status(t, bearer(t, secret, TenantHeader, "acme")); got != http.StatusForbidden {
		t.Errorf("another tenant: %d", got)
	}
	for _, bad := range []string{secret[:31], secret + "0", "", strings.ToUpper(secret)} {
		if got := k.status(t, bearer(t, bad)); got != http.StatusUnauthorized {
			t.Errorf("%q: %d", bad, got)
		}
	}
	if got := kitOf(t, nil).status(t, bearer(t, "")); got != http.StatusUnauthorized {
		t.Errorf("no token is the operator's where there is none: %d", got)
	}
	if _, err := New(Options{Tenant: "default", Now: time.Now, OperatorToken: secret[:minOperatorToken-2] +
		"~!"}); err != nil {
		t.Errorf("control: the shortest: %v", err)
	}
	for _, weak := range []string{"hunter2", strings.Repeat("a", 23), secret + " x", secret + "\n", secret + "é", secret +
		"\x7f"} {
		if _, err := New(Options{Tenant: "default", Now: time.Now, OperatorToken: weak}); err == nil ||
			strings.Contains(err.Error(), weak) {
			t.Errorf("%q: %v", weak, err)
		}
	}
}

// A token whose grant cannot be read is no token, whatever it would leave.
func TestAGrantThatCannotBeRead(t *testing.T) {
	var layers []*caps.Layer
	broken := errors.New("profile gone")
	now := time.Now()
	k := kitOf(t, func(o *Options) {
		o.Now = func() time.Time { return now }
		o.Layers = func(context.Context, *Token) ([]*caps.Layer, error) { return layers, broken }
	})
	_, text := k.token(t, func(o *Token) { o.Profiles = []string{"x"} })
	_, free := k.token(t, func(o *Token) { o.Name = "free" })
	for name, want := range map[string]int{
		"error": http.StatusServiceUnavailable, "none": http.StatusServiceUnavailable,
		"good": http.StatusOK,
	} {
		layers, broken = nil, nil
		switch name {
		case "error":
			broken = errors.New("profile gone")
		case "good":
			layers = []*caps.Layer{{Name: "token:ci"}}
		}
		now = now.Add(2 * rereadAfter)
		if got := k.status(t, bearer(t, text)); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
		if got := k.status(t, bearer(t, free)); got != http.StatusOK {
			t.Errorf("%s: a token without one: %d", name, got)
		}
	}
}

// What comes through a proxy is not the user whose program the proxy is.
func TestForwardedRequestsAreNotTheOperators(t *testing.T) {
	k := kitOf(t, nil)
	_, text := k.token(t, nil)
	if got := k.status(t, asUser(request(t), 1000)); got != http.StatusOK {
		t.Fatalf("control: %d", got)
	}
	for _, h := range []string{
		"Forwarded", "Via", "X-Real-IP", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port",
		"X-Forwarded-Server", "X-Forwarded-Prefix",
		"X-Client-IP", "X-Cluster-Client-IP", "X-Original-Forwarded-For", "CF-Connecting-IP", "True-Client-IP",
	} {
		for _, value := range []string{"127.0.0.1", "", "for=127.0.0.1", "1.1 rlp"} {
			if got := k.status(t, asUser(request(t, h, value), 1000)); got != http.StatusUnauthorized {
				t.Errorf("%s %q: %d", h, value, got)
			}
			if got := k.status(t, asUser(bearer(t, text, h, value), 1000)); got != http.StatusOK {
				t.Errorf("%s %q with a token: %d", h, value, got)
			}
		}
	}
	behind := kitOf(t, func(o *Options) { o.BehindProxy = true })
	if got := behind.status(t, asUser(request(t), 1000)); got != http.StatusUnauthorized {
		t.Errorf("behind a proxy: %d", got)
	}
}

// What an asker says of where it comes from is not believed, but for what the
// proxy in front added.
func TestWhereAttemptsCameFrom(t *testing.T) {
	plain, behind := kitOf(t, nil), kitOf(t, func(o *Options) { o.BehindProxy = true })
	for _, c := range []struct {
		k    *kit
		xff  []string
		from string
		want string
	}{
		{plain, []string{"9.9.9.9"}, "192.0.2.1", "192.0.2.1"},
		{behind, nil, "192.0.2.1", "192.0.2.1"},
		{behind, []string{"9.9.9.9, 198.51.100.7"}, "192.0.2.1", "198.51.100.7"},
		{behind, []string{"9.9.9.9", "198.51.100.7"}, "192.0.2.1", "198.51.100.7"},
		{behind, []string{"9.9.9.9, nonsense"}, "192.0.2.1", "192.0.2.1"},
		{plain, nil, "2001:db8::1", "2001:db8::/64"},
		{plain, nil, "2001:db8::ffff:1", "2001:db8::/64"},
		{plain, nil, "::ffff:192.0.2.1", "192.0.2.1"},
	} {
		r := request(t)
		for _, v := range c.xff {
			r.Header.Add("X-Forwarded-For", v)
		}
		if got := c.k.source(withPeer(r, c.from)); got != c.want {
			t.Errorf("%q from %s: %s, want %s", c.xff, c.from, got, c.want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, o := range map[string]Options{
		"no tenant": {Now: time.Now}, "no clock": {Tenant: "default"}, "tokens that nobody reads": {
			Tenant: "default",
			Now:    time.Now, Tokens: OpenStore("x", time.Now),
		},
		"a host": {Tenant: "default", Now: time.Now, Hosts: []string{"http://x"}}, "a wildcard": {
			Tenant: "default",
			Now:    time.Now, Hosts: []string{"*"},
		}, "a path": {Tenant: "default", Now: time.Now, Hosts: []string{"x/y"}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if _, err := New(Options{Tenant: "default", Now: time.Now, Hosts: []string{
		"agents.example", "Agents.example:8443",
		"192.0.2.1", "[2001:db8::1]:1", "2001:db8::1",
	}}); err != nil {
		t.Errorf("control: %v", err)
	}
}

// asUser is r as the kernel says that a user sent it.
func asUser(r *http.Request, uid int) *http.Request {
	r = withPeer(r, "127.0.0.1")
	p := peerOf(r.Context())
	p.once.Do(func() { p.uid, p.state = uid, peerKnown })
	return r
}
