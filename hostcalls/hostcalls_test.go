package hostcalls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/record/audit"
)

// rig is a host with everything in memory, and a guest's memory to call it from.
type rig struct {
	t     testing.TB
	log   *audit.Memory
	gate  *gate.Gate
	host  *Host
	funcs map[string]abi.Func
	kb    memoryKB
	masks Masks
	mem   []byte
	lines []string
}

type memoryKB map[string]string

func (m memoryKB) Get(_ context.Context, domain, key string) (KBValue, error) {
	v, ok := m[domain+"/"+key]
	if !ok {
		return KBValue{}, fs.ErrNotExist
	}
	return KBValue{Bytes: []byte(v), Trusted: true}, nil
}

func (m memoryKB) Put(_ context.Context, c KBChange) (uint64, error) {
	m[c.Domain+"/"+c.Key] = string(c.Value)
	return 1, nil
}

func (m memoryKB) CAS(context.Context, KBChange, uint64) (uint64, error) {
	return 0, &Fail{Errno: Again, Hint: "another"}
}

func (m memoryKB) Delete(_ context.Context, c KBChange) error {
	delete(m, c.Domain+"/"+c.Key)
	return nil
}

func (m memoryKB) List(context.Context, string, string) ([]KBEntry, error) {
	return nil, errors.New("disk on fire at /secret/path")
}

func (m memoryKB) Search(_ context.Context, q KBQuery) ([]KBHit, error) {
	return []KBHit{{Key: fmt.Sprint(q.Domain, "|", q.Text, "|", q.K, "|", q.Raw), Score: 1.5}}, nil
}

// noMasks finds nothing to mask.
type noMasks struct{}

func (noMasks) Mask(_ string, v []byte) ([]byte, error) { return v, nil }
func (noMasks) MaskKey(_, key string) (string, error)   { return key, nil }
func (noMasks) Marks([]byte) []string                   { return nil }

func newRig(t testing.TB, grants ...string) *rig {
	t.Helper()
	r := &rig{
		t: t, log: audit.NewMemory(), kb: memoryKB{}, masks: noMasks{}, mem: make([]byte, 1<<17),
		funcs: map[string]abi.Func{},
	}
	var entries []caps.Entry
	for _, text := range grants {
		g, err := caps.ParseGrant(text)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, caps.Entry{Grant: g})
	}
	set, err := caps.Base(entries, caps.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if r.gate, err = gate.New(set, r.log, gate.Options{KeepAllowed: true, KeepDenied: true, MaxCalls: -1}); err != nil {
		t.Fatal(err)
	}
	r.host = New(Config{
		Gate: r.gate, Components: Components{KB: r.kb, Masks: r.masks}, Now: func() int64 { return 42 }, Sources: trusting(t),
		Log: func(level, message string) { r.lines = append(r.lines, level+": "+message) },
	})
	funcs, err := r.host.Funcs()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range funcs {
		r.funcs[f.Name] = f
	}
	return r
}

// trusting are sources by which no answer of a host marks the run.
func trusting(t testing.TB) Sources {
	t.Helper()
	every := caps.Grant{Family: caps.Net, Modes: caps.HTTPS | caps.HTTP, Scope: "*"}
	all, err := caps.Base([]caps.Entry{{Grant: every}}, caps.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return Sources{Trusted: all}
}

const outAt, outRoom = 1 << 16, 64

// call passes args as a guest would and returns the number and the response.
func (r *rig) call(name string, args ...string) (int64, string) {
	r.t.Helper()
	f, ok := r.funcs[name]
	if !ok {
		r.t.Fatalf("no import %s", name)
	}
	stack := make([]uint64, 0, 2*len(args)+2)
	at := 16
	for _, a := range args {
		copy(r.mem[at:], a)
		stack = append(stack, uint64(at), uint64(len(a)))
		at += len(a) + 1
	}
	stack = append(stack, outAt, outRoom)
	if len(stack) != len(f.Params) {
		r.t.Fatalf("%s takes %d parameters, not %d", name, len(f.Params), len(stack))
	}
	if err := f.Call(context.Background(), r.mem, stack); err != nil {
		r.t.Fatalf("%s: %v", name, err)
	}
	n := int64(stack[0])
	if n >= 0 && n <= outRoom {
		return n, string(r.mem[outAt : outAt+n])
	}
	return n, r.rest()
}

// rest reads what did not fit, eleven bytes at a time.
func (r *rig) rest() string {
	var b strings.Builder
	for {
		stack := []uint64{outAt, 11}
		if err := r.funcs["response_read"].Call(context.Background(), r.mem, stack); err != nil {
			r.t.Fatal(err)
		}
		n := int32(stack[0])
		if n <= 0 {
			return b.String()
		}
		b.Write(r.mem[outAt : outAt+n])
	}
}

type answerJSON struct{ Error, Capability, Reason, Hint string }

func (r *rig) denial(name string, args ...string) (int64, answerJSON) {
	r.t.Helper()
	n, text := r.call(name, args...)
	var a answerJSON
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		r.t.Fatalf("%s: %q is no JSON: %v", name, text, err)
	}
	return n, a
}

// whereAsked are the places where the imports ask the gate, and why each is one of
// its own beside the call that all of them go through.
var whereAsked = map[string]string{
	"define.go: judge":           "every import that touches anything",
	"refuse.go: permit":          "the five that follow and take a refusal as an error",
	"kb_mask.go: seesRaw":        "that a domain is seen unmasked, beside that it is read",
	"exec.go: environment":       "each variable of a program",
	"secret_handle.go: fill":     "the value behind a handle, at each use",
	"net_send.go: carry":         "the secret that a redirect would carry on",
	"net_send.go: admit":         "each request of a call, which redirects make several",
	"tool_call.go: callAttached": "each need of an attached tool",
}

// The gate is asked at these places and at no other, none of them an import's own:
// an import that touches something is made by define, which wants its family, and
// whose do takes the gate's permit. What is free of it is known by name.
//
//rlp:holds C11 C14
func TestEveryImportIsGatedOrKnown(t *testing.T) {
	free := []string{"response_read", "turn_next", "log", "result"}
	for _, im := range Imports() {
		if im.Gated == slices.Contains(free, im.Name) {
			t.Errorf("%s: gated %v", im.Name, im.Gated)
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	found := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			for range asksIn(decl) {
				at := name + ": package"
				if fn, ok := decl.(*ast.FuncDecl); ok {
					at = name + ": " + fn.Name.Name
				}
				if found[at] {
					t.Errorf("%s asks the gate twice", at)
				}
				found[at] = true
			}
		}
	}
	for at := range found {
		if whereAsked[at] == "" {
			t.Errorf("%s asks the gate, and nothing says why", at)
		}
	}
	for at := range whereAsked {
		if !found[at] {
			t.Errorf("%s does not ask the gate any more", at)
		}
	}
}

// asksIn are the calls in n that admit something.
func asksIn(n ast.Node) (calls []ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains([]string{"Admit", "AdmitTree", "Give", "permit"},
			s.Sel.Name) {
			calls = append(calls, n)
		}
		return true
	})
	return calls
}

// Without its grant every import that touches anything is refused, by one record
// that has the capability, the call as the tool and the reason, and which the guest
// is told as well; there is nothing behind it that it could have touched.
//
//rlp:holds C12 C14
func TestEveryImportAsksForItsCapability(t *testing.T) {
	asks := map[string]struct {
		args      []string
		cap, name string // as it is recorded, and as it would be granted
	}{
		"net_http": {
			[]string{`{"url":"https://api.example.com/x"}`, ""},
			"net.http https://api.example.com/x",
			"network:https:get@api.example.com",
		},
		"kb_get":        {[]string{"notes", "k"}, "kb.read notes/k", "kb:read:notes"},
		"kb_put":        {[]string{"drafts", "k", "v"}, "kb.write drafts/k", "kb:write:drafts"},
		"kb_cas":        {[]string{"drafts", "k", "v", "0"}, "kb.write drafts/k", "kb:write:drafts"},
		"kb_delete":     {[]string{"drafts", "k"}, "kb.write drafts/k", "kb:write:drafts"},
		"kb_list":       {[]string{"notes", "p"}, "kb.read notes/p", "kb:read:notes"},
		"kb_search":     {[]string{"notes", `{"text":"x"}`}, "kb.read notes", "kb:read:notes"},
		"secret_handle": {[]string{"runloop/mail/key"}, "secrets.get ", "secrets:read:runloop/mail/key"},
		"model_complete": {
			[]string{`{"model":"local:echo","messages":[{"role":"user","content":"x"}]}`},
			"model.use local:echo", "model:use:local:echo",
		},
		"model_embed": {[]string{`{"model":"local:echo","input":["x"]}`}, "model.use local:echo", "model:use:local:echo"},
		"exec_run": {
			[]string{`{"argv":["/usr/bin/grep","x"]}`, ""},
			"exec.spawn /usr/bin/grep",
			"process:exec:/usr/bin/grep",
		},
		"mcp_call":     {[]string{`{"server":"github"}`}, "mcp.call github", "mcp:call:github"},
		"agent_launch": {[]string{`{"agent":"critic"}`}, "agent.launch critic", "agents:launch:critic"},
		"time_now":     {nil, "time.now ", "time:read:*"},
	}
	for _, im := range Imports() {
		ask, known := asks[im.Name]
		if known != im.Gated {
			t.Errorf("%s: a request is known: %v, gated: %v", im.Name, known, im.Gated)
		}
		if !known {
			continue
		}
		if req, err := caps.ParseRequest(ask.name); err != nil || req[0].Family != im.Family {
			t.Errorf("%s: it is listed as one of %s, %v", im.Name, im.Family, err)
		}
		r := newRig(t)
		r.host.cfg.Components = Components{}
		n, said := r.denial(im.Name, ask.args...)
		if n != -2 || said.Error != "acces" || said.Capability != ask.name || said.Reason != "cap_missing" {
			t.Errorf("%s: the guest is told %d %+v", im.Name, n, said)
		}
		if len(r.log.Decisions) != 1 || len(r.log.Events) != 0 {
			t.Errorf("%s: %d decisions, %d more", im.Name, len(r.log.Decisions), len(r.log.Events))
			continue
		}
		if d := r.log.Decisions[0]; !d.Deny || d.Op != im.Name || d.Reason != "cap_missing" ||
			!strings.HasPrefix(d.Cap+" "+d.Target, ask.cap) {
			t.Errorf("%s: recorded %+v", im.Name, d)
		}
		granted := newRig(t, ask.name)
		if _, said := granted.call(im.Name, ask.args...); strings.Contains(said, "cap_missing") ||
			len(granted.log.Decisions) != 1 || granted.log.Decisions[0].Op != im.Name {
			t.Errorf("control: %s: %s, %+v", im.Name, said, granted.log.Decisions)
		}
	}
}

// Every import that the contract names is there, with its signature.
func TestTheTableIsTheContracts(t *testing.T) {
	r := newRig(t)
	for name, pairs := range map[string]int{
		"net_http": 3, "kb_get": 3, "kb_put": 4, "kb_cas": 5, "kb_delete": 3, "kb_list": 3, "kb_search": 3,
		"secret_handle": 2, "model_complete": 2, "model_embed": 2, "exec_run": 3, "mcp_call": 2, "agent_launch": 2,
		"turn_next": 1, "time_now": 1, "log": 3, "result": 2,
	} {
		f, ok := r.funcs[name]
		if !ok || len(f.Params) != 2*pairs || len(f.Results) != 1 || f.Results[0] != abi.I64 || f.Module != "runloop_v1" {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if len(r.funcs) != 18 {
		t.Errorf("%d imports", len(r.funcs))
	}
}

// A denial is a number and a reason; the guest goes on, and nothing was done.
//
//rlp:holds R75 C10 C12
func TestDeniedCallsDoNothing(t *testing.T) {
	r := newRig(t, "kb:write:drafts")
	if n, _ := r.call("kb_put", "drafts", "a", "x"); n < 0 {
		t.Fatal("control: the granted domain is denied")
	}
	n, a := r.denial("kb_put", "contacts", "a", "x")
	want := answerJSON{
		"acces", "kb:write:contacts", "domain_not_permitted",
		`policy.caps does not ask for it; it would need kb_write = ["contacts"]`,
	}
	if n != -2 || a != want {
		t.Errorf("kb_put = %d, %+v", n, a)
	}
	if _, put := r.kb["contacts/a"]; put {
		t.Error("a denied write was done")
	}
	if d := r.log.Decisions[1]; !d.Deny || d.Cap != "kb.write" || d.Op != "kb_put" || d.Reason != "domain_not_permitted" ||
		d.Target != "contacts/a" {
		t.Errorf("recorded as %+v", d)
	}
	if n, _ := r.call("kb_put", "drafts", "b", "x"); n < 0 {
		t.Error("the run does not go on after a denial")
	}
}

// Families that this version has no component for are checked and recorded all
// the same, and a guest that may not ask learns no more than that.
func TestUnavailableFamiliesAreCheckedFirst(t *testing.T) {
	for _, c := range []struct{ name, grant, first, second string }{
		{"net_http", "network:https:api.example.com", `{"url":"https://api.example.com/x?token=s3cret"}`, ""},
		{"secret_handle", "secrets:read:runloop/mail/key", "runloop/mail/key", "-"},
		{"model_complete", "model:use:*", `{"model":"local:echo","messages":[{"role":"user","content":"x"}]}`, "-"},
		{"model_embed", "model:use:*", `{"input":["x"]}`, "-"},
		{"exec_run", "process:exec:/usr/bin/grep", `{"argv":["/usr/bin/grep","x"]}`, ""},
		{"mcp_call", "mcp:call:github", `{"server":"github"}`, "-"},
		{"agent_launch", "agents:launch:critic", `{"agent":"critic"}`, "-"},
	} {
		args := []string{c.first, c.second}
		if c.second == "-" {
			args = args[:1]
		}
		with, without := newRig(t, c.grant), newRig(t)
		if n, a := with.denial(c.name, args...); n != -58 || a.Reason != "unavailable" {
			t.Errorf("%s granted: %d %+v", c.name, n, a)
		}
		if n, a := without.denial(c.name, args...); n != -2 || a.Reason != "cap_missing" {
			t.Errorf("%s not granted: %d %+v", c.name, n, a)
		}
		if len(with.log.Decisions) != 1 || len(without.log.Decisions) != 1 {
			t.Errorf("%s: %d and %d records", c.name, len(with.log.Decisions), len(without.log.Decisions))
		}
		if n, _ := with.call(c.name, append([]string{"{"}, args[1:]...)...); n >= 0 {
			t.Errorf("%s took nonsense: %d", c.name, n)
		}
	}
}

// Neither a secret's name nor a query is in a record.
//
//rlp:holds R73
func TestRecordsHoldNoSecretNamesAndNoQueries(t *testing.T) {
	r := newRig(t)
	r.call("secret_handle", "runloop/bank/pin")
	r.call("net_http", `{"url":"https://api.example.com/p?token=s3cret"}`, "")
	r.call("net_http", `{"url":"https://me:s3cret@api.example.com/p"}`, "")
	if len(r.log.Decisions) != 3 {
		t.Fatalf("%d records", len(r.log.Decisions))
	}
	for _, d := range r.log.Decisions {
		if strings.Contains(d.Target, "bank") || strings.Contains(d.Target, "s3cret") {
			t.Errorf("target %q", d.Target)
		}
	}
	if got := r.log.Decisions[1].Target; got != "https://api.example.com/p" {
		t.Errorf("target %q: what is no secret should be there", got)
	}
}

// A decision is recorded before the effect; what came of it is a second record.
//
//rlp:holds R70
func TestTheRecordComesBeforeTheEffect(t *testing.T) {
	r := newRig(t, "kb:write:drafts")
	r.log.Room = 0
	stack := []uint64{16, 6, 22, 1, 22, 1, outAt, outRoom}
	copy(r.mem[16:], "draftsx")
	if err := r.funcs["kb_put"].Call(context.Background(), r.mem, stack); !errors.Is(err, audit.ErrFull) {
		t.Errorf("the run goes on without a record: %v", err)
	}
	if len(r.kb) != 0 {
		t.Error("done before it was recorded")
	}
	r = newRig(t, "kb:write:drafts")
	r.call("kb_put", "drafts", "k", "v")
	if len(r.log.Decisions) != 1 || len(r.log.Events) != 1 || r.log.Events[0].Verb != "kb_put" ||
		r.log.Events[0].Status != "ok" {
		t.Errorf("decisions %+v, events %+v", r.log.Decisions, r.log.Events)
	}
	if r.log.Decisions[0].Args == nil {
		t.Error("the value is not in the arguments' digest")
	}
}

// What the host itself cannot do is a number to the guest, a line of the host's log,
// and in the record, which is exported, no word of whatever failed.
func TestHostTroubleIsNotSpelledOut(t *testing.T) {
	r := newRig(t, "kb:read:notes")
	var logged []string
	r.host.cfg.Failed = func(op, why string) { logged = append(logged, op+": "+why) }
	n, a := r.denial("kb_list", "notes", "")
	if n != -29 || strings.Contains(a.Hint, "secret") {
		t.Errorf("%d %+v", n, a)
	}
	if e := r.log.Events[0]; e.Status != "error" || e.ErrorSummary != "io: the host failed; its log says why" ||
		len(logged) != 1 || !strings.Contains(logged[0], "kb_list: ") || !strings.Contains(logged[0], "disk on fire") {
		t.Errorf("%+v", e)
	}
}

func TestResponsesThatDoNotFitAreReadInPieces(t *testing.T) {
	r := newRig(t, "kb:read:notes")
	long := strings.Repeat("0123456789", 100)
	r.kb["notes/long"], r.kb["notes/short"] = long, "s"
	if n, got := r.call("kb_get", "notes", "long"); n != 1000 || got != long {
		t.Errorf("%d, %q", n, got)
	}
	if r.rest() != "" {
		t.Error("more than all")
	}
	r.call("kb_get", "notes", "long")
	if n, got := r.call("kb_get", "notes", "short"); n != 1 || got != "s" || r.rest() != "" {
		t.Errorf("%d, %q: an earlier response came through", n, got)
	}
	stack := []uint64{uint64(len(r.mem)), 1}
	if err := r.funcs["response_read"].Call(context.Background(), r.mem, stack); err != nil || int32(stack[0]) != -21 {
		t.Errorf("bad range: %d, %v", int32(stack[0]), err)
	}
}

func TestLocalCalls(t *testing.T) {
	r := newRig(t, "time:read:*")
	if n, got := r.call("time_now"); n != 2 || got != "42" {
		t.Errorf("time_now = %d %q", n, got)
	}
	if n, _ := r.call("log", "info", "hello"); n != 0 || len(r.lines) != 1 || r.lines[0] != "info: hello" {
		t.Errorf("log: %v", r.lines)
	}
	if n, _ := r.call("log", "loud", "hello"); n != -28 {
		t.Errorf("log loud = %d", n)
	}
	if n, _ := r.call("result", `{"a":1}`); n != 0 || string(r.host.Result()) != `{"a":1}` {
		t.Errorf("result: %s", r.host.Result())
	}
	if n, _ := r.call("result", `{"a":`); n != -28 || string(r.host.Result()) != `{"a":1}` {
		t.Errorf("a bad result replaced a good one: %s", r.host.Result())
	}
	if n, _ := r.call("turn_next"); n != -44 {
		t.Errorf("turn_next = %d", n)
	}
	if n, _ := newRig(t).call("time_now"); n != -2 {
		t.Errorf("time_now without time = %d", n)
	}
}

func TestKeysAndBudgets(t *testing.T) {
	r := newRig(t, "kb:write:drafts", "kb:read:drafts")
	for _, key := range []string{"", "a\x00b", "a\nb", strings.Repeat("k", MaxKey+1), "\xff"} {
		if n, _ := r.call("kb_put", "drafts", key, "v"); n != -28 {
			t.Errorf("key %q: %d", key, n)
		}
	}
	if n, _ := r.call("kb_get", "drafts", "none"); n != -44 {
		t.Errorf("absent: %d", n)
	}
	if n, _ := r.call("kb_cas", "drafts", "k", "v", "-1"); n != -28 {
		t.Errorf("revision -1: %d", n)
	}
	if n, _ := r.call("kb_cas", "drafts", "k", "v", "7"); n != -6 {
		t.Errorf("lost compare-and-swap: %d", n)
	}
	r.host.budget.Bound(caps.Limits{}.With(caps.KBWriteBytes, 3))
	if n, _ := r.call("kb_put", "drafts", "k", "abc"); n < 0 {
		t.Errorf("within the budget: %d", n)
	}
	if n, a := r.denial("kb_put", "drafts", "k", "d"); n != -19 || a.Reason != "budget_exhausted" {
		t.Errorf("over the budget: %d %+v", n, a)
	}
}

// Whatever a guest passes, nothing panics and nothing outside its response is written.
//
//rlp:holds P20
func FuzzCalls(f *testing.F) {
	f.Add(uint8(2), []byte("draftskeyvalue"), uint32(16), uint32(6), uint32(22), uint32(3), uint32(25), uint32(5))
	f.Add(uint8(0), []byte(`{"url":"https://h/"}`), uint32(0), uint32(20), uint32(0xfffffff0), uint32(0x20), uint32(1),
		uint32(1<<31))
	f.Fuzz(func(t *testing.T, pick uint8, text []byte, a, b, c, d, out, room uint32) {
		r := newRig(t, "kb:read:drafts", "kb:write:drafts", "network:https:*", "model:use:*", "time:read:*")
		copy(r.mem[16:], text)
		before := slices.Clone(r.mem)
		def := all[int(pick)%len(all)]
		fn := r.funcs[def.name]
		stack := make([]uint64, len(fn.Params))
		words := []uint32{a, b, c, d}
		for i := range stack {
			stack[i] = uint64(words[i%4])
		}
		stack[len(stack)-2], stack[len(stack)-1] = uint64(out), uint64(room)
		if err := fn.Call(context.Background(), r.mem, stack); err != nil {
			t.Fatal(err)
		}
		n := int64(stack[0])
		for i := range r.mem {
			inside := n > 0 && n <= int64(room) && uint64(i) >= uint64(out) && uint64(i) < uint64(out)+uint64(n)
			if r.mem[i] != before[i] && !inside {
				t.Fatalf("%s wrote at %d, outside its response %d+%d (%d)", def.name, i, out, room, n)
			}
		}
	})
}

// Four times all the memory that a guest has is not copied to be refused.
func TestArgumentsAreBoundedBeforeTheyAreCopied(t *testing.T) {
	r := newRig(t, "kb:write:drafts")
	r.mem = make([]byte, 8<<20)
	stack := make([]uint64, 10)
	for i := range 4 {
		stack[2*i+1] = uint64(len(r.mem))
	}
	f := r.funcs["kb_cas"]
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := f.Call(context.Background(), r.mem, stack); err != nil || int64(stack[0]) != -1 {
		t.Fatalf("%d, %v", int64(stack[0]), err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n >= MaxArguments {
		t.Errorf("%d bytes allocated", n)
	}
	// control: a largest value is taken
	copy(r.mem[16:], "draftskey")
	big := []uint64{16, 6, 22, 3, 1024, MaxValue, 4 << 20, 64}
	if err := r.funcs["kb_put"].Call(context.Background(), r.mem, big); err != nil || int64(big[0]) < 0 {
		t.Errorf("a value of 1 MiB: %d, %v", int64(big[0]), err)
	}
}
