package agents

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	source "runloop.dev/rlp/agents"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/engine/abi"
)

// The page for authors, the SDK of each language and the calls of the host are one
// interface: the calls are its source.
//
//rlp:holds D5
func TestOneInterface(t *testing.T) {
	page := readText(t, os.ReadFile, "../../docs/agents.md")
	header := readText(t, source.Text.ReadFile, "sdk/c/runloop.h")
	module := readText(t, source.Text.ReadFile, "sdk/rust/runloop.rs")
	imports := readText(t, source.Text.ReadFile, "sdk/imports.go")
	rows := tableOf(page)
	var signatures strings.Builder
	for i, f := range hostcalls.Signatures() {
		im := hostcalls.Imports()[i]
		if im.Name != f.Name {
			t.Fatalf("import %d is %s, and its signature that of %s", i, im.Name, f.Name)
		}
		fmt.Fprintf(&signatures, "    %-14s (%s) -> %s\n", f.Name, typeNames(f.Params), typeNames(f.Results))
		needs := ""
		if im.Gated {
			needs = "`" + im.Family.String() + "`"
		}
		row, ok := rows[f.Name]
		if want := len(f.Params)/2 - 1; !ok || f.Name != "response_read" && row.args != want || row.needs != needs {
			t.Errorf("docs/agents.md has %+v of %s, which takes %d arguments and needs %q", row, f.Name, want, needs)
		}
		delete(rows, f.Name)
		for file, text := range map[string][2]string{
			"runloop.h": {header, "RL_IMPORT(" + f.Name + ") "}, "runloop.rs": {module, "\n    " + f.Name + "("},
			"imports.go": {imports, "//go:wasmimport runloop_v1 " + f.Name + "\n"},
		} {
			if !strings.Contains(text[0], text[1]) {
				t.Errorf("%s does not import %s", file, f.Name)
			}
		}
	}
	if !strings.Contains(page, "\n\n"+signatures.String()+"\n") {
		t.Errorf("docs/agents.md has other signatures than\n%s", signatures.String())
	}
	for name := range rows {
		t.Errorf("docs/agents.md has a row for %s, which the host has not", name)
	}
}

func readText(t *testing.T, read func(string) ([]byte, error), name string) string {
	t.Helper()
	text, err := read(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A row says how many arguments a call takes and what it needs.
type row struct {
	args  int
	needs string
}

var (
	importRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|([^|]*)\\|[^|]*\\|([^|]*)\\|$")
	details   = regexp.MustCompile("`[^`]*`|\\([^)]*\\)")
)

// tableOf reads the table of imports of the page for authors.
func tableOf(page string) map[string]row {
	_, page, _ = strings.Cut(page, "| import | arguments |")
	page, _, _ = strings.Cut(page, "\n\n")
	rows := map[string]row{}
	for _, m := range importRow.FindAllStringSubmatch(page, -1) {
		r := row{needs: strings.TrimSpace(m[3])}
		if args := strings.TrimSpace(details.ReplaceAllString(m[2], "")); args != "" {
			r.args = strings.Count(args, ",") + 1
		}
		rows[m[1]] = r
	}
	return rows
}

func typeNames(types []abi.Type) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = map[abi.Type]string{abi.I32: "i32", abi.I64: "i64"}[t]
	}
	return strings.Join(names, " ")
}
