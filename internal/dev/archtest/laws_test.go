package archtest

import (
	"strings"
	"testing"
	"testing/fstest"
)

// The tests below are the controls of the laws: each law complains about what
// breaks it, and about nothing else.

func TestControlDrawn(t *testing.T) {
	got := undrawn(repo(t, map[string]string{
		"caps/a.go":                 "package caps",
		"caps/deeper/a.go":          "package deeper",
		"agents/one/main.go":        "package main",
		"agents/one/two/main.go":    "package two",
		"caps/testdata/x/a.go":      "package x",
		".work/a.go":                "package x",
		"internal/dev/tools/go.mod": "module tools",
		"internal/dev/tools/a.go":   "package tools",
	}))
	var unknown []complaint
	for _, c := range got {
		if strings.HasSuffix(c.text, "not in the drawing") {
			unknown = append(unknown, c)
		}
	}
	wantComplaints(t, unknown, "drawn caps/deeper", "drawn agents/one/two")
}

func TestControlGhosts(t *testing.T) {
	files := make(map[string]string)
	for name := range packages {
		if name != "caps" {
			files[strings.ReplaceAll(name, "*", "one")+"/a.go"] = "package a"
		}
	}
	for name := range toBuild {
		delete(files, name+"/a.go")
	}
	wantComplaints(t, undrawn(repo(t, files)), "drawn caps")
	for name := range toBuild {
		files[name+"/a.go"] = "package a"
		files["caps/a.go"] = "package a"
		wantComplaints(t, undrawn(repo(t, files)), "drawn "+name)
		delete(files, name+"/a.go")
	}
}

func TestControlDoors(t *testing.T) {
	got := wrongDoors(repo(t, map[string]string{
		"caps/a.go":            `package caps; import _ "example.org/m/internal/engine/guest"`,
		"caps/a_test.go":       `package caps_test; import _ "example.org/m/caps"`,
		"hostcalls/a.go":       `package hostcalls; import _ "example.org/m/internal/engine/guest"`,
		"hostcalls/a_test.go":  `package hostcalls; import _ "example.org/m/internal/engine/guest"`,
		"hostcalls/b.go":       `package hostcalls; import _ "example.org/m/caps"`,
		"kb/a.go":              `package kb; import _ "example.org/m/nowhere"`,
		"agents/one/a.go":      `package main; import _ "example.org/m/agents/sdk"`,
		"agents/one/b.go":      `package main; import _ "example.org/m/agents/two"`,
		"secrets/a_windows.go": `package secrets; import _ "example.org/m/kb"`,
	}))
	wantComplaints(t, got,
		"door caps internal/engine/guest", "door hostcalls internal/engine/guest", "door kb nowhere",
		"door agents/* agents/*", "door secrets kb")
}

func TestControlUnusedDoors(t *testing.T) {
	files := make(map[string]string)
	add := func(from, to, ending string) {
		dir, target := strings.ReplaceAll(from, "*", "one"), strings.ReplaceAll(to, "*", "one")
		files[dir+"/"+strings.ReplaceAll(to, "/", "_")+ending] = "package a; import _ \"example.org/m/" + target + "\""
	}
	for from, r := range packages {
		for to := range r.doors {
			add(from, to, ".go")
		}
	}
	for from, tests := range testDoors {
		for to := range tests {
			add(from, to, "_in_test.go")
		}
	}
	wantComplaints(t, unusedDoors(repo(t, files)))
	delete(files, "caps/policy/caps.go")
	delete(files, "kb/journal/kb_kbtest_in_test.go")
	add("caps/policy", "caps", "_test.go")
	add("kb/journal", "kb/kbtest", ".go")
	wantComplaints(t, unusedDoors(repo(t, files)), "unused caps/policy caps", "unused kb/journal kb/kbtest")
}

func TestControlOwners(t *testing.T) {
	got := wrongOwners(repo(t, map[string]string{
		"internal/engine/guest/a.go": `package guest; import _ "github.com/tetratelabs/wazero/api"`,
		"launcher/a.go":              `package launcher; import _ "github.com/tetratelabs/wazero/api"`,
		"hostcalls/a.go":             `package hostcalls; import _ "github.com/tetratelabs/wazero"`,
		"hostcalls/a_test.go":        `package hostcalls; import _ "github.com/tetratelabs/wazero"`,
		"caps/a.go":                  `package caps; import (_ "os"; _ "golang.org/x/net/idna"; _ "golang.org/x/net/html"; _ "pgregory.net/rapid")`,
		"caps/a_test.go":             `package caps; import (_ "os"; _ "os/exec"; _ "pgregory.net/rapid"; _ "example.com/new")`,
		"bundles/a.go":               `package bundles; import _ "golang.org/x/text/unicode/norm"`,
		"kb/a.go":                    `package kb; import ("fmt"; _ "github.com/dgraph-io/badger/v4"; _ "github.com/dgraph-io/badger")`,
	}))
	wantComplaints(t, got,
		"owner launcher github.com/tetratelabs/wazero/api", "owner hostcalls github.com/tetratelabs/wazero",
		"owner caps os", "owner caps golang.org/x/net/html", "owner caps pgregory.net/rapid", "owner caps example.com/new",
		"owner kb github.com/dgraph-io/badger")
}

func TestControlEdge(t *testing.T) {
	got := edgeCalls(repo(t, map[string]string{
		"caps/a.go": `package caps
			import ("os"; clock "time"; "fmt")
			func f(w io.Writer) { os.Getenv("x"); clock.Now(); fmt.Fprintln(w); time.Now() }`,
		"caps/a_test.go": `package caps; import "os"; func f() { os.Getenv("x") }`,
		"cmd/rlp/a.go":   `package main; import "os"; func main() { os.Exit(len(os.Args)) }`,
		"kb/a.go":        `package kb; func f(g gate) { g.inner.Admit("x"); other.Base() }`,
		"hostcalls/a.go": `package hostcalls; func f(g gate) { g.Admit("x") }`,
		"cmd/rlp/b.go":   `package main; import "example.org/m/caps"; var b = caps.Base()`,
	}))
	wantComplaints(t, got, "edge caps os.Getenv", "edge caps time.Now", "edge kb .Admit", "edge cmd/rlp caps.Base")
}

func TestControlReaders(t *testing.T) {
	got := otherReaders(repo(t, map[string]string{
		"internal/base/strictjson/a.go": `package strictjson; import "encoding/json"; var _ = json.Unmarshal`,
		"kb/a_test.go":                  `package kb; import "encoding/json"; var _ = json.Unmarshal`,
		"kb/a.go":                       `package kb; import "encoding/json"; var _ = json.Marshal; var _ = json.Valid; var _ json.Unmarshaler`,
		"kb/b.go":                       `package kb; import j "encoding/json"; var _ = j.Unmarshal`,
		"caps/a.go":                     `package caps; import "github.com/x/json"; func f() { json.NewDecoder(nil) }`,
		"caps/b.go":                     `package caps; func f() { json.Unmarshal(); strictjson.Unmarshal() }`,
	}))
	wantComplaints(t, got, "json kb/b.go", "json caps/a.go")
}

func TestControlPicture(t *testing.T) {
	text := "# A\n\n| package | holds |\n|---|---|\n| `nowhere`, `caps` | x |\n"
	for name := range packages {
		if name != "kb" && !strings.HasPrefix(name, "kb/") {
			text += "| `" + name + "` | y |\n"
		}
	}
	got := picture(repo(t, map[string]string{"ARCHITECTURE.md": text + "\n| `after` |\n"}))
	wantComplaints(t, got, "picture nowhere", "picture kb", "picture kb/journal", "picture kb/wire", "picture kb/kbtest",
		"picture kb/source", "picture kb/state", "picture kb/words", "picture kb/db", "picture kb/logtest",
		"picture kb/log", "picture kb/values")
}

func TestControlTopLevel(t *testing.T) {
	got := topLevel(repo(t, map[string]string{
		"pkg/a.go": "package pkg", "cmd/other/a.go": "package main", "cmd/rlp/a.go": "package main",
		".ci/run": "", "README.md": "", "notes.txt": "",
	}))
	wantComplaints(t, got, "top pkg", "top cmd/other", "top notes.txt")
}

func TestControlNames(t *testing.T) {
	got := emptyNames(repo(t, map[string]string{
		"caps/a.go": "package caps", "internal/utils/a.go": "package x", "kb/a_test.go": "package types_test",
	}))
	wantComplaints(t, got, "name internal/utils", "name kb")
}

func TestControlInit(t *testing.T) {
	got := inits(repo(t, map[string]string{
		"caps/a.go":    "package caps; func init() {}",
		"kb/a.go":      "package kb; type T int; func (T) init() {}; func f() { init := 1; _ = init }",
		"kb/a_test.go": "package kb; func init() {}",
	}))
	wantComplaints(t, got, "init caps", "init kb")
}

func TestControlLength(t *testing.T) {
	lines := func(n int, line string) string { return strings.Repeat(line+"\n", n) }
	got := tooLong(repo(t, map[string]string{
		"a/long.go":      "package a\n" + lines(maxFileLines, "var _ = 1"),
		"a/fits.go":      "package a\n" + lines(maxFileLines-1, "var _ = 1") + lines(100, "// why\n"),
		"a/long_test.go": "package a\n" + lines(maxFileLines, "var _ = 1"),
		"a/made.go":      "// Code generated by x. DO NOT EDIT.\npackage a\n" + lines(maxFileLines, "var _ = 1"),
		"a/text.go":      "package a\nvar _ = `" + lines(maxFileLines, "") + "`",
		"a/f.go": "package a\nfunc long() {\n" + lines(maxFuncLines-1, "_ = 1") + "}\n" +
			"func (T) fits() {\n" + lines(maxFuncLines-2, "_ = 1") + lines(9, "// why\n") + "}\n" +
			"func many(a, b, c int, d, e, f string) {}\nfunc (T) five(a, b, c, d, e int) {}\n",
	}))
	wantComplaints(t, got, "lines a/long.go", "lines a/text.go", "lines a.long", "params a.many")
}

func TestControlDocs(t *testing.T) {
	got := undocumented(repo(t, map[string]string{
		"a/a.go": `// Package a has a law.
package a

func Bare() {}

// Said is said.
func Said() {}

type Type struct{}

func (*Type) Method()          {}
func (Type) String() string    { return "" }
func (private) Method()        {}
func (*Generic[T]) Method()    {}

// The words.
const (
	One = 1
	Two = 2
)

var Free, own = 1, 2

var (
	Here = 1 // what is here
	// There is there.
	There = 2
	Nowhere = 3
)

// The group's comment says nothing of each type.
type (
	Inner struct{}
	// Outer is outside.
	Outer struct{}
)
`,
		"a/b.go":      "package a\n",
		"b/a.go":      "package b\n",
		"b/a_test.go": "// Package b is only said in its test.\npackage b\nfunc TestX() {}\n",
	}))
	wantComplaints(t, got, "doc a.Bare", "doc a.Type", "doc a.Type.Method", "doc a.Generic.Method",
		"doc a.Free", "doc a.Nowhere", "doc a.Inner", "doc b")
}

func TestControlErrors(t *testing.T) {
	got := failedTo(repo(t, map[string]string{
		"a/a.go":      `package a; var a = fmt.Errorf("failed to open: %w", err)`,
		"b/a.go":      `package b; var a = errors.New("opening: could not read")`,
		"c/a.go":      `package c; var a = fmt.Errorf("opening %s: %w", name, err)`,
		"d/a_test.go": `package d; var a = errors.New("failed to open")`,
	}))
	wantComplaints(t, got, "error a/a.go", "error b/a.go")
}

func TestControlIdleTests(t *testing.T) {
	got := idleTests(repo(t, map[string]string{
		"a/a_test.go": `package a
			func TestSkips(t *testing.T) { t.Skip() }
			func helper(tb testing.TB) { if x { tb.Skipf("y") } }
			func TestSleeps(t *testing.T) { time.Sleep(1) }
			func FuzzX(f *testing.F) { f.Fuzz(func(t *testing.T) { t.Skip() }) }
			func TestBubble(t *testing.T) { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }
			func TestWorks(t *testing.T) { w.Sleep(1); t.Log("Skip") }`,
		"a/a.go": `package a; func f() { time.Sleep(1) }`,
	}))
	wantComplaints(t, got, "skip a.TestSkips", "skip a.helper", "sleep a.TestSleeps")
}

func TestControlVars(t *testing.T) {
	got := mutableVars(repo(t, map[string]string{
		"a/fine.go": `package a
			import ("errors"; "regexp"; "sync"; _ "embed"; "example.org/m/b")
			var ErrX = errors.New("x")
			var errY = &Fail{}
			var pattern = regexp.MustCompile("x")
			var table = map[string]int{"a": 1}
			var rows = [...]row{{1}, {2}}
			var lazy = sync.OnceValue(func() int { return 1 })
			var _ I = (*T)(nil)
			//go:embed x.txt
			var text string
			type row struct{ n int }
			func read(i int) *row { n := table["a"]; n++; return &rows[i] }
			func shadow() { table := map[string]int{}; table["a"] = 2; rows := 1; rows++; b := T{}; b.X = 1 }
			func field(t T) { t.table = nil }`,
		"a/broken.go": `package a
			import ("sync"; "sync/atomic"; b "example.org/m/b")
			var unset int
			var mu sync.Mutex
			var pool = sync.Pool{}
			var gauge atomic.Int64
			var made = make(map[string]int)
			var pointer = &row{1}
			var assigned = 1
			var counted = 1
			var indexed = map[string]int{}
			var emptied = map[string]int{}
			var fielded = row{1}
			var lent = row{1}
			var ranged = 0
			func f() {
				assigned = 2
				counted++
				indexed["a"] = 1
				clear(emptied)
				fielded.n = 2
				use(&lent)
				for ranged = range 3 {}
				b.Table["x"] = 1
				b.Count++
			}`,
		"a/a_test.go": `package a; var seen int; func g() { seen = 1 }`,
		"b/b.go":      `package b; var Table = map[string]int{"a": 1}; var Count = 1`,
	}))
	want := []string{"var a.b.Table", "var a.b.Count", "var a.mu", "var a.gauge"}
	for _, name := range []string{
		"unset", "pool", "made", "pointer", "assigned", "counted", "indexed", "emptied",
		"fielded", "lent", "ranged",
	} {
		want = append(want, "var a."+name)
	}
	wantComplaints(t, got, want...)
}

func TestLoadRefuses(t *testing.T) {
	for name, fsys := range map[string]fstest.MapFS{
		"no go.mod":   {},
		"no module":   {"go.mod": {Data: []byte("go 1.26\n")}},
		"broken file": mapFS(map[string]string{"a/a.go": "package"}),
	} {
		if _, err := load(fsys); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
}
