package agents

import (
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/engine/guest"
)

// A draft grants nothing, names each family of which a call is imported, and is a
// policy that grants each of them once its comments are taken away.
func TestDraft(t *testing.T) {
	imports := []guest.Import{
		{Module: "wasi_snapshot_preview1", Name: "path_open"},
		{Module: "wasi_snapshot_preview1", Name: "fd_write"},
		{Module: "wasi_snapshot_preview1", Name: "environ_get"},
	}
	for _, im := range hostcalls.Imports() {
		imports = append(imports, guest.Import{Module: im.Module, Name: im.Name})
	}
	text, keys := draft("x.wasm", imports)
	if len(keys) != int(caps.NumFamilies) {
		t.Errorf("drafted %v, want every family", keys)
	}
	if n := granted(t, text); n != 0 {
		t.Errorf("the draft grants %d families:\n%s", n, text)
	}
	var open strings.Builder
	for line := range strings.Lines(text) {
		if grant, ok := strings.CutPrefix(line, "# "); ok && strings.Contains(line, " = ") {
			line = grant
		}
		open.WriteString(line)
	}
	if n := granted(t, open.String()); n != int(caps.NumFamilies) {
		t.Errorf("without # it grants %d families, want %d:\n%s", n, caps.NumFamilies, open.String())
	}
	for _, want := range []string{"# It imports kb_get, kb_list, kb_search.\n# kb_read = ", "# It imports path_open of WASI"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}

	text, keys = draft("x.wasm", []guest.Import{{Module: hostcalls.ImportModule, Name: "log"}})
	if len(keys) != 0 || !strings.Contains(text, "# It imports nothing that needs a capability.") {
		t.Errorf("%v:\n%s", keys, text)
	}
}

// granted is how many families a policy grants something of.
func granted(t *testing.T, text string) int {
	t.Helper()
	p, findings := policy.ParseBase("policy.caps", []byte(text), policy.Options{})
	for _, f := range findings {
		t.Errorf("%s\n%s", f, text)
	}
	families := map[caps.Family]bool{}
	for _, e := range p.Entries {
		families[e.Grant.Family] = true
	}
	return len(families)
}
