package mcpserver_test

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/internal/serve/mcpserver"
	"runloop.dev/rlp/internal/serve/service"
)

// A bench is a server, what stands behind it, and its clock.
type bench struct {
	host    *fakeHost
	service *service.Service
	server  *mcpserver.Server
	mu      sync.Mutex
	at      time.Time
	over    bool // no caller may ask any more
}

func (b *bench) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at
}

func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = b.at.Add(d)
}

func newBench(t *testing.T, o mcpserver.Options) *bench {
	t.Helper()
	b := &bench{host: newFake(), at: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	b.service = service.New(service.Options{Host: b.host, Workers: 50, Queue: 10, Now: b.now})
	o.Service, o.Host, o.Version, o.Now = b.service, b.host, "1", b.now
	o.Still = func(*service.Caller) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.over {
			return io.EOF
		}
		return nil
	}
	b.server = mcpserver.New(o)
	t.Cleanup(func() { b.server.Close(); drained(t, b.service) })
	return b
}

func caller(tenant string, may service.Rights) *service.Caller {
	return &service.Caller{Name: "user:1", Tenant: tenant, May: may}
}

const all = service.Launch | service.Read | service.Operate

// stdio is a client at the other end of two pipes.
func (b *bench) stdio(t *testing.T, c *service.Caller, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	over := make(chan error, 1)
	go func() {
		err := b.server.Serve(context.Background(), c, inR, outW)
		outW.Close()
		over <- err
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
	cs, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: outR, Writer: inW}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cs.Close()
		if err := <-over; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return cs
}

func names(t *testing.T, cs *mcp.ClientSession) (list []string) {
	t.Helper()
	for tool, err := range cs.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, tool.Name)
	}
	slices.Sort(list)
	return list
}

func call(t *testing.T, cs *mcp.ClientSession, name string, arguments any) *mcp.CallToolResult {
	t.Helper()
	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

func textOf(r *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			b.WriteString(t.Text + "\n")
		}
	}
	return b.String()
}

func structure(t *testing.T, r *mcp.CallToolResult) string {
	t.Helper()
	p, err := json.Marshal(r.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	return string(p)
}

func has(t *testing.T, in string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(in, p) {
			t.Errorf("without %q:\n%s", p, in)
		}
	}
}

var reading = []string{"rlp_audit", "rlp_explain", "rlp_kb_search", "rlp_run", "rlp_runs"}

func TestAgentsAreTools(t *testing.T) {
	b := newBench(t, mcpserver.Options{})
	cs := b.stdio(t, caller("acme", all), nil)
	want := append([]string{"denied", "echo", "flood", "list", "loud", "printer", "refused", "slow", "trap"}, reading...)
	slices.Sort(want)
	if got := names(t, cs); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	r := call(t, cs, "echo", map[string]any{"a": 1})
	if got := structure(t, r); r.IsError || got != `{"a":1}` {
		t.Errorf("%v %s %s", r.IsError, got, textOf(r))
	}
	has(t, textOf(r), `{"a":1}`, "of echo: ok")
	if got := structure(t, call(t, cs, "list", nil)); got != `{"result":[1,2]}` {
		t.Errorf("a result that is no object: %s", got)
	}
}

// What a caller may not do is not offered, nor done when it is called by name.
func TestRightsDecideWhatIsOffered(t *testing.T) {
	b := newBench(t, mcpserver.Options{})
	if got := names(t, b.stdio(t, caller("acme", service.Read), nil)); !slices.Equal(got, reading) {
		t.Errorf("who may only read: %v", got)
	}
	cs := b.stdio(t, caller("acme", service.Launch), nil)
	if got := names(t, cs); slices.Contains(got, "rlp_runs") || !slices.Contains(got, "echo") {
		t.Errorf("who may only launch: %v", got)
	}
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "rlp_runs"}); err == nil {
		t.Error("it was called")
	}
}

func TestEveryDenialIsExplained(t *testing.T) {
	b := newBench(t, mcpserver.Options{})
	cs := b.stdio(t, caller("acme", all), nil)
	r := call(t, cs, "denied", nil)
	if !r.IsError || structure(t, r) != `{"got":"little"}` {
		t.Errorf("%v %s", r.IsError, structure(t, r))
	}
	has(t, textOf(r), "fs.read /etc/passwd", "cap_missing", "the layer profile:mcp_default, 2 times", "security.run_grant",
		"net.get https://evil.example/", "policy.caps does not ask", "(record 2)")
	r = call(t, cs, "refused", nil)
	if !r.IsError {
		t.Error("a refused run is no error")
	}
	has(t, textOf(r), "nothing of it was executed", "kb:write:*", "token:ci", "net:*", "rlp token new",
		`- there is no adapter "cor"`)
	has(t, structure(t, r), `"error":"policy_violation"`, `"layer":"token:ci"`)
	if r = call(t, cs, "trap", nil); !r.IsError {
		t.Error("a trap is no error")
	}
	has(t, textOf(r), "unreachable", "it broke")
	b.host.install("acme", service.Agent{Name: "clock", Version: "1"})
	b.pass(time.Minute)
	if r = call(t, cs, "clock", nil); r.IsError || r.Meta["runloop.dev/denied"] == nil {
		t.Errorf("a runtime that asks for the clock: %+v", r)
	}
	if r = call(t, cs, "echo", nil); r.IsError { // control
		t.Error("what was denied nothing is an error")
	}
}

func TestWhatAnAgentSaysIsCut(t *testing.T) {
	b := newBench(t, mcpserver.Options{})
	cs := b.stdio(t, caller("acme", all), nil)
	for _, name := range []string{"loud", "printer"} {
		r := call(t, cs, name, nil)
		if n := len(textOf(r)) + len(structure(t, r)); n > 20_000 {
			t.Errorf("%s: %d bytes", name, n)
		}
	}
	has(t, textOf(call(t, cs, "printer", nil)), "the end", "it printed 10007 bytes")
}

func TestProgressIsTold(t *testing.T) {
	b := newBench(t, mcpserver.Options{})
	told := make(chan *mcp.ProgressNotificationParams, 100)
	cs := b.stdio(t, caller("acme", all), &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context,
		r *mcp.ProgressNotificationClientRequest,
	) {
		told <- r.Params
	}})
	p := &mcp.CallToolParams{Name: "denied"}
	p.SetProgressToken("mine")
	if _, err := cs.CallTool(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	first, last := <-told, (*mcp.ProgressNotificationParams)(nil)
	before := first.Progress
	for last == nil || !strings.HasPrefix(last.Message, "ended") {
		last = <-told
		if last.Progress <= before || last.ProgressToken != "mine" {
			t.Errorf("%+v after %v", last, before)
		}
		before = last.Progress
	}
	has(t, first.Message, "has begun")
	call(t, cs, "echo", nil)
	select {
	case p := <-told:
		t.Errorf("nobody asked to be told, and was: %+v", p)
	default:
	}
}

func TestACancelledCallCancelsItsRun(t *testing.T) {
	b := newBench(t, mcpserver.Options{})
	cs := b.stdio(t, caller("acme", all), nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-b.host.begun
		cancel()
	}()
	if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "slow"}); err == nil {
		t.Error("it answered")
	}
	<-b.host.ended
}

// The tools that read answer of the caller's tenant alone, and an
// explicit tenant is refused unless it is that.
//
//rlp:holds K54
func TestNoOtherTenantIsSeen(t *testing.T) {
	b := newBench(t, mcpserver.Options{})
	other := b.stdio(t, caller("other", all), nil)
	if r := call(t, other, "secretive", nil); r.IsError {
		t.Fatal(textOf(r))
	}
	cs := b.stdio(t, caller("acme", all), nil)
	if slices.Contains(names(t, cs), "secretive") {
		t.Error("an agent of another tenant is offered")
	}
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "secretive"}); err == nil {
		t.Error("and is called")
	}
	var runs struct {
		Runs []struct {
			RunID string `json:"run_id"`
		}
	}
	if err := json.Unmarshal([]byte(structure(t, call(t, other, "rlp_runs", nil))), &runs); err != nil ||
		len(runs.Runs) != 1 {
		t.Fatalf("control: %v %+v", err, runs)
	}
	id := runs.Runs[0].RunID
	for _, tool := range reading {
		arguments := map[string]any{"tenant": "other"}
		r := call(t, cs, tool, arguments)
		if !r.IsError {
			t.Errorf("%s is answered of another tenant", tool)
		}
		has(t, textOf(r), "tenant")
	}
	for tool, arguments := range map[string]map[string]any{
		"rlp_runs": {"tenant": "acme"}, "rlp_audit": {"run_id": id},
	} {
		if r := call(t, cs, tool, arguments); r.IsError || strings.Contains(textOf(r), id) {
			t.Errorf("%s: %s", tool, textOf(r))
		}
	}
	for _, tool := range []string{"rlp_run", "rlp_explain"} {
		arguments := map[string]any{"run_id": id}
		if tool == "rlp_explain" {
			arguments["record"] = 1
		}
		if r := call(t, cs, tool, arguments); !r.IsError {
			t.Errorf("%s: %s", tool, textOf(r))
		}
	}
	if r := call(t, other, "rlp_run", map[string]any{"run_id": id, "tenant": "other"}); r.IsError { // control
		t.Error(textOf(r))
	}
}

// A caller is asked about at each call, and what is found is snippets.
//
//rlp:holds K71
func TestACallerIsRefusedInTheMiddleOfASession(t *testing.T) {
	b := newBench(t, mcpserver.Options{})
	c := caller("acme", all)
	c.Until = b.now().Add(time.Minute)
	cs := b.stdio(t, c, nil)
	if r := call(t, cs, "echo", nil); r.IsError { // control
		t.Fatal(textOf(r))
	}
	b.pass(time.Minute)
	for _, tool := range append([]string{"echo"}, reading...) {
		if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool}); err == nil || !strings.Contains(err.Error(),
			"expired or was revoked") {
			t.Errorf("%s by who has expired: %v", tool, err)
		}
	}
	revoked := b.stdio(t, caller("acme", all), nil)
	if r := call(t, revoked, "rlp_runs", nil); r.IsError { // control
		t.Fatal(textOf(r))
	}
	b.mu.Lock()
	b.over = true
	b.mu.Unlock()
	if _, err := revoked.CallTool(t.Context(), &mcp.CallToolParams{Name: "rlp_runs"}); err == nil {
		t.Error("who was revoked is answered")
	}
}

func TestSnippetsAreShort(t *testing.T) {
	b := newBench(t, mcpserver.Options{})
	cs := b.stdio(t, caller("acme", all), nil)
	r := call(t, cs, "rlp_kb_search", map[string]any{"domain": "drafts", "query": "--raw"})
	if r.IsError || len(structure(t, r)) > 600 {
		t.Errorf("%s", structure(t, r))
	}
	if got := b.host.lastAsked(); got != "acme search drafts --raw k=5 raw=false" {
		t.Errorf("%s", got)
	}
	if r := call(t, cs, "rlp_kb_search", map[string]any{"domain": "nowhere", "query": "x"}); !r.IsError ||
		!strings.Contains(textOf(r), "there is no such domain") {
		t.Errorf("what is wrong with a question is told as %s", textOf(r))
	}
}

func TestExplainAsksOfTheRecord(t *testing.T) {
	b := newBench(t, mcpserver.Options{})
	cs := b.stdio(t, caller("acme", all), nil)
	run, _ := call(t, cs, "denied", nil).Meta["runloop.dev/run_id"].(string)
	r := call(t, cs, "rlp_explain", map[string]any{"run_id": run, "record": 2})
	if r.IsError {
		t.Fatal(textOf(r))
	}
	if got := b.host.lastAsked(); got != "acme explain denied  run="+run+" at=2" {
		t.Errorf("%s", got)
	}
	r = call(t, cs, "rlp_explain", map[string]any{"agent": "denied", "capability": "--help"})
	if got := b.host.lastAsked(); r.IsError || got != "acme explain denied --help run= at=0" {
		t.Errorf("%s %s", got, textOf(r))
	}
	r = call(t, cs, "rlp_explain", map[string]any{"agent": "long", "capability": "time"})
	if !r.IsError || !strings.Contains(textOf(r), "1024 KiB, which is more than is told") {
		t.Errorf("an answer that is too large is told as %.200s", textOf(r))
	}
	for _, arguments := range []map[string]any{
		nil,
		{"run_id": run},
		{"run_id": run, "record": 1},
		{"run_id": run, "record": 99},
		{"run_id": "x", "record": 2},
		{"agent": "none", "capability": "fs:read:/"},
		{"run_id": run, "record": 2, "capability": "fs:read:/"},
	} {
		if r := call(t, cs, "rlp_explain", arguments); !r.IsError {
			t.Errorf("%v: %s", arguments, textOf(r))
		}
	}
}
