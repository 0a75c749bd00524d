package run

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/effect/model"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/record/audit"
)

// touched counts what components were asked to do.
type touched struct{ calls []string }

func (c *touched) note(name string) { c.calls = append(c.calls, name) }

var errSpy = errors.New("a spy does nothing")

type (
	spyKB     struct{ *touched }
	spyHTTP   struct{ *touched }
	spyModel  struct{ *touched }
	spyExec   struct{ *touched }
	spyMCP    struct{ *touched }
	spyAgents struct{ *touched }
	spyVault  struct{ *touched }
	spyMasks  struct{}
)

func (spyMasks) Mask(_ string, value []byte) ([]byte, error) { return value, nil }
func (spyMasks) MaskKey(_, key string) (string, error)       { return key, nil }
func (spyMasks) Marks([]byte) []string                       { return nil }

func (s spyKB) Get(context.Context, string, string) (hostcalls.KBValue, error) {
	s.note("get")
	return hostcalls.KBValue{}, errSpy
}

func (s spyKB) Put(context.Context, hostcalls.KBChange) (uint64, error) {
	s.note("put")
	return 0, errSpy
}

func (s spyKB) CAS(context.Context, hostcalls.KBChange, uint64) (uint64, error) {
	s.note("cas")
	return 0, errSpy
}

func (s spyKB) Delete(context.Context, hostcalls.KBChange) error {
	s.note("delete")
	return errSpy
}

func (s spyKB) List(context.Context, string, string) ([]hostcalls.KBEntry, error) {
	s.note("list")
	return nil, errSpy
}

func (s spyKB) Search(context.Context, hostcalls.KBQuery) ([]hostcalls.KBHit, error) {
	s.note("search")
	return nil, errSpy
}

func (s spyHTTP) Vet(string, bool) error { return nil }
func (s spyHTTP) Send(*http.Request, bool) (*http.Response, error) {
	s.note("send")
	return nil, errSpy
}

func (s spyModel) Bound(model.Limits)                   {}
func (s spyModel) Prepare(model.Request) *model.Refusal { return nil }
func (s spyModel) Complete(context.Context, *model.CompleteRequest) (*model.Answer, error) {
	s.note("complete")
	return nil, errSpy
}

func (s spyModel) Embed(context.Context, *model.EmbedRequest) (*model.Embeddings, error) {
	s.note("embed")
	return nil, errSpy
}

func (s spyExec) SeesAll() bool { return false }

func (s spyExec) Find(path string) (hostcalls.Program, error) {
	return hostcalls.Program{File: path, Name: path, Via: []string{path}}, nil
}

func (s spyExec) Leads(path string) ([]string, error) {
	s.note("leads")
	return []string{path}, nil
}

func (s spyExec) Shows(string) bool {
	s.note("shows")
	return false
}

func (s spyExec) Run(context.Context, *hostcalls.Command) (*hostcalls.Ended, error) {
	s.note("run")
	return nil, errSpy
}

func (s spyMCP) Server(string) hostcalls.MCPServer {
	s.note("server")
	return nil
}

func (s spyAgents) Launch(context.Context, *hostcalls.Delegation) (*hostcalls.Delegated, error) {
	s.note("launch")
	return nil, errSpy
}

func (s spyVault) Handle(context.Context, string) (string, error) {
	s.note("handle")
	return "", errSpy
}
func (s spyVault) Named(string) []string { return nil }
func (s spyVault) Fill(text string, _ func(string) error) (string, error) {
	return text, nil
}
func (s spyVault) Scrub(p []byte, _ func(string)) []byte        { return p }
func (s spyVault) Sending(string, string) error                 { return nil }
func (s spyVault) Hear(context.Context, string, []string) error { return nil }
func (s spyVault) Knows() bool                                  { return true }
func (s spyVault) Stream(func(string)) func([]byte, bool) []byte {
	return func(p []byte, _ bool) []byte { return p }
}

func (c *touched) components() hostcalls.Components {
	return hostcalls.Components{
		KB: spyKB{c}, HTTP: spyHTTP{c}, Model: spyModel{c}, Exec: spyExec{c}, MCP: spyMCP{c}, Agents: spyAgents{c},
		Secrets: spyVault{c}, Masks: spyMasks{},
	}
}

// phrases are what a guest says to be heard: requests that every import takes,
// on the machine that the test runs on.
func phrases(folder string) []string {
	quoted, _ := json.Marshal(folder + "/made")
	return []string{
		`{"method":"GET","url":"https://api.example.com/"}`, `{"method":"POST","url":"http://127.0.0.1:1/"}`, "drafts",
		"contacts", "key", "value", "0",
		"runloop/mail/key", `{"model":"local:echo","messages":[{"role":"user","content":"x"}]}`,
		`{"model":"local:echo","input":["x"]}`,
		`{"argv":["/usr/bin/touch",` + string(quoted) + `]}`, `{"server":"github","tool":"search","arguments":{}}`,
		`{"server":"tools","tool":""}`,
		`{"agent":"critic","input":{}}`, `{"text":"x","k":3}`, strings.TrimPrefix(folder, "/") + "/made",
		strings.TrimPrefix(folder, "/") + "/there", "/", "..", "",
	}
}

// randomGuest is a module that imports everything there is, in an order and with
// arguments that seed decides: pointers to phrases mostly, and any numbers.
func randomGuest(funcs []abi.Func, phrases []string, seed uint64, calls int) []byte {
	rnd := rand.New(rand.NewPCG(seed, 1))
	uleb := func(v int) []byte { return binary.AppendUvarint(nil, uint64(v)) }
	sleb := func(v int64) []byte {
		var b []byte
		for {
			c := byte(v) & 0x7f
			v >>= 7
			if v == 0 && c < 0x40 || v == -1 && c >= 0x40 {
				return append(b, c)
			}
			b = append(b, c|0x80)
		}
	}
	name := func(s string) []byte { return append(uleb(len(s)), s...) }
	section := func(id byte, body []byte) []byte { return slices.Concat([]byte{id}, uleb(len(body)), body) }

	types, imports := uleb(1+len(funcs)), uleb(len(funcs))
	types = append(types, 0x60, 0, 0)
	for i, f := range funcs {
		types = append(append(types, 0x60), uleb(len(f.Params))...)
		for _, p := range f.Params {
			types = append(types, byte(p))
		}
		types = append(types, uleb(len(f.Results))...)
		for _, r := range f.Results {
			types = append(types, byte(r))
		}
		imports = slices.Concat(imports, name(f.Module), name(f.Name), []byte{0}, uleb(1+i))
	}
	var data []byte
	at := make([]int, len(phrases))
	for i, p := range phrases {
		at[i] = 1024 + len(data)
		data = append(data, p...)
	}
	code := uleb(0)
	for range calls {
		i := rnd.IntN(len(funcs))
		if funcs[i].Name == "proc_exit" || funcs[i].Name == "proc_raise" || funcs[i].Name == "poll_oneoff" {
			continue
		}
		for p := 0; p < len(funcs[i].Params); p++ {
			if strings.HasPrefix(funcs[i].Name, "path_") && p < pathAt(funcs[i].Name) {
				code = append(code, 0x41, []byte{3, 1}[p]) // the preopen, and whether to follow links
				continue
			}
			if funcs[i].Params[p] == abi.I32 && p+1 < len(funcs[i].Params) && funcs[i].Params[p+1] == abi.I32 &&
				rnd.IntN(8) > 0 {
				ptr, n := 4096+rnd.IntN(4096), 512 // room for an answer
				if k := rnd.IntN(len(phrases)); p+2 < len(funcs[i].Params) || strings.HasPrefix(funcs[i].Name, "path_") {
					ptr, n = at[k], len(phrases[k])
				}
				code = slices.Concat(code, []byte{0x41}, sleb(int64(ptr)), []byte{0x41}, sleb(int64(n)))
				p++
				continue
			}
			v := int64(rnd.IntN(8))
			if rnd.IntN(3) == 0 {
				v = int64(int32(rnd.Uint32()))
			}
			code = slices.Concat(code, []byte{0x41 + byte(abi.I32-funcs[i].Params[p])}, sleb(v))
		}
		code = slices.Concat(code, []byte{0x10}, uleb(i), bytes.Repeat([]byte{0x1a}, len(funcs[i].Results)))
	}
	code = append(code, 0x0b)
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, types), section(2, imports), section(3, []byte{1, 0}), section(5, []byte{1, 0, 1}),
		section(7, slices.Concat(uleb(2), name("_start"), []byte{0}, uleb(len(funcs)), name("memory"), []byte{2, 0})),
		section(10, slices.Concat(uleb(1), uleb(len(code)), code)),
		section(11, slices.Concat([]byte{1, 0, 0x41}, sleb(1024), []byte{0x0b}, uleb(len(data)), data)))
}

// pathAt is the place of the first path among the parameters of a function.
func pathAt(name string) int {
	switch name {
	case "path_open", "path_filestat_get", "path_filestat_set_times", "path_link":
		return 2
	case "path_symlink":
		return 0
	}
	return 1
}

// runRandom runs a random guest and says what its calls touched, on the
// components and in folder.
func runRandom(t *testing.T, folder string, seed uint64, calls int, grants ...string) (*Report, []string) {
	t.Helper()
	funcs, err := signatures()
	if err != nil {
		t.Fatal(err)
	}
	spies := &touched{}
	s := specOf(t, audit.NewMemory(), grants...)
	s.Module, s.Components = randomGuest(funcs, phrases(folder), seed, calls), spies.components()
	s.Policy.BaseLimits = caps.Limits{}.With(caps.WallTimeMS, 20_000)
	s.Stdout, s.Stderr, s.Compiler = io.Discard, io.Discard, os.Executable
	report := Launch(t.Context(), s)
	there, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range there {
		if f.Name() != "there" {
			spies.note("a file " + f.Name())
		}
	}
	if text, err := os.ReadFile(filepath.Join(folder, "there")); err != nil || string(text) != "as it was" {
		spies.note("a file changed")
	}
	return report, spies.calls
}

func randomFolder(t *testing.T) string {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "there"), []byte("as it was"), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// A guest that holds nothing has no effect, whatever it calls and however.
//
//rlp:holds P21
func FuzzGuestWithoutCapabilities(f *testing.F) {
	for seed := range uint64(12) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		report, touched := runRandom(t, randomFolder(t), seed, 500)
		if len(touched) > 0 {
			t.Errorf("seed %d touched %v", seed, touched)
		}
		if report.Usage.Allowed != 0 || report.Usage.Denied == 0 || report.Outcome != OK {
			t.Errorf("seed %d: %s, %d allowed, %d denied: %s", seed, report.Outcome, report.Usage.Allowed, report.Usage.Denied,
				report.Message)
		}
	})
}

// The same guests reach everything when they are granted it.
func TestRandomGuestsWithCapabilities(t *testing.T) {
	folder := randomFolder(t)
	seen := map[string]bool{}
	for seed := range uint64(12) {
		_, touched := runRandom(t, folder, seed, 2500,
			"kb:read:*", "kb:write:*", "network:https:*", "network:http:*", "model:use:*", "process:exec:*", "mcp:call:*",
			"agents:launch:*",
			"secrets:read:*", "time:read:*", "fs:read:"+folder, "fs:write:"+folder, "fs:delete:"+folder)
		for _, name := range touched {
			seen[name] = true
		}
	}
	for _, name := range []string{
		"get", "put", "list", "search", "send", "complete", "embed", "run", "server", "launch",
		"handle", "a file made",
	} {
		if !seen[name] {
			t.Errorf("no guest reached %q: %v", name, seen)
		}
	}
}
