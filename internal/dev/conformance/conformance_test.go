package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestTableIsUpToDate fails when docs/conformance.md is not what the
// annotations make of it.
func TestTableIsUpToDate(t *testing.T) {
	if err := run("../../..", true); err != nil {
		t.Fatal(err)
	}
}

// rowsOfTests are the rows that the tests below may name.
var rowsOfTests = []row{{"R1", "one"}, {"R2", "two"}, {"K3", "three"}}

const testHeader = "package p\n\nimport \"testing\"\n\n"

func TestScan(t *testing.T) {
	files := map[string]string{
		"caps/a_test.go": testHeader +
			"// TestB says what it does.\n//\n//rlp:holds R2 R1\nfunc TestB(t *testing.T) {}\n\n" +
			"//rlp:holds R1\nfunc TestA(t *testing.T) {}\n\n" +
			"//rlp:holds R1\n//rlp:holds K3\nfunc FuzzC(f *testing.F) {}\n\n" +
			"//rlp:holds K3\nfunc Benchmark(b *testing.B) {}\n",
		"caps/a.go":                            "package p\n\n// Foo holds nothing.\nfunc Foo() {}\n",
		"cmd/rlp/script_test.go":               "package main\n\nvar _ = testscript.Params{Dir: \"testdata/script\"}\n",
		"cmd/rlp/testdata/script/launch.txtar": "# holds: R2\nexec rlp\n-- a --\n# holds: nothing here\n",
		"cmd/rlp/testdata/other/x.txtar":       "# holds: R9\n",
		"caps/testdata/b_test.go":              testHeader + "//rlp:holds R9\nfunc TestB(t *testing.T) {}\n",
		"internal/dev/tools/go.mod":            "module tools\n",
		"internal/dev/tools/a_test.go":         testHeader + "//rlp:holds R9\nfunc TestB(t *testing.T) {}\n",
		".work/b_test.go":                      testHeader + "//rlp:holds R9\nfunc TestB(t *testing.T) {}\n",
	}
	held, err := scan(tree(files), rowsOfTests)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"R1": "p.FuzzC p.TestA p.TestB",
		"R2": "p.TestB script launch",
		"K3": "p.Benchmark p.FuzzC",
	}
	for id, names := range want {
		var have []string
		for _, h := range held[id] {
			have = append(have, h.name)
		}
		if strings.Join(have, " ") != names {
			t.Errorf("row %s is held by %q, want %q", id, have, names)
		}
	}
	if len(held) != len(want) {
		t.Errorf("rows held: %v", held)
	}
}

func TestScanRefuses(t *testing.T) {
	const body = "func TestA(t *testing.T) {}\n"
	cases := map[string]struct{ file, text, want string }{
		"unknown row":        {"a_test.go", "//rlp:holds R9\n" + body, `no row "R9"`},
		"row twice":          {"a_test.go", "//rlp:holds R1 R1\n" + body, "R1 is named twice"},
		"comma":              {"a_test.go", "//rlp:holds R1, R2\n" + body, `no row "R1,"`},
		"no rows":            {"a_test.go", "//rlp:holds\n" + body, "want"},
		"blanks for rows":    {"a_test.go", "//rlp:holds  \n" + body, "want"},
		"space before":       {"a_test.go", "// rlp:holds R1\n" + body, "want"},
		"other case":         {"a_test.go", "//RLP:Holds R1\n" + body, "want"},
		"blank line between": {"a_test.go", "//rlp:holds R1\n\n" + body, "above no test"},
		"inside":             {"a_test.go", "func TestA(t *testing.T) {\n\t//rlp:holds R1\n}\n", "above no test"},
		"helper":             {"a_test.go", "//rlp:holds R1\nfunc helper(t *testing.T) {}\n", "above no test"},
		"not run: case":      {"a_test.go", "//rlp:holds R1\nfunc Testify(t *testing.T) {}\n", "above no test"},
		"not run: params":    {"a_test.go", "//rlp:holds R1\nfunc TestA(t *testing.T, n int) {}\n", "above no test"},
		"not run: method":    {"a_test.go", "//rlp:holds R1\nfunc (s S) TestA(t *testing.T) {}\n", "above no test"},
		"not run: kind":      {"a_test.go", "//rlp:holds R1\nfunc FuzzA(t *testing.T) {}\n", "above no test"},
		"type":               {"a_test.go", "//rlp:holds R1\ntype T struct{}\n", "above no test"},
		"not a test file":    {"a.go", "//rlp:holds R1\n" + body, "above no test"},
		"other system":       {"a_windows_test.go", "//rlp:holds R1\n" + body, "does not build"},
		"syntax":             {"a_test.go", "//rlp:holds R1\nfunc (", "expected"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := scan(tree(map[string]string{"caps/" + c.file: testHeader + c.text}), rowsOfTests)
			wantError(t, err, c.want, "caps/"+c.file+":")
		})
	}
}

func TestScanRefusesTags(t *testing.T) {
	text := "//go:build soak\n\n" + testHeader + "//rlp:holds R1\nfunc TestA(t *testing.T) {}\n"
	_, err := scan(tree(map[string]string{"a_test.go": text}), rowsOfTests)
	wantError(t, err, "does not build", "a_test.go:7")
}

func TestScanRefusesScripts(t *testing.T) {
	runner := "package main\n\nvar _ = testscript.Params{Dir: \"testdata/script\"}\n"
	cases := map[string]struct{ runner, text, want string }{
		"unknown row": {runner, "# holds: R9\n", `no row "R9"`},
		"no colon":    {runner, "# holds R1\n", "want"},
		"no rows":     {runner, "# holds:\n", "want"},
		"no blank":    {runner, "#holds: R1\n", "want"},
		"nobody runs": {"package main\n", "# holds: R1\n", "no test of cmd/rlp runs"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := scan(tree(map[string]string{
				"cmd/rlp/x_test.go":         c.runner,
				scriptDir + "/launch.txtar": c.text,
			}), rowsOfTests)
			wantError(t, err, c.want, scriptDir+"/launch.txtar:1")
		})
	}
}

// Everything that is wrong is said at once.
func TestScanJoinsRefusals(t *testing.T) {
	_, err := scan(tree(map[string]string{
		"a/a_test.go": testHeader + "//rlp:holds R8\nfunc TestA(t *testing.T) {}\n",
		"b/b_test.go": testHeader + "//rlp:holds R1\n",
	}), rowsOfTests)
	wantError(t, err, "R8", "a/a_test.go")
	wantError(t, err, "above no test", "b/b_test.go")
}

func TestParseRows(t *testing.T) {
	rows, err := parseRows("R1\tone\nC22\ttwo\n", "rows")
	if err != nil || !slices.Equal(rows, []row{{"R1", "one"}, {"C22", "two"}}) {
		t.Fatalf("rows %v, error %v", rows, err)
	}
	for _, text := range []string{
		"", "R1", "R1 one", "R1\t", "R0\tone", "R01\tone", "r1\tone", "Z1\tone", "R1\ta|b", "R1\ta\tb",
		"R1\tone\n\nR2\ttwo", "R1\tone\nR1\ttwo",
	} {
		if rows, err := parseRows(text, "rows"); err == nil || !strings.HasPrefix(err.Error(), "rows:") {
			t.Errorf("parseRows(%q) = %v, error %v", text, rows, err)
		}
	}
}

func TestRender(t *testing.T) {
	held := map[string][]holder{"R2": {{"caps.TestA", "caps/a_test.go"}, {"script x", "s/x.txtar"}}}
	got := string(render(rowsOfTests, held, map[string]string{"K3": "Plan 9"}))
	for _, line := range []string{
		"| R | 2 | 1 | 0 | 1 |",
		"| K | 1 | 0 | 1 | 0 |",
		"| R1 | one | open |",
		"| R2 | two | [caps.TestA](../caps/a_test.go), [script x](../s/x.txtar) |",
		"| K3 | three | unsupported: Plan 9 |",
	} {
		if !strings.Contains(got, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, got)
		}
	}
}

// What is said to be unsupported is a row, and one that nothing holds.
func TestUnsupported(t *testing.T) {
	held := map[string][]holder{"R2": {{"caps.TestA", "caps/a_test.go"}}}
	for id, ok := range map[string]bool{"R1": true, "R2": false, "R9": false} {
		where, err := unsupportedOf([]row{{id, "Plan 9"}}, "file", rowsOfTests, held)
		if (err == nil) != ok || ok && where[id] != "Plan 9" {
			t.Errorf("%s: %v, %v", id, where, err)
		}
	}
}

// A row of the file appears in the document, whatever its letter.
func TestEveryLetterHasATable(t *testing.T) {
	rows, err := readRows("../../../docs/rows.tsv")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(render(rows, nil, nil))
	for _, r := range rows {
		if strings.Count(doc, "\n| "+r.id+" | ") != 1 {
			t.Errorf("row %s is not in the document exactly once", r.id)
		}
	}
}

func TestRunWritesAndChecks(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "docs", "rows.tsv"), "R1\tone\n")
	if err := run(root, true); !errors.Is(err, errStale) {
		t.Fatalf("check of a tree without a table: %v", err)
	}
	if err := run(root, false); err != nil {
		t.Fatal(err)
	}
	if err := run(root, true); err != nil {
		t.Fatalf("check after writing: %v", err)
	}
	write(t, filepath.Join(root, "a_test.go"), testHeader+"//rlp:holds R1\nfunc TestA(t *testing.T) {}\n")
	if err := run(root, true); !errors.Is(err, errStale) {
		t.Fatalf("check after a new annotation: %v", err)
	}
}

// FuzzScanGo looks for sources that make the reader panic, or hold a row
// without the directive being in them.
func FuzzScanGo(f *testing.F) {
	f.Add(testHeader + "//rlp:holds R1\nfunc TestA(t *testing.T) {}\n")
	f.Add("package p\n/*rlp:holds R1*/")
	f.Fuzz(func(t *testing.T, src string) {
		found, _ := scanGo("a_test.go", []byte(src))
		for _, h := range found {
			if !strings.Contains(strings.ReplaceAll(src, "\r", ""), goMark+" ") || len(h.ids) == 0 {
				t.Errorf("%v from %q", h, src)
			}
		}
	})
}

func tree(files map[string]string) fstest.MapFS {
	m := make(fstest.MapFS)
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want %q in it", err, part)
		}
	}
}
