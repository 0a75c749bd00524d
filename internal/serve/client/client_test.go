package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/serve/client"
)

// serve is a client of a service that h is, at a socket as rlp serve has it.
func serve(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "serve.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	s.Start()
	t.Cleanup(s.Close)
	c, err := client.New(client.Options{Socket: path, Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestRunSendsWhatWasAsked(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		const want = `{"agent":"a","input":{"x":1},"deny":["exec:*:*"],"wait":true}`
		if r.Method+r.URL.Path != "POST/run" || string(body) != want || r.Header.Get("X-Runloop-Tenant") != "acme" ||
			r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("asked: %s %s %v", r.URL, body, r.Header)
		}
		fmt.Fprint(w, `{"run_id":"r","exit_code":3}`)
	})
	got, err := c.Run(t.Context(), &client.Request{Agent: "a", Input: []byte(`{"x":1}`), Deny: []string{"exec:*:*"}})
	if err != nil || string(got) != `{"run_id":"r","exit_code":3}` {
		t.Fatalf("%s %v", got, err)
	}
}

// All violations of a refusal are told, not only the first.
//
//rlp:holds A40
func TestRefusalsAreToldWhole(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"error":"policy_violation","message":"no","trace_id":"t","violations":[{"code":"a","capability":"net:https:x","layer":"p"},{"code":"b"}],"fields":[{"field":"limits.x","message":"m"}]}`)
	})
	_, err := c.Run(t.Context(), &client.Request{Agent: "a"})
	var e *client.Error
	if !errors.As(err, &e) || e.Status != 403 || e.Code != "policy_violation" || len(e.Violations) != 2 ||
		e.Violations[0].Layer != "p" || e.Violations[1].Code != "b" || e.Fields[0].Field != "limits.x" ||
		e.RetryAfter != "2" {
		t.Fatalf("%+v", err)
	}
}

func TestNoRedirectIsFollowed(t *testing.T) {
	asked := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer other.Close()
	first := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer first.Close()
	c, err := client.New(client.Options{URL: first.URL, Token: "rlpt_x"})
	if err != nil {
		t.Fatal(err)
	}
	var e *client.Error
	if _, err = c.Capabilities(t.Context()); !errors.As(err, &e) || e.Status != http.StatusTemporaryRedirect ||
		asked != 0 {
		t.Fatalf("%v; asked %d times", err, asked)
	}
	if _, err := http.Get(first.URL); err != nil || asked != 1 { // who follows gets there
		t.Fatalf("control: %v; asked %d times", err, asked)
	}
}

func TestAddresses(t *testing.T) {
	for _, tt := range []struct {
		o  client.Options
		ok bool
	}{
		{client.Options{}, false},
		{client.Options{Socket: "/s", URL: "http://x"}, false},
		{client.Options{URL: "127.0.0.1:8770"}, false},
		{client.Options{URL: "http://u:p@127.0.0.1:8770"}, false},
		{client.Options{URL: "http://agents.example", Token: "t"}, false},
		{client.Options{URL: "http://agents.example"}, true},
		{client.Options{URL: "https://agents.example", Token: "t"}, true},
		{client.Options{URL: "http://127.0.0.1:8770", Token: "t"}, true},
		{client.Options{URL: "http://[::1]:8770", Token: "t"}, true},
		{client.Options{Socket: "/s", Token: "a b"}, false},
	} {
		if _, err := client.New(tt.o); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt.o, err)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	c, err := client.New(client.Options{Socket: filepath.Join(t.TempDir(), "none")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Runs(t.Context(), 5); !errors.Is(err, client.ErrUnreachable) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Runs(ctx, 5); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// A stream that breaks is gone on with behind the last message that came.
func TestRecordsGoOnBehindTheLast(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Last-Event-ID") {
		case "":
			fmt.Fprint(w, "id: 1\nevent: a\ndata: 1\n\nid: 2\nevent: b\nda") // half of one
		case "1":
			fmt.Fprint(w, "id: 2\nevent: b\ndata: 2\n\nevent: end\ndata: {}\n\n")
		default:
			t.Errorf("asked behind %q", r.Header.Get("Last-Event-ID"))
		}
	})
	var got []string
	for m, err := range c.Records(t.Context(), "r", 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, m.Name+string(m.Data))
	}
	if strings.Join(got, " ") != "a1 b2 end{}" {
		t.Fatalf("%q", got)
	}
}

func TestFollowingEndsWhereThereIsNothing(t *testing.T) {
	status := http.StatusNotFound
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	var last error
	for _, err := range c.Records(t.Context(), "r", 0) {
		last = err
	}
	var e *client.Error
	if !errors.As(last, &e) || e.Status != 404 {
		t.Fatal(last)
	}
	status = http.StatusNoContent
	for m, err := range c.Records(t.Context(), "r", 7) {
		t.Fatal(m, err)
	}
}

func TestRunsAndCancel(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.String() {
		case "GET /runs?limit=5":
			fmt.Fprint(w, `{"runs":[{"run_id":"b","state":"running","queued_at":"2026-01-02T03:04:05.678Z"},{"run_id":"a","state":"done"}]}`)
		case "GET /runs/a":
			fmt.Fprint(w, `{"run_id":"a","state":"done","report":{"x":1}}`)
		case "POST /runs/a/cancel", "POST /run":
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, `{"run_id":"a"}`)
		default:
			fmt.Fprint(w, `nonsense`)
		}
	})
	runs, err := c.Runs(t.Context(), 5)
	if err != nil || len(runs) != 2 || runs[0].Ended() || !runs[1].Ended() || runs[0].QueuedAt.Year() != 2026 {
		t.Fatalf("%+v %v", runs, err)
	}
	if r, err := c.Get(t.Context(), "a"); err != nil || string(r.Report) != `{"x":1}` {
		t.Fatalf("%+v %v", r, err)
	}
	if id, err := c.Begin(t.Context(), &client.Request{Agent: "a"}); err != nil || id != "a" {
		t.Fatal(id, err)
	}
	if err := c.Cancel(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Capabilities(t.Context()); err == nil {
		t.Fatal("nonsense was taken for an answer")
	}
}

// Who answers and is not spoken with is not told as nobody.
func TestWhoAnswersAndIsNotSpokenWith(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w,
			`{"runs":[]}`)
	}))
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	trusted := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	for name, c := range map[string]struct {
		tls  *tls.Config
		want error
	}{
		"control":          {&tls.Config{RootCAs: trusted}, nil},
		"an older TLS":     {&tls.Config{RootCAs: trusted, MaxVersion: tls.VersionTLS12}, client.ErrDeclined},
		"another's":        {nil, client.ErrUnproved},
		"by another name":  {&tls.Config{RootCAs: trusted, ServerName: "agents.example"}, client.ErrUnproved},
		"nobody's at once": {&tls.Config{RootCAs: x509.NewCertPool()}, client.ErrUnproved},
	} {
		asker, err := client.New(client.Options{URL: s.URL, TLS: c.tls})
		if err != nil {
			t.Fatal(err)
		}
		_, err = asker.Runs(t.Context(), 5)
		asker.Close()
		if !errors.Is(err, c.want) || errors.Is(err, client.ErrUnreachable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
