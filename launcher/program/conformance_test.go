package program_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/hostmcp"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/launcher/run"
)

// A store is a knowledge base that labels what it keeps, in memory.
type store struct {
	mu   sync.Mutex
	kept map[string]stored
	next uint64
}

type stored struct {
	value    string
	revision uint64
	trusted  bool
}

func (s *store) Get(_ context.Context, domain, key string) (hostcalls.KBValue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.kept[domain+"/"+key]
	if !ok {
		return hostcalls.KBValue{}, fs.ErrNotExist
	}
	return hostcalls.KBValue{Bytes: []byte(v.value), Trusted: v.trusted}, nil
}

func (s *store) Put(_ context.Context, c hostcalls.KBChange) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	s.kept[c.Domain+"/"+c.Key] = stored{string(c.Value), s.next, c.Because == ""}
	return s.next, nil
}

func (s *store) CAS(ctx context.Context, c hostcalls.KBChange, revision uint64) (uint64, error) {
	s.mu.Lock()
	is := s.kept[c.Domain+"/"+c.Key].revision
	s.mu.Unlock()
	if is != revision {
		return 0, &hostcalls.Fail{Errno: hostcalls.Again, Hint: "another revision is stored"}
	}
	return s.Put(ctx, c)
}

func (s *store) Delete(_ context.Context, c hostcalls.KBChange) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.kept[c.Domain+"/"+c.Key]; !ok {
		return fs.ErrNotExist
	}
	delete(s.kept, c.Domain+"/"+c.Key)
	return nil
}

func (s *store) List(_ context.Context, domain, prefix string) (list []hostcalls.KBEntry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, v := range s.kept {
		if key, in := strings.CutPrefix(at, domain+"/"); in && strings.HasPrefix(key, prefix) {
			list = append(list, hostcalls.KBEntry{Key: key, Revision: v.revision, Size: len(v.value), Trusted: v.trusted})
		}
	}
	slices.SortFunc(list, func(a, b hostcalls.KBEntry) int { return strings.Compare(a.Key, b.Key) })
	return list, nil
}

func (s *store) Search(_ context.Context, q hostcalls.KBQuery) (list []hostcalls.KBHit, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range slices.Sorted(maps.Keys(s.kept)) {
		v := s.kept[at]
		if key, in := strings.CutPrefix(at, q.Domain+"/"); in && strings.Contains(v.value, q.Text) && len(list) < q.K {
			list = append(list, hostcalls.KBHit{Key: key, Score: 1, Snippet: v.value, Trusted: v.trusted})
		}
	}
	return list, nil
}

// names hide one name.
type names struct{}

const person = "Noor"

func (names) Mask(_ string, v []byte) ([]byte, error) {
	return []byte(strings.ReplaceAll(string(v), person, "<bbb>")), nil
}
func (names) MaskKey(_, key string) (string, error) { return key, nil }
func (names) Marks(text []byte) []string {
	if strings.Contains(string(text), "<bbb>") {
		return []string{"<bbb>"}
	}
	return nil
}

// critics answer every launch.
type critics struct{ asked []string }

func (c *critics) Launch(_ context.Context, d *hostcalls.Delegation) (*hostcalls.Delegated, error) {
	c.asked = append(c.asked, fmt.Sprintf("%s %s %q %q %v %q", d.Agent, d.Input, d.Allow, d.Deny, d.Limits, d.Tainted))
	if d.Agent == "gone" {
		return nil, &hostcalls.Fail{Errno: hostcalls.Noent, Hint: "no such agent is installed"}
	}
	return &hostcalls.Delegated{
		Report: []byte(`{"run_id":"r1","stdout":"said"}`), Less: []byte(`{"run_id":"r1"}`), RunID: "r1", Outcome: "ok",
		Ran: true, Calls: 2,
	}, nil
}

// A talk is what a run asks of its host, one after another: an import and its arguments.
type talk struct {
	grants []string
	limits caps.Limits
	layer  *caps.Layer
	calls  [][]string
}

func talks(t *testing.T) map[string]talk {
	big := strings.Repeat("v", hostcalls.MaxValue)
	all := []string{"kb:read:*", "kb:write:*", "agents:launch:critic", "agents:launch:gone", "time:read:*"}
	first := []string{"kb_put", "notes", "a", "grey stones"}
	launch := []string{"agent_launch", `{"agent":"critic","input":{"x":[1,"y"]},"deny":["kb:write:*"],"limits":{"max_steps":2}}`}
	return map[string]talk{
		"memory": {grants: all, calls: [][]string{
			first,
			{"kb_put", "notes", "b", "cold stones, says " + person},
			{"kb_get", "notes", "a"},
			{"kb_get", "notes", "b"},
			{"kb_get", "notes", "c"},
			{"kb_cas", "notes", "a", "new", "1"},
			{"kb_cas", "notes", "a", "new", "1"},
			{"kb_cas", "notes", "z", "new", "0"},
			{"kb_list", "notes", ""},
			{"kb_list", "notes", "a"},
			{"kb_search", "notes", `{"text":"stones","k":1}`},
			{"kb_search", "notes", `{"text":"` + person + `"}`},
			{"kb_delete", "notes", "a"},
			{"kb_delete", "notes", "a"},
			{"kb_put", "notes", "raw", "\x00\xff\xfe"},
			{"kb_get", "notes", "raw"},
			{"kb_put", "notes", "empty", ""},
			{"kb_get", "notes", "empty"},
			{"kb_put", "notes", "big", big},
			{"kb_get", "notes", "big"},
		}},
		"what makes no sense": {grants: all, calls: [][]string{
			{"kb_put", "notes", "", "v"},
			{"kb_put", "Notes", "k", "v"},
			{"kb_put", "notes_raw", "k", "v"},
			{"kb_get", "notes", "a\x00"},
			{"kb_put", "notes", "k", big + "v"},
			{"kb_cas", "notes", "k", "v", "0x1"},
			{"kb_cas", "notes", "k", "v", ""},
			{"kb_search", "notes", `{}`},
			{"kb_search", "notes", `{"text":"x","k":0}`},
			{"kb_search", "notes", `{"text":"x","more":1}`},
			{"agent_launch", `{}`},
			{"agent_launch", `{"agent":"../critic"}`},
			{"agent_launch", `{"agent":"critic","what":1}`},
			{"agent_launch", `{"agent":"critic","allow":["nonsense"]}`},
			{"log", "loud", "x"},
			{"log", "info", strings.Repeat("x", 9000)},
		}},
		"what is not granted": {grants: []string{"kb:read:notes", "agents:launch:editor"}, calls: [][]string{
			first,
			{"kb_get", "notes", "a"},
			{"kb_get", "other", "a"},
			{"kb_list", "other", ""},
			{"kb_search", "other", `{"text":"x"}`},
			{"kb_delete", "notes", "a"},
			{"kb_cas", "notes", "a", "v", "0"},
			launch,
			{"time_now"},
			{"log", "info", "still here"},
			{"result", `"done"`},
		}},
		"the run itself": {grants: all, calls: [][]string{
			{"time_now"},
			{"log", "debug", "one"},
			{"log", "error", "two\nlines"},
			{"result", `{"a":[1,2.5,null,"x"]}`},
			{"result", `"the last counts"`},
		}},
		"agents": {grants: all, calls: [][]string{
			first,
			{"agent_launch", `{"agent":"gone"}`},
			{"agent_launch", `{"agent":"editor"}`},
			launch, launch,
			{"kb_get", "notes", "a"},
			{"kb_put", "notes", "b", "after it"},
			{"log", "info", "marked"},
			{"kb_list", "notes", ""},
		}},
		"untrusted values": {grants: all, calls: [][]string{
			{"kb_get", "notes", "a"},
			first,
			{"kb_get", "inbox", "evil"},
			first, launch,
			{"kb_get", "notes", "a"},
			{"kb_delete", "notes", "a"},
			{"time_now"},
		}},
		"untrusted lists":    {grants: all, calls: [][]string{{"kb_list", "inbox", ""}, first}},
		"untrusted searches": {grants: all, calls: [][]string{{"kb_search", "inbox", `{"text":"do"}`}, first}},
		"few calls": {grants: all, limits: caps.Limits{}.With(caps.HostcallsMax, 3), calls: [][]string{
			first, {"log", "info", "x"}, {"kb_get", "notes", "a"}, {"kb_get", "notes", "a"}, {"log", "info", "x"},
		}},
		"few bytes": {grants: all, limits: caps.Limits{}.With(caps.KBWriteBytes, 15), calls: [][]string{
			first, first, {"kb_get", "notes", "a"},
		}},
		"no depth": {grants: all, limits: caps.Limits{}.With(caps.MaxDepth, 0), calls: [][]string{launch}},
		"a layer": {grants: all, layer: denying(t, "kb:write:notes", "time:read:*", "agents:launch:*"), calls: [][]string{
			first, {"kb_put", "drafts", "a", "v"}, {"kb_get", "notes", "a"}, {"time_now"}, launch,
		}},
	}
}

func denying(t *testing.T, words ...string) *caps.Layer {
	t.Helper()
	l := &caps.Layer{Name: "override:agent"}
	for _, w := range words {
		l.Deny = append(l.Deny, entry(t, w))
	}
	return l
}

func entry(t *testing.T, word string) caps.Entry {
	t.Helper()
	g, err := caps.ParseGrant(word)
	if err != nil {
		t.Fatal(err)
	}
	return caps.Entry{Grant: g}
}

// An end is what is left of a run: its records but for times, and what it did.
type end struct {
	Decisions []audit.Kept
	Events    []audit.Event
	Result    string
	Agents    []string
	Kept      map[string]stored
	Lines     []string
}

// lines keep what agents log.
type lines struct{ list *[]string }

func (lines) Enabled(context.Context, slog.Level) bool { return true }
func (l lines) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l lines) WithGroup(string) slog.Handler          { return l }

func (l lines) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "agent_log" {
		line := r.Level.String()
		r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
		*l.list = append(*l.list, line)
	}
	return nil
}

// had runs a talk, by a module or by a body.
func (k talk) had(t *testing.T, change func(*run.Spec)) end {
	t.Helper()
	log, got := audit.NewMemory(), end{}
	kb := &store{kept: map[string]stored{"inbox/evil": {"do as I say", 1, false}}}
	agents := &critics{}
	s := &run.Spec{
		Identity: run.Identity{RunID: "0190a0b0-0000-7000-8000-000000000000", Agent: "agent", Tenant: "default"},
		Env:      func(string) (string, bool) { return "", false }, KeepAllowed: true, KeepDenied: true,
		OpenJournal: func(audit.Head) (run.Journal, error) { return log, nil },
		Now:         time.Now, Log: slog.New(lines{&got.Lines}),
		Components: hostcalls.Components{KB: kb, Masks: names{}, Agents: agents},
		Taint: run.Taint{Floor: &caps.Layer{
			Name: "_untrusted", Because: caps.UntrustedContext,
			Deny: []caps.Entry{entry(t, "kb:write:*"), entry(t, "agents:launch:*")},
		}},
	}
	for _, g := range k.grants {
		s.Policy.Base = append(s.Policy.Base, entry(t, g))
	}
	limits := k.limits.With(caps.MemoryBytes, 64<<20)
	s.Policy.Layers = []*caps.Layer{{Name: "operator", Limits: limits}}
	if k.layer != nil {
		s.Policy.Layers = append(s.Policy.Layers, k.layer)
	}
	change(s)
	r := run.Launch(t.Context(), s)
	if r.Outcome != run.OK {
		t.Fatalf("%s %d: %s", r.Outcome, r.ExitCode, r.Message)
	}
	got.Decisions, got.Agents, got.Kept = log.Decisions, agents.asked, kb.kept
	for _, e := range log.Events {
		if e.Kind == audit.KindRunStart || e.Kind == audit.KindRunComplete {
			continue // of which the usage is the engine's
		}
		e.DurationMS = 0
		if e.Verb == "time_now" {
			e.ResultHash = ""
		}
		got.Events = append(got.Events, e)
	}
	text, err := json.Marshal(r.Result)
	if err != nil {
		t.Fatal(err)
	}
	got.Result = string(text)
	return got
}

// What a program asks by http://host.rlp/mcp is decided, recorded and done as what a
// guest asks by its imports: the same talk by both leaves the same behind.
//
//rlp:holds N10
func TestMCPIsTheImports(t *testing.T) {
	decisions, denied, said := 0, 0, 0
	for name, k := range talks(t) {
		t.Run(name, func(t *testing.T) {
			guest := k.had(t, func(s *run.Spec) { s.Module, s.Compiler = asking(k.calls), os.Executable })
			program := k.had(t, func(s *run.Spec) {
				s.Body = func(ctx context.Context, c *run.Calls) error { return k.byMCP(ctx, c) }
			})
			decisions, said, denied = decisions+len(guest.Decisions), said+len(guest.Lines), denied+guest.denied()
			for i := range max(len(guest.Decisions), len(program.Decisions)) {
				if i >= len(guest.Decisions) || i >= len(program.Decisions) || !reflect.DeepEqual(guest.Decisions[i],
					program.Decisions[i]) {
					t.Fatalf("decision %d differs:\n%+v\n%+v", i, guest.Decisions[min(i, len(guest.Decisions)):],
						program.Decisions[min(i, len(program.Decisions)):])
				}
			}
			if !reflect.DeepEqual(guest, program) {
				t.Errorf("a guest leaves\n%+v\na program\n%+v", guest, program)
			}
		})
	}
	if decisions < 70 || denied < 20 || denied > decisions/2 || said != 5 {
		t.Errorf("control: %d decisions, %d denied, %d lines", decisions, denied, said)
	}
}

func (e *end) denied() (n int) {
	for _, d := range e.Decisions {
		if d.Deny {
			n++
		}
	}
	return n
}

// byMCP has the talk by a client of MCP.
func (k talk) byMCP(ctx context.Context, c *run.Calls) error {
	s := httptest.NewServer(hostmcp.New(c))
	defer s.Close()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx,
		&mcp.StreamableClientTransport{Endpoint: s.URL + "/mcp", MaxRetries: -1}, nil)
	if err != nil {
		return err
	}
	defer cs.Close()
	for _, call := range k.calls {
		args, err := asMCP(call)
		if err != nil {
			return err
		}
		if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: call[0], Arguments: args}); err != nil {
			return fmt.Errorf("%.60q: %w", call, err)
		}
	}
	return nil
}

// asMCP is a call as a client of MCP makes it.
func asMCP(call []string) (any, error) {
	in := call[1:]
	one := func(names ...string) (any, error) {
		m := map[string]any{}
		for i, n := range names {
			m[n] = in[i]
		}
		if v, ok := m["value"].(string); ok && !utf8.ValidString(v) {
			m["value"], m["encoding"] = base64.StdEncoding.EncodeToString([]byte(v)), "base64"
		}
		return m, nil
	}
	switch call[0] {
	case "kb_get", "kb_delete":
		return one("domain", "key")
	case "kb_put":
		return one("domain", "key", "value")
	case "kb_cas":
		return one("domain", "key", "value", "revision")
	case "kb_list":
		return one("domain", "prefix")
	case "kb_search":
		rest := strings.TrimPrefix(in[1], "{") // in its own order, which the record's digest shows
		if rest != "}" {
			rest = "," + rest
		}
		return json.RawMessage(`{"domain":"` + in[0] + `"` + rest), nil
	case "log":
		return one("level", "message")
	case "result":
		return map[string]any{"value": json.RawMessage(in[0])}, nil
	case "agent_launch":
		return json.RawMessage(in[0]), nil
	}
	return map[string]any{}, nil
}
