package access

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"runloop.dev/rlp/internal/serve/service"
)

// follow asks for something that goes on, and returns after how long it ended;
// 0 if it went on for two hours.
func follow(t *testing.T, k *kit, r *http.Request) time.Duration {
	t.Helper()
	start := time.Now()
	ended := time.Duration(0)
	h := k.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if service.CallerOf(r.Context()) == nil {
			t.Error("nobody follows")
		}
		select {
		case <-r.Context().Done():
			ended = time.Since(start)
		case <-time.After(2 * time.Hour):
		}
	}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("not let in: %d %s", w.Code, w.Body)
	}
	return ended
}

// What a token opened ends with it: when it expires, when it is revoked, when
// its file is gone, when it may less.
func TestOpenStreamsEndWithTheirToken(t *testing.T) {
	const later = 10 * time.Minute
	for name, c := range map[string]struct {
		expires time.Duration
		do      func(s *Store, id string) error
		ends    bool
	}{
		"control: a good one": {3 * time.Hour, nil, false},
		"control: for ever":   {0, nil, false},
		"expires":             {later, nil, true},
		"revoked":             {0, func(s *Store, id string) error { _, err := s.Revoke(id); return err }, true},
		"gone":                {0, func(s *Store, id string) error { return removeFile(s.path(id)) }, true},
		"readable by others":  {0, func(s *Store, id string) error { return loosen(s.path(id)) }, true},
		"its folder can't be": {0, func(s *Store, _ string) error { return loosen(s.dir) }, true},
		"it may less, no write": {0, func(s *Store, id string) error {
			return edit(s.path(id), `["run", "read"]`,
				`["read"]`)
		}, true},
		"of another tenant": {0, func(s *Store, id string) error { return edit(s.path(id), `"acme"`, `"other"`) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := kitOf(t, nil)
				made, text := k.token(t, func(o *Token) {
					if c.expires > 0 {
						o.Expires = time.Now().Add(c.expires)
					}
				})
				if c.do != nil {
					time.AfterFunc(later, func() {
						if err := c.do(OpenStore(k.store.dir, time.Now), made.ID); err != nil {
							t.Error(err)
						}
					})
				}
				ended := follow(t, k, bearer(t, text))
				if c.ends && (ended < later || ended > later+3*rereadAfter) || !c.ends && ended != 0 {
					t.Errorf("ended after %v", ended)
				}
			})
		})
	}
}

// A handler that does not look at its context writes no more, a moment later.
func TestAHandlerThatGoesOnIsCutOff(t *testing.T) {
	for _, revoked := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			k := kitOf(t, nil)
			made, text := k.token(t, nil)
			if revoked {
				time.AfterFunc(time.Minute, func() {
					if _, err := k.store.Revoke(made.ID); err != nil {
						t.Error(err)
					}
				})
			}
			start := time.Now()
			h := k.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for time.Since(start) < time.Hour {
					if _, err := w.Write([]byte("x")); err != nil {
						return
					}
					w.(http.Flusher).Flush()
					time.Sleep(time.Second)
				}
			}))
			h.ServeHTTP(httptest.NewRecorder(), bearer(t, text))
			if took := time.Since(start); (took < 70*time.Second) != revoked {
				t.Errorf("revoked %v: wrote for %v", revoked, took)
			}
		})
	}
}

// Whoever is let in is in the context, and nobody else is let through.
func TestWrap(t *testing.T) {
	k := kitOf(t, nil)
	_, text := k.token(t, nil)
	var seen []string
	h := k.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		name := "nobody"
		if c := service.CallerOf(r.Context()); c != nil {
			name = c.Name
		}
		seen = append(seen, name)
	}))
	for _, c := range []struct {
		r      *http.Request
		path   string
		status int
		want   string
	}{
		{bearer(t, text), "/runs", 200, "token:ci"},
		{request(t), "/healthz", 200, "nobody"},
		{request(t), "/readyz", 200, "nobody"},
		{request(t), "/openapi.json", 200, "nobody"},
		{request(t), "/runs", 401, ""},
		{request(t), "/metrics", 401, ""},
		{request(t), "/healthz/../runs", 401, ""},
		{request(t), "//healthz", 401, ""},
		{request(t), "/healthz/", 401, ""},
		{request(t, "Origin", "https://evil.example"), "/healthz", 403, ""},
		{bearer(t, text, "Origin", "https://evil.example"), "/runs", 403, ""},
	} {
		seen = nil
		c.r.URL.Path = c.path
		w := httptest.NewRecorder()
		h.ServeHTTP(w, c.r)
		if got := strings.Join(seen, " "); w.Code != c.status || got != c.want {
			t.Errorf("%s: %d %q, want %d %q", c.path, w.Code, got, c.status, c.want)
		}
		if w.Code == 401 && (w.Header().Get("WWW-Authenticate") == "" || !strings.Contains(w.Body.String(),
			`"error":"unauthorized"`) || w.Header().Get("Cache-Control") != "no-store") {
			t.Errorf("%s: %v %s", c.path, w.Header(), w.Body)
		}
	}
	post := request(t)
	post.Method, post.URL.Path = "POST", "/healthz"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, post)
	if w.Code != 401 {
		t.Errorf("an open path may be written: %d", w.Code)
	}
	evil := bearer(t, text)
	evil.Host = "evil.example:8770"
	w = httptest.NewRecorder()
	h.ServeHTTP(w, evil)
	if w.Code != http.StatusMisdirectedRequest {
		t.Errorf("another host: %d", w.Code)
	}
}

// A handler that reads a body from somebody who is nobody any more stops, and
// nothing touches a connection after its handler.
func TestAHandlerThatWaitsForABodyStops(t *testing.T) {
	k := kitOf(t, nil)
	made, text := k.token(t, nil)
	reading := make(chan struct{})
	stopped := make(chan error, 1)
	server := httptest.NewUnstartedServer(k.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(reading)
		_, err := r.Body.Read(make([]byte, 1))
		stopped <- err
	})))
	server.Config.ConnContext = k.ConnContext
	server.Start()
	t.Cleanup(server.Close)
	body := &endless{done: make(chan struct{})}
	defer close(body.done)
	r, err := http.NewRequestWithContext(context.Background(), "POST", server.URL+"/run", body)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+text)
	go func() {
		if resp, err := http.DefaultClient.Do(r); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-reading
	_, err = k.store.Revoke(made.ID)
	must(t, err)
	select {
	case err := <-stopped:
		if err == nil {
			t.Error("it read something")
		}
	case <-time.After(time.Minute):
		t.Error("it still reads")
	}
}

// endless is a body that never comes.
type endless struct{ done chan struct{} }

func (e *endless) Read([]byte) (int, error) { <-e.done; return 0, context.Canceled }

// What a caller launched ends with what it proved itself by: a token, also where a
// session was begun with it. A session that is over ends none, and neither does
// anything end the operator's.
func TestWhatEndsRuns(t *testing.T) {
	k := kitOf(t, func(o *Options) { o.OperatorToken = strings.Repeat("x", 32) })
	made, text := k.token(t, nil)
	prove := func(r *http.Request) *service.Caller {
		t.Helper()
		c, err := k.Authenticate(r)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	session := func(token *Token) (c *service.Caller, end func()) {
		t.Helper()
		cookie := k.sessions.begin(session{token: token, from: k.source(request(t)), until: time.Now().Add(time.Hour)},
			time.Now())
		return prove(request(t, "Cookie", "rlp_session="+cookie)), func() { k.sessions.end(cookie) }
	}
	shown := prove(bearer(t, text))
	browsed, logOut := session(made)
	operator, logOutOperator := session(nil)
	logOut()
	logOutOperator()
	later := time.Now().Add(24 * time.Hour)
	for name, c := range map[string]*service.Caller{"token": shown, "session": browsed, "operator": operator} {
		if err := c.Over(later); err != nil {
			t.Errorf("%s: while the token is good: %v", name, err)
		}
	}
	if _, err := k.store.Revoke(made.ID); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*service.Caller{"token": shown, "session": browsed} {
		if err := c.Over(later); err == nil || !strings.Contains(err.Error(), "revoked") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := operator.Over(later); err != nil {
		t.Errorf("the operator: %v", err)
	}
}

// A placing connection notes who was proved on it, and is full when it is said so.
type placingConn struct {
	net.Conn
	proved []string
	full   bool
}

func (p *placingConn) Serves(key string, operator bool) bool {
	p.proved = append(p.proved, fmt.Sprintf("%s %v", key, operator))
	return !p.full
}

// A connection is told who was proved on it, behind TLS too, and of nothing else
// that comes on it; where their share is in use they are told so, and nothing is
// done. All that proves the operator is one caller, for whatever tenant.
func TestProvedConnectionsAreTold(t *testing.T) {
	k := kitOf(t, nil)
	token, text := k.token(t, nil)
	served := 0
	doors := k.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	one, other := net.Pipe()
	defer one.Close()
	defer other.Close()
	for _, overTLS := range []bool{false, true} {
		placed := &placingConn{Conn: one}
		var c net.Conn = placed
		if overTLS {
			c = tls.Server(placed, &tls.Config{MinVersion: tls.VersionTLS13})
		}
		ctx := k.ConnContext(t.Context(), c)
		ask := func(r *http.Request) int {
			w := httptest.NewRecorder()
			doors.ServeHTTP(w, r.WithContext(ctx))
			return w.Code
		}
		open := request(t)
		open.URL.Path = "/healthz"
		if code := ask(open); code != http.StatusOK || len(placed.proved) != 0 {
			t.Errorf("what is open to anybody: %d, told of %q", code, placed.proved)
		}
		if code := ask(bearer(t, wrongOf(text))); code != http.StatusUnauthorized || len(placed.proved) != 0 {
			t.Errorf("a token that is none: %d, told of %q", code, placed.proved)
		}
		if code := ask(bearer(t, text)); code != http.StatusOK || len(placed.proved) != 1 ||
			!strings.HasSuffix(placed.proved[0], " false") || !strings.Contains(placed.proved[0], token.ID) {
			t.Errorf("a token: %d, told of %q", code, placed.proved)
		}
		placed.full, served = true, 0
		if code := ask(bearer(t, text)); code != http.StatusTooManyRequests || served != 0 {
			t.Errorf("a token whose share is in use: %d, served %d times", code, served)
		}
	}
	placed := &placingConn{Conn: one}
	p := &peer{place: placed}
	p.serves(&service.Caller{ID: "user:0", Tenant: "acme", EveryTenant: true})
	p.serves(&service.Caller{ID: "user:7", Tenant: "zeta", EveryTenant: true})
	if want := []string{"operator true", "operator true"}; !slices.Equal(placed.proved, want) {
		t.Errorf("the operator: %q", placed.proved)
	}
}

// Everything that ends is over at the instant that it names, and not before: for who
// asks anew, for what is open, and for runs that have nothing else to ask. A
// certificate ends what it opened, whatever its record says.
func TestTheInstantOfTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours := newAuthority(t, "our CA")
		cert, _, _, _ := ours.sign("ci-runner", nil, false)
		at := time.Now().Add(30 * time.Minute).Truncate(time.Second)
		for name, c := range map[string]struct {
			end    time.Time
			record func(*Token)
		}{
			"token":       {at, func(o *Token) { o.Expires = at }},
			"certificate": {cert.NotAfter, func(o *Token) { o.CertName = "ci-runner" }},
			"certificate, record for longer": {cert.NotAfter, func(o *Token) {
				o.CertName, o.Expires = "ci-runner",
					cert.NotAfter.Add(time.Hour)
			}},
			"certificate, record for shorter": {at, func(o *Token) { o.CertName, o.Expires = "ci-runner", at }},
		} {
			now := time.Now()
			k := kitOf(t, func(o *Options) { o.ClientCAs, o.Now = pool(ours), func() time.Time { return now } })
			_, text := k.token(t, c.record)
			show := func() *http.Request {
				if text == "" {
					return showing(t, cert)
				}
				return bearer(t, text)
			}
			opened, err := k.prove(show())
			if err != nil {
				t.Fatalf("control: %s: %v", name, err)
			}
			for _, off := range []time.Duration{-time.Nanosecond, 0, time.Nanosecond, time.Hour} {
				now = c.end.Add(off)
				good := off < 0
				if _, err := k.prove(show()); (err == nil) != good {
					t.Errorf("%s, %v from its end: asking anew: %v", name, off, err)
				}
				if err := k.still(opened); (err == nil) != good {
					t.Errorf("%s, %v from its end: what is open: %v", name, off, err)
				}
				if err := opened.caller.Still(); (err == nil) != good {
					t.Errorf("%s, %v from its end: a run: %v", name, off, err)
				}
			}
		}
	})
}
