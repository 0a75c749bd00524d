package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/internal/serve/mcpserver"
	"runloop.dev/rlp/internal/serve/service"
)

// serve is the server at /mcp: who asks is said by a header, as nothing outside
// tests may.
func (b *bench) serve(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if name := r.Header.Get("X-Test-Caller"); name != "" {
			ctx = service.WithCaller(ctx, &service.Caller{Name: name, Tenant: "acme", May: all})
		}
		b.server.ServeHTTP(w, r.WithContext(ctx))
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/mcp"
}

// as sends every request as one caller, and notes ids of sessions.
type as struct {
	name    string
	session chan string
}

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Test-Caller", a.name)
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && a.session != nil && resp.Header.Get("Mcp-Session-Id") != "" {
		select {
		case a.session <- resp.Header.Get("Mcp-Session-Id"):
		default:
		}
	}
	return resp, err
}

func connect(t *testing.T, url string, by http.RoundTripper, version string, o *mcp.ClientOptions) (*mcp.ClientSession,
	error,
) {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint:   url,
		HTTPClient: &http.Client{Transport: by}, MaxRetries: -1,
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err == nil {
		t.Cleanup(func() { cs.Close() })
	}
	return cs, err
}

const (
	modern = "2026-07-28"
	legacy = "2025-11-25"
)

// Over HTTP both specifications are spoken, as they are over stdio.
func TestBothSpecifications(t *testing.T) {
	for _, version := range []string{modern, legacy} {
		t.Run(version, func(t *testing.T) {
			b := newBench(t, mcpserver.Options{})
			told := make(chan string, 100)
			cs, err := connect(t, b.serve(t), as{name: "user:1"}, version,
				&mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
					told <- r.Params.Message
				}})
			if err != nil {
				t.Fatal(err)
			}
			if got := cs.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("spoken is %s", got)
			}
			if got := names(t, cs); !slices.Contains(got, "echo") || !slices.Contains(got, "rlp_runs") {
				t.Errorf("%v", got)
			}
			p := &mcp.CallToolParams{Name: "denied", Arguments: map[string]any{}}
			p.SetProgressToken("p")
			r, err := cs.CallTool(t.Context(), p)
			if err != nil || !r.IsError {
				t.Fatalf("%v %+v", err, r)
			}
			has(t, textOf(r), "/etc/passwd", "mcp_default")
			has(t, <-told, "has begun")

			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-b.host.begun; cancel() }()
			if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "slow"}); err == nil {
				t.Error("it answered")
			}
			<-b.host.ended
		})
	}
}

// An agent that was installed or removed is offered, or not any more, and the
// client is told.
func TestClientsAreToldOfAgents(t *testing.T) {
	for _, version := range []string{modern, legacy} {
		t.Run(version, func(t *testing.T) {
			b := newBench(t, mcpserver.Options{Look: 10 * time.Millisecond})
			told := make(chan struct{}, 100)
			o := &mcp.ClientOptions{ToolListChangedHandler: func(context.Context,
				*mcp.ToolListChangedRequest,
			) {
				told <- struct{}{}
			}}
			cs, err := connect(t, b.serve(t), as{name: "user:1"}, version, o)
			if err != nil {
				t.Fatal(err)
			}
			names(t, cs)
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for n, heard := 0, false; !heard; n++ { // until its subscription is there
				select {
				case <-told:
					heard = true
				case <-tick.C:
					b.host.install("acme", service.Agent{Name: fmt.Sprintf("early%d", n), Version: "1"})
					b.pass(time.Minute)
				}
			}
			b.host.install("acme", service.Agent{Name: "added", Version: "1"})
			b.pass(time.Minute) // what was heard of agents is old
			wait(t, told, func() bool { return slices.Contains(names(t, cs), "added") })
			b.host.remove("acme", "added")
			b.pass(time.Minute)
			wait(t, told, func() bool { return !slices.Contains(names(t, cs), "added") })
		})
	}
}

// wait waits until something is told after which ok holds.
func wait(t *testing.T, told <-chan struct{}, ok func() bool) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case <-told:
			if ok() {
				return
			}
		case <-late:
			t.Fatal("nobody was told")
		}
	}
}

// post sends one message as a caller, in a session.
func post(t *testing.T, url, caller, session, body string) (int, string) {
	t.Helper()
	return postBy(t, url, as{name: caller}, session, body)
}

func postBy(t *testing.T, url string, by as, session, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
		r.Header.Set("Mcp-Protocol-Version", legacy)
	}
	resp, err := by.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	p, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(p)
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

const listing = `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`

// Another caller's session is not there, whoever knows its id.
func TestASessionIsItsCallers(t *testing.T) {
	b := newBench(t, mcpserver.Options{})
	url, ids := b.serve(t), make(chan string, 1)
	if _, err := connect(t, url, as{"user:1", ids}, legacy, nil); err != nil {
		t.Fatal(err)
	}
	id := <-ids
	if code, text := post(t, url, "user:1", id, listing); code != 200 || !strings.Contains(text, "echo") { // control
		t.Errorf("its own: %d %s", code, text)
	}
	for who, want := range map[string]int{"user:2": 404, "token:ci": 404, "": 401} {
		if code, text := post(t, url, who, id, listing); code != want || strings.Contains(text, "echo") {
			t.Errorf("%q: %d %s", who, code, text)
		}
	}
	if code, _ := post(t, url, "user:1", "MADEUP", listing); code != 404 {
		t.Errorf("a session that nobody has: %d", code)
	}
}

// Sessions are bounded, in all and for each caller: who has no room left gives up
// what they asked of longest ago, and never what is in use or another's.
func TestSessionsAreBounded(t *testing.T) {
	b := newBench(t, mcpserver.Options{Sessions: 16})
	url := b.serve(t)
	begin := func(who string) string {
		ids := make(chan string, 1)
		if code, text := postBy(t, url, as{who, ids}, "", hello); code != 200 {
			t.Fatalf("a session of %s: %d %s", who, code, text)
		}
		return <-ids
	}
	other, first, second := begin("user:2"), begin("user:1"), begin("user:1")
	if code, text := post(t, url, "user:1", first, listing); code != 200 { // so that the second is asked longest ago
		t.Fatal(code, text)
	}
	third := begin("user:1")
	for _, c := range []struct {
		who, id string
		want    int
	}{{"user:1", second, 404}, {"user:1", first, 200}, {"user:1", third, 200}, {"user:2", other, 200}} {
		if code, text := post(t, url, c.who, c.id, listing); code != c.want {
			t.Errorf("%s: %d %s, want %d", c.who, code, text, c.want)
		}
	}
	for _, id := range []string{first, third} {
		listens(t, url, "user:1", id)
	}
	if code, text := post(t, url, "user:1", "", hello); code != 503 {
		t.Errorf("a session beside two in use: %d %s", code, text)
	}
	begin("user:2") // control
	for range 20 {  // what does not become a session takes no room
		if code, text := post(t, url, "user:3", "", listing); code == 503 {
			t.Fatalf("%d %s", code, text)
		}
	}
}

// listens has a request of a session under way until the test ends.
func listens(t *testing.T, url, who, id string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Mcp-Session-Id", id)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", legacy)
	resp, err := as{name: who}.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%+v, %v", resp, err)
	}
	t.Cleanup(func() { resp.Body.Close() })
}

// A session that nobody asks of makes room for another's.
func TestIdleSessionsEnd(t *testing.T) {
	b := newBench(t, mcpserver.Options{Sessions: 1, Idle: time.Nanosecond})
	url := b.serve(t)
	for i := range 5 {
		for code, text := 0, ""; code != 200; { // until the one before has ended
			if code, text = post(t, url, "user:"+strconv.Itoa(i), "", hello); code != 200 && code != 503 {
				t.Fatalf("%d %s", code, text)
			}
		}
	}
}

// A session that its client ends leaves nothing behind: who begins and ends them
// all day fills no memory until they would have been idle for long enough.
func TestAnEndedSessionIsForgotten(t *testing.T) {
	const sessions, each = 600, 4 << 10 // bytes; one that is kept has about 25 KiB
	b := newBench(t, mcpserver.Options{})
	url := b.serve(t)
	again := func(n int) {
		for range n {
			ids := make(chan string, 1)
			if code, text := postBy(t, url, as{"user:1", ids}, "", hello); code != 200 {
				t.Fatalf("%d %s", code, text)
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Mcp-Session-Id", <-ids)
			resp, err := as{name: "user:1"}.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
	}
	held := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	again(50) // what is made once
	before := held()
	again(sessions)
	for late := time.Now().Add(time.Minute); held()-before > sessions*each; { // until the last have been left
		if time.Now().After(late) {
			t.Fatalf("%d sessions that ended hold %d bytes", sessions, held()-before)
		}
	}
}

// A session that its client ends takes its runs along.
func TestAnEndedSessionCancelsItsRuns(t *testing.T) {
	b := newBench(t, mcpserver.Options{})
	url, ids := b.serve(t), make(chan string, 1)
	cs, err := connect(t, url, as{"user:1", ids}, legacy, nil)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "slow"})
	}()
	<-b.host.begun
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Mcp-Session-Id", <-ids)
	resp, err := as{name: "user:1"}.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusNoContent {
		t.Errorf("%v %v", resp, err)
	}
	<-b.host.ended
	<-answered
}

// The same, over stdio: its end is the end of all that it began.
func TestEndOfInputCancelsRuns(t *testing.T) {
	b := newBench(t, mcpserver.Options{})
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	go func() { _, _ = io.Copy(io.Discard, outR) }()
	over := make(chan error)
	go func() { over <- b.server.Serve(context.Background(), caller("acme", all), inR, outW) }()
	write := func(v any) {
		p, err := json.Marshal(v)
		if err == nil {
			_, err = inW.Write(append(p, '\n'))
		}
		if err != nil {
			t.Error(err)
		}
	}
	write(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "initialize",
		"params": map[string]any{
			"protocolVersion": legacy, "capabilities": map[string]any{},
			"clientInfo": map[string]any{"name": "t", "version": "1"},
		},
	})
	write(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	write(map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": map[string]any{
		"name":      "slow",
		"arguments": map[string]any{},
	}})
	id := <-b.host.begun
	inW.Close()
	if err := <-over; err != nil {
		t.Error(err)
	}
	<-b.host.ended
	r, err := b.service.Run(t.Context(), caller("acme", all), id)
	if err != nil {
		t.Fatal(err)
	}
	if st := r.State(); !st.Ended() || st.Outcome != "cancelled" {
		t.Errorf("%+v", st)
	}
}
