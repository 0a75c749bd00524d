package sdk_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/agents/sdk/sdktest"
)

// contract is the guest interface: each import and how many (ptr, len) pairs it
// takes before the output pair.
var contract = map[string]int{
	"net_http": 2, "kb_get": 2, "kb_put": 3, "kb_cas": 4, "kb_delete": 2, "kb_list": 2, "kb_search": 2,
	"secret_handle": 1, "model_complete": 1, "model_embed": 1, "exec_run": 2, "mcp_call": 1, "agent_launch": 1,
	"turn_next": 0, "time_now": 0, "log": 2, "result": 1,
}

func wasmType(name string) string {
	if name == "response_read" {
		return "i32 i32 -> i32"
	}
	return strings.Repeat("i32 i32 ", contract[name]+1) + "-> i64"
}

// A module that calls everything imports the whole interface and nothing else,
// with the types of the contract.
func TestEveryImportHasTheContractsType(t *testing.T) {
	imports, err := sdktest.Imports(sdktest.Build(t, "testdata/all"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, i := range imports {
		switch i.Module {
		case "runloop_v1":
			got[i.Name] = i.Type
		case "wasi_snapshot_preview1":
		default:
			t.Errorf("imports %s.%s", i.Module, i.Name)
		}
	}
	want := map[string]string{"response_read": wasmType("response_read")}
	for name := range contract {
		want[name] = wasmType(name)
	}
	if !maps.Equal(got, want) {
		t.Errorf("imports\n got %v\nwant %v", got, want)
	}
}

// A module that calls one function imports that one (and what reads long
// responses): what it could ever do is what it calls.
func TestUnusedImportsAreDropped(t *testing.T) {
	imports, err := sdktest.Imports(sdktest.Build(t, "testdata/one"))
	if err != nil {
		t.Fatal(err)
	}
	got := sdktest.Names(imports)
	slices.Sort(got)
	if want := []string{"runloop_v1.kb_get", "runloop_v1.response_read"}; !slices.Equal(got, want) {
		t.Errorf("imports %v, want %v", got, want)
	}
}

// The native stand-ins have the names and the signatures of the imports.
func TestNativeStandInsMatchImports(t *testing.T) {
	imports, native := signatures(t, "imports.go"), signatures(t, "imports_native.go")
	if len(imports) != len(contract)+1 {
		t.Errorf("%d imports declared, want %d", len(imports), len(contract)+1)
	}
	if !maps.Equal(imports, native) {
		t.Errorf("signatures differ:\n guest  %v\n native %v", imports, native)
	}
}

// The table for authors names every import and every function that reaches one,
// and the program above it builds.
func TestREADME(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	calls := regexp.MustCompile("(?m)^\\| (`[^|]*`) \\| `([a-z_]+)` \\|").FindAllStringSubmatch(string(text), -1)
	listed := map[string]bool{}
	for _, row := range calls {
		listed[row[2]] = true
	}
	if len(calls) != len(contract) || len(listed) != len(contract) {
		t.Errorf("%d rows of %d imports, want %d", len(calls), len(listed), len(contract))
	}
	for name := range contract {
		if !listed[name] {
			t.Errorf("%s is not listed", name)
		}
	}
	_, program, _ := strings.Cut(string(text), "```go\n")
	program, _, _ = strings.Cut(program, "```")
	dir := filepath.Join("testdata", "readme")
	if got, err := os.ReadFile(filepath.Join(dir, "main.go")); err != nil || string(got) != program {
		t.Errorf("testdata/readme/main.go is not the program of README.md (%v)", err)
	}
	imports, err := sdktest.Imports(sdktest.Build(t, dir))
	if names := sdktest.Names(imports); err != nil || !slices.Contains(names, "runloop_v1.kb_put") {
		t.Errorf("imports %v, %v", names, err)
	}
}

func signatures(t *testing.T, file string) map[string]string {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, d := range tree.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		var params []string
		for _, p := range f.Type.Params.List {
			for _, name := range p.Names {
				params = append(params, name.Name)
			}
		}
		all[f.Name.Name] = strings.Join(params, " ")
	}
	return all
}

func TestImportsRefusesWhatIsNoModule(t *testing.T) {
	head := "\x00asm\x01\x00\x00\x00"
	for _, in := range []string{
		"", "\x00asm", head + "\x01", head + "\x01\x05\x01", head + "\x01\xff\xff\xff\xff\x0f",
		head + "\x02\x06\x01\x01m\x01n\x00", head + "\x02\xff\xff\xff\xff\xff\xff",
	} {
		if list, err := sdktest.Imports([]byte(in)); err == nil {
			t.Errorf("%q: read as %v", in, list)
		}
	}
}
