package archtest

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// The sizes beyond which a part of the design is several.
const (
	maxPackageLines = 6000 // of all kinds, without tests
	maxMethods      = 40   // of one type
	maxCircle       = 8    // files of a package that all use each other, directly or not
)

// shrinking are the parts that are larger, each with its size. An entry only
// becomes smaller: the tests fail when the part grows, and when its entry could
// be lower by a tenth.
var shrinking = map[string]int{
	"lines of cmd/rlp": 7900,

	"files in a circle of bundles":                      14,
	"files in a circle of caps":                         14,
	"files in a circle of internal/effect/lane/sandbox": 10,
	"files in a circle of internal/engine/guest":        24,
	"files in a circle of internal/serve/mcpserver":     13,
	"files in a circle of internal/serve/service":       16,
	"files in a circle of launcher/compose":             36,
}

// outsized returns the parts that are too large, with the size of each.
func outsized(t *tree) map[string]int {
	found := make(map[string]int)
	for _, s := range t.sizes() {
		if n := s.lines(); n > maxPackageLines {
			found["lines of "+s.name] = n
		}
		if s.circle > maxCircle {
			found["files in a circle of "+s.name] = s.circle
		}
		for name, n := range s.methods {
			if n > maxMethods {
				found["methods of "+s.name+"."+name] = n
			}
		}
	}
	return found
}

// TestLargePartsShrink holds what is too large against its entry.
func TestLargePartsShrink(t *testing.T) {
	h, err := project()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range growth(outsized(h), shrinking) {
		t.Error(text)
	}
}

// growth compares the sizes of what is too large with their entries.
func growth(sizes, entries map[string]int) []string {
	var found []string
	for what, n := range sizes {
		switch most, ok := entries[what]; {
		case !ok:
			found = append(found, fmt.Sprintf("%s: %d is too large", what, n))
		case n > most:
			found = append(found, fmt.Sprintf("%s: %d, and it may only shrink from %d", what, n, most))
		case n < most-most/10:
			found = append(found, fmt.Sprintf("%s: %d: lower its entry %d", what, n, most))
		}
	}
	for what := range entries {
		if sizes[what] == 0 {
			found = append(found, what+": is not too large any more: take its entry out")
		}
	}
	return found
}

func TestControlGrowth(t *testing.T) {
	method := func(n int) string { return fmt.Sprintf("func (*T) m%d() {}\n", n) }
	text := "package a\ntype T int\n"
	for n := range maxMethods {
		text += method(n)
	}
	files := map[string]string{
		"a/a.go": text, "a/a_test.go": "package a\n" + method(100) + strings.Repeat("\n", maxPackageLines),
		"b/a.go": strings.ReplaceAll(text, "package a", "package b"), "b/b.go": "package b\n" + method(100),
		"c/a.go": "package c\n" + strings.Repeat("// c\n", maxPackageLines/2), "c/b.go": "package c\n" +
			strings.Repeat("// c\n", maxPackageLines/2-1),
	}
	for name, n := range map[string]int{"d": maxCircle, "e": maxCircle + 1} {
		for i := range n {
			files[fmt.Sprintf("%s/%d.go", name, i)] = fmt.Sprintf("package %s\nfunc f%d() { f%d() }\n", name, i, (i+1)%n)
		}
	}
	got := outsized(repo(t, files))
	want := map[string]int{
		"methods of b.T": maxMethods + 1, "lines of c": maxPackageLines + 1, "files in a circle of e": maxCircle + 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("too large are %v, want %v", got, want)
	}
	for _, tc := range []struct {
		size, entry int
		complains   bool
	}{{0, 0, false}, {50, 0, true}, {50, 49, true}, {50, 50, false}, {50, 55, false}, {50, 57, true}, {0, 50, true}} {
		sizes, entries := map[string]int{}, map[string]int{}
		if tc.size > 0 {
			sizes["x"] = tc.size
		}
		if tc.entry > 0 {
			entries["x"] = tc.entry
		}
		if got := growth(sizes, entries); len(got) > 0 != tc.complains {
			t.Errorf("%d with an entry of %d: %q", tc.size, tc.entry, got)
		}
	}
}

// TestSizesStandInThePage fails when the table of ARCHITECTURE.md lacks a
// package, has one that is gone, or tells of one that is half as large again.
func TestSizesStandInThePage(t *testing.T) {
	h, err := project()
	if err != nil {
		t.Fatal(err)
	}
	page, err := fs.ReadFile(h.root, "ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range stale(string(page), h.sizes()) {
		t.Errorf("%s: go run ./internal/dev/archtest/sizes -w", text)
	}
}

var sizeRow = regexp.MustCompile("(?m)^\\| `(.*?)` \\| \\d+ \\| (\\d+) \\|")

// stale compares the packages and lines of a page with those of the tree.
func stale(page string, sizes []size) []string {
	told := make(map[string]int)
	for _, m := range sizeRow.FindAllStringSubmatch(page, -1) {
		told[m[1]], _ = strconv.Atoi(m[2])
	}
	delete(told, "all")
	var found []string
	for _, s := range sizes {
		lines, ok := told[s.name]
		if off := max(lines, s.lines()) - min(lines, s.lines()); !ok || off > 300 && 2*off > lines {
			found = append(found, fmt.Sprintf("%s has %d lines, the page says %d", s.name, s.lines(), lines))
		}
		delete(told, s.name)
	}
	for name := range told {
		found = append(found, name+" is gone")
	}
	return found
}

func TestControlStale(t *testing.T) {
	page := "| `a` | 3 | 1000 | x |\n| `b` | 3 | 100 | x |\n| `c` | 1 | 1 | x |\n| `all` | 1 | 1 |\n"
	a, b, d := size{name: "a", files: []int{1501}}, size{name: "b", files: []int{399}}, size{name: "d", files: []int{1}}
	if got := stale(page, []size{a, b, d}); len(got) != 3 {
		t.Errorf("%q, want a, c and d", got)
	}
	a.files[0]--
	if got := stale(page, []size{a, b, {name: "c", files: []int{1}}}); len(got) != 0 {
		t.Errorf("%q, want none", got)
	}
}

func TestSizesTable(t *testing.T) {
	fsys := mapFS(map[string]string{
		"a/a.go": "package a\n\n// F calls g.\nfunc F(a, b int) {\n\tg() // twice\n\n\tg()\n}\n\nfunc (T) M() {}\n",
		"a/b.go": "package a\n\ntype T int\n\ntype U int\n\nconst C, d = 1, 2\n\nfunc g() { F(1, 2) }\n",
		"a/c.go": "package a\n\nvar _ = d\n", "a/made.go": "// Code generated by x. DO NOT EDIT.\npackage a\n",
		"a/a_test.go": "package a\n\n\n\n\n\n\n\n\n\n\n", "b/b_test.go": "package b\n",
	})
	table, err := Sizes(fsys)
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(table, "| *known")
	_, rows, _ = strings.Cut(rows, "\n")
	want := "a` | 3 | 22 | 9 / 10 | 3 | 1 / 4 | 2 | 4 | 1 | 2 | 9 % | 0.5 |\n"
	if want = "| `" + want + "| `" + strings.Replace(want, "a`", "all`", 1); rows != want {
		t.Errorf("the table is\n%s, want\n%s", rows, want)
	}
	page, err := WithSizes("before\n"+sizesBegin+"old\n"+sizesEnd+"after\n", table)
	if err != nil || page != "before\n"+sizesBegin+"\n"+table+"\n"+sizesEnd+"after\n" {
		t.Errorf("the page is %q, %v", page, err)
	}
	if _, err := WithSizes("before\n"+sizesEnd, table); err == nil {
		t.Error("a page without a place for the table has one")
	}
	if _, err := Sizes(fstest.MapFS{}); err == nil {
		t.Error("what is no repository has sizes")
	}
}
