package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/agents/sdk"
	"runloop.dev/rlp/agents/sdk/sdktest"
)

// echo answers model_complete as local:echo does.
func echo(h *sdktest.Host) {
	h.Handle("model_complete", func(args []string) ([]byte, error) {
		var req sdk.CompletionRequest
		if err := json.Unmarshal([]byte(args[0]), &req); err != nil {
			return nil, err
		}
		return json.Marshal(sdk.Completion{
			Text: req.Messages[len(req.Messages)-1].Content, Model: req.Model, Usage: sdk.Usage{TokensIn: 5, TokensOut: 4},
		})
	})
}

func host(t *testing.T) *sdktest.Host {
	h := sdktest.New(t)
	echo(h)
	for key, value := range map[string]string{
		"<email:bcdfghjkmnpq>": `{"name":"<name:bcdfghjkmnpq>","email":"<email:bcdfghjkmnpq>"}`,
		"c2":                   `{"name":"Ada\nByron","email":"ada@example.org"}`,
		"c3":                   `{"name":"nobody"}`, "c4": `not JSON`,
	} {
		if _, err := sdk.KBPut("contacts", key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// Each contact with an address gets one draft, which holds what the agent saw,
// and a second run makes none.
func TestDrafts(t *testing.T) {
	h := host(t)
	j, err := parseJob([]byte(`{"about":"The lights are back.\nCome and see."}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := run(j), "2 drafts written, 0 there before, 2 contacts without an address, 18 tokens\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	masked, _ := h.Value("drafts", j.draftKey(contact{key: "<email:bcdfghjkmnpq>"}))
	want := `{"state":"draft","contact":"<email:bcdfghjkmnpq>","to":"<email:bcdfghjkmnpq>","recipient":"<name:bcdfghjkmnpq>","subject":"The lights are back.",` +
		`"text":"Dear <name:bcdfghjkmnpq>,\n\nThe lights are back.\nCome and see.\n\nKind regards","model":"local:echo"}`
	if string(masked) != want {
		t.Errorf("draft\n got %s\nwant %s", masked, want)
	}
	named, _ := h.Value("drafts", j.draftKey(contact{key: "c2"}))
	if !strings.Contains(string(named), `"Dear Ada Byron,\n`) {
		t.Errorf("draft %s", named)
	}
	for _, k := range h.Keys("drafts", "") {
		if !strings.HasPrefix(k, "mail-") || len(k) != 21 {
			t.Errorf("key %q", k)
		}
	}
	if got := run(j); !strings.HasPrefix(got, "0 drafts written, 2 there before") {
		t.Errorf("again: %q", got)
	}
	if string(h.Result) != `{"drafted":0,"before":2,"skipped":2,"tokens":18,"problems":[]}` {
		t.Errorf("result %s", h.Result)
	}
}

// What is refused is said, and asked once.
func TestRefusals(t *testing.T) {
	j := job{about: "x", model: defaultModel}
	for _, c := range []struct {
		op, arg, want string
		calls         int
	}{
		{"none (control)", "", "2 drafts written", 2},
		{"kb_list", "contacts", "could not list the contacts: denied (domain_not_permitted)", 0},
		{"kb_get", "contacts", "could not write to <email:bcdfghjkmnpq>: denied (domain_not_permitted)", 0},
		{"model_complete", "", "denied (domain_not_permitted)", 1},
		{"kb_cas", "drafts", "denied (domain_not_permitted)", 1},
	} {
		h := host(t)
		h.Deny(c.op, c.arg, &sdk.Error{Op: c.op, Errno: sdk.ErrDenied, Reason: "domain_not_permitted"})
		got := run(j)
		calls := 0
		for _, call := range h.Calls {
			if call.Op == "model_complete" {
				calls++
			}
		}
		if !strings.Contains(got, c.want) || calls != c.calls {
			t.Errorf("%s: %d calls of the model, %q", c.op, calls, got)
		}
	}
}

func TestJobs(t *testing.T) {
	for _, in := range []string{``, `{}`, `[]`, `{"about":" "}`, `{"about":"x","to":"y"}`, `{"about":"x"}{}`} {
		if j, err := parseJob([]byte(in)); err == nil {
			t.Errorf("%q: %+v", in, j)
		}
	}
	j, err := parseJob([]byte(`{"about":"x","model":"m","prefix":"p"}`))
	if err != nil || j != (job{"x", "p", "m"}) {
		t.Errorf("%+v %v", j, err)
	}
	if got := (job{about: strings.Repeat("ä", 100)}).subject(); len([]rune(got)) != 78 {
		t.Errorf("subject of %d", len([]rune(got)))
	}
}

// moduleMax is the largest that the module may be, in bytes.
const moduleMax = 4 << 20

// The module can do what its policy asks for and nothing else: no network, no
// secrets, no reading of drafts but what kb_get reads.
func TestModuleImports(t *testing.T) {
	module := sdktest.Build(t, ".")
	if len(module) > moduleMax {
		t.Errorf("the module has %d bytes, more than %d", len(module), moduleMax)
	}
	imports, err := sdktest.Imports(module)
	if err != nil {
		t.Fatal(err)
	}
	names := sdktest.Names(imports)
	slices.Sort(names)
	want := []string{"kb_cas", "kb_get", "kb_list", "model_complete", "response_read", "result"}
	for i := range want {
		want[i] = "runloop_v1." + want[i]
	}
	if !slices.Equal(names, want) {
		t.Errorf("imports %v, want %v", names, want)
	}
	policy, err := os.ReadFile("policy.caps")
	if err != nil || strings.Contains(string(policy), "_raw") {
		t.Errorf("the policy asks for more than masks (%v)", err)
	}
}
