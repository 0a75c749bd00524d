package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"slices"
	"strings"
)

// A size says how large one package is. Tests are counted in tests alone.
type size struct {
	name       string
	files      []int // lines of each file
	functions  []int // lines of code of each function
	parameters []int // of each function
	exported   int   // names of the package itself: no methods, no fields
	methods    map[string]int
	comments   int // lines
	tests      int // lines
	circle     int // files that all use each other, directly or not
}

// lines returns the lines of all files.
func (s size) lines() int { return sum(s.files) }

// sizes measures each package, in the order of their names.
func (t *tree) sizes() []size {
	byName := make(map[string]*size)
	for _, f := range t.files {
		s := byName[f.pkg]
		if s == nil {
			s = &size{name: f.pkg, methods: make(map[string]int)}
			byName[f.pkg] = s
		}
		switch lines := strings.Count(string(f.src), "\n"); {
		case f.isTest:
			s.tests += lines
		case !generated.Match(f.src):
			s.files = append(s.files, lines)
			s.add(t, f)
		}
	}
	var all []size
	for _, s := range byName {
		if len(s.files) > 0 {
			s.circle = t.largestCircle(s.name)
			all = append(all, *s)
		}
	}
	slices.SortFunc(all, func(a, b size) int { return cmp.Compare(a.name, b.name) })
	return all
}

// add counts what one file declares.
func (s *size) add(t *tree, f *file) {
	code := codeLines(f.src)
	s.comments += commentLines(t, f)
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			s.functions = append(s.functions, t.linesOf(d, code))
			s.parameters = append(s.parameters, d.Type.Params.NumFields())
			if recv, _, isMethod := strings.Cut(funcName(d), "."); isMethod {
				s.methods[recv]++
			} else if d.Name.IsExported() {
				s.exported++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				s.exported += exportedNames(spec)
			}
		}
	}
}

// linesOf returns how many lines of code a function has.
func (t *tree) linesOf(fn *ast.FuncDecl, code []int) int {
	first, last := t.fset.Position(fn.Pos()).Line, t.fset.Position(fn.End()).Line
	n := 0
	for _, line := range code {
		if first <= line && line <= last {
			n++
		}
	}
	return n
}

// commentLines returns how many lines of a file are in comments.
func commentLines(t *tree, f *file) int {
	n := 0
	for _, c := range f.ast.Comments {
		n += t.fset.Position(c.End()).Line - t.fset.Position(c.Pos()).Line + 1
	}
	return n
}

// exportedNames returns how many exported names a specification declares.
func exportedNames(spec ast.Spec) int {
	var names []*ast.Ident
	switch s := spec.(type) {
	case *ast.TypeSpec:
		names = []*ast.Ident{s.Name}
	case *ast.ValueSpec:
		names = s.Names
	}
	return len(slices.DeleteFunc(slices.Clone(names), func(id *ast.Ident) bool { return !token.IsExported(id.Name) }))
}

const (
	sizesBegin = "<!-- sizes: written by go run ./internal/dev/archtest/sizes -w -->\n"
	sizesEnd   = "<!-- end of sizes -->\n"
)

// Sizes returns the table of the sizes of each package of the repository at
// root, beside the figures of projects that are known to be easy to work in.
func Sizes(root fs.FS) (string, error) {
	t, err := load(root)
	if err != nil {
		return "", err
	}
	all := size{name: "all", methods: make(map[string]int)}
	var rows strings.Builder
	rows.WriteString("| package | files | lines | lines a file | functions | lines a function | parameters | exported " +
		"names" +
		" | methods of a type | files in a circle | comments | tests to source " +
		"|\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n" +
		"| *known to be easy* | | ≤ 6000 | 90-150 / 500 | | 4-10 / 42 | 4 | 2-8 (≤ 30) | ≤ 40 | ≤ 8 | 10-33 % | 0.9-1.9 |\n")
	for _, s := range t.sizes() {
		rows.WriteString(s.row())
		all.files = append(all.files, s.files...)
		all.functions = append(all.functions, s.functions...)
		all.parameters = append(all.parameters, s.parameters...)
		all.exported += s.exported
		all.methods[s.name] = s.mostMethods()
		all.circle = max(all.circle, s.circle)
		all.comments += s.comments
		all.tests += s.tests
	}
	rows.WriteString(all.row())
	return rows.String(), nil
}

// row renders one package: of lines the median and the ninth tenth, of
// parameters the ninth tenth, of methods and circles the largest.
func (s size) row() string {
	lines := max(s.lines(), 1)
	return fmt.Sprintf("| `%s` | %d | %d | %d / %d | %d | %d / %d | %d | %d | %d | %d | %d %% | %.1f |\n",
		s.name, len(s.files), s.lines(), tenth(s.files, 5), tenth(s.files, 9),
		len(s.functions), tenth(s.functions, 5), tenth(s.functions, 9), tenth(s.parameters, 9),
		s.exported, s.mostMethods(), s.circle, 100*s.comments/lines, float64(s.tests)/float64(lines))
}

// mostMethods returns the number of methods of the type that has most.
func (s size) mostMethods() int {
	most := 0
	for _, n := range s.methods {
		most = max(most, n)
	}
	return most
}

// tenth returns the value that so many tenths of all values do not exceed.
func tenth(values []int, tenths int) int {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)*tenths+9)/10-1]
}

// sum adds values up.
func sum(values []int) int {
	n := 0
	for _, v := range values {
		n += v
	}
	return n
}

// WithSizes returns a page with its table of sizes replaced by another.
func WithSizes(page, table string) (string, error) {
	before, rest, okBegin := strings.Cut(page, sizesBegin)
	_, after, okEnd := strings.Cut(rest, sizesEnd)
	if !okBegin || !okEnd {
		return "", fmt.Errorf("the page has no lines %q and %q", strings.TrimSpace(sizesBegin), strings.TrimSpace(sizesEnd))
	}
	return before + sizesBegin + "\n" + table + "\n" + sizesEnd + after, nil
}
