package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestEveryPackageIsDrawn(t *testing.T) { judge(t, undrawn) }

func TestImportsGoThroughDoors(t *testing.T) { judge(t, wrongDoors) }

func TestDoorsAreUsed(t *testing.T) { judge(t, unusedDoors) }

func TestOutsideHasOwners(t *testing.T) { judge(t, wrongOwners) }

func TestOnlyTheEdgeAsksWhereItRuns(t *testing.T) { judge(t, edgeCalls) }

func TestJSONHasOneReader(t *testing.T) { judge(t, otherReaders) }

// TestDrawingPointsDown judges the drawing itself: doors lead to packages of a
// lower level, and everything has its reason.
func TestDrawingPointsDown(t *testing.T) {
	for from, r := range packages {
		for to, why := range r.doors {
			below, ok := packages[to]
			switch {
			case !ok:
				t.Errorf("%s has a door to %s, which is not drawn", from, to)
			case below.level >= r.level:
				t.Errorf("%s (level %d) has a door to %s (level %d): imports point down", from, r.level, to, below.level)
			case why == "":
				t.Errorf("%s has a door to %s without a reason", from, to)
			}
		}
	}
	for _, table := range []map[string][]owner{outside, guarded, edge} {
		for what, owners := range table {
			for _, o := range owners {
				if _, ok := packages[o.pkg]; !ok && o.pkg != "*" || o.why == "" {
					t.Errorf("%s: owner %q is not drawn or has no reason", what, o.pkg)
				}
			}
		}
	}
}

// TestPictureAndTableAgree compares the packages of ARCHITECTURE.md with the
// drawing in code.
func TestPictureAndTableAgree(t *testing.T) {
	h, err := project()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range picture(h) {
		t.Errorf("%s: %s", c.law, c.text)
	}
}

// picture complains about packages that only one of the two drawings has.
func picture(t *tree) []complaint {
	text, err := readTable(t, "ARCHITECTURE.md", "| package |")
	if err != nil {
		return []complaint{{"picture", "ARCHITECTURE.md", err.Error()}}
	}
	var found []complaint
	say := func(pkg, format string) {
		found = append(found, complaint{"picture", pkg, fmt.Sprintf(format, pkg)})
	}
	for name := range packages {
		if !isNamed(text, name) {
			say(name, "%s is drawn here and not in ARCHITECTURE.md")
		}
	}
	for _, name := range text {
		_, isPackage := packages[name]
		isElsewhere := slices.Contains([]string{"agents", "testdata", "internal/dev/tools"}, name)
		if !isPackage && !isElsewhere {
			say(name, "%s is drawn in ARCHITECTURE.md and not here")
		}
	}
	return found
}

// isNamed reports whether the table has a package, or one that it is part of.
func isNamed(table []string, pkg string) bool {
	for ; pkg != "."; pkg = path.Dir(pkg) {
		if slices.Contains(table, pkg) {
			return true
		}
	}
	return false
}

// drawn returns the name that the drawing has for a directory.
func drawn(dir string) (string, bool) {
	if _, ok := packages[dir]; ok {
		return dir, true
	}
	wild := path.Dir(dir) + "/*"
	if _, ok := packages[wild]; ok {
		return wild, true
	}
	return dir, false
}

// undrawn complains about packages that are not in the drawing, and about
// packages of the drawing that have no package.
func undrawn(t *tree) []complaint {
	var found []complaint
	built := make(map[string]bool)
	for _, dir := range t.packages() {
		name, ok := drawn(dir)
		built[name] = true
		if !ok {
			found = append(found, complaint{"drawn", dir, dir + " is not in the drawing"})
		}
	}
	for name := range packages {
		_, later := toBuild[name]
		switch {
		case later && built[name]:
			found = append(found, complaint{"drawn", name, name + " is built: take it out of toBuild"})
		case !later && !built[name]:
			found = append(found, complaint{"drawn", name, name + " is drawn and has no package"})
		}
	}
	return found
}

// imports calls fn for each import of the tree.
func (t *tree) imports(fn func(f *file, spec *ast.ImportSpec, target string)) {
	for _, f := range t.files {
		for _, spec := range f.ast.Imports {
			target, err := strconv.Unquote(spec.Path.Value)
			if err == nil {
				fn(f, spec, target)
			}
		}
	}
}

// wrongDoors complains about imports of the project that the drawing lacks.
func wrongDoors(t *tree) []complaint {
	var found []complaint
	t.imports(func(f *file, spec *ast.ImportSpec, target string) {
		to, ok := strings.CutPrefix(target, t.module+"/")
		if !ok || f.isTest && to == f.pkg {
			return
		}
		from, _ := drawn(f.pkg)
		to, _ = drawn(to)
		_, ok = packages[from].doors[to]
		if f.isTest && !ok {
			_, ok = testDoors[from][to]
		}
		if !ok {
			found = append(found, complaint{"door", from + " " + to, fmt.Sprintf("%s: %s may not import %s", t.at(spec), from,
				to)})
		}
	})
	return found
}

// unusedDoors complains about doors that nothing goes through: those of packages
// by their sources, those of tests by tests, and no door twice.
func unusedDoors(t *tree) []complaint {
	used := map[bool]map[string]bool{false: {}, true: {}} // by tests
	t.imports(func(f *file, _ *ast.ImportSpec, target string) {
		if to, ok := strings.CutPrefix(target, t.module+"/"); ok {
			from, _ := drawn(f.pkg)
			to, _ = drawn(to)
			used[f.isTest][from+" "+to] = true
		}
	})
	var found []complaint
	judge := func(from, to string, isTest bool) {
		if key := from + " " + to; !used[isTest][key] {
			found = append(found, complaint{"unused", key, "nothing in " + from + " imports " + to})
		}
	}
	for from, r := range packages {
		for to := range r.doors {
			judge(from, to, false)
		}
	}
	for from, tests := range testDoors {
		for to := range tests {
			judge(from, to, true)
			if _, ok := packages[from].doors[to]; ok {
				found = append(found, complaint{"unused", from + " " + to, from + " has a door to " + to +
					" that is not for tests alone"})
			}
		}
	}
	return found
}

// wrongOwners complains about imports from outside by packages that do not own
// them.
func wrongOwners(t *tree) []complaint {
	var found []complaint
	t.imports(func(f *file, spec *ast.ImportSpec, target string) {
		if target == t.module || strings.HasPrefix(target, t.module+"/") {
			return
		}
		owners, known := guarded[target]
		if first, _, _ := strings.Cut(target, "/"); strings.Contains(first, ".") {
			owners, known = ownersOf(target), true
		} else if f.isTest {
			return
		}
		if from, _ := drawn(f.pkg); known && !owns(owners, from, f.isTest) {
			found = append(found, complaint{"owner", from + " " + target, fmt.Sprintf("%s: %s may not import %s", t.at(spec),
				from, target)})
		}
	})
	return found
}

// ownersOf returns the owners of the longest prefix of an import path.
func ownersOf(target string) []owner {
	for p := target; p != "." && p != "/"; p = path.Dir(p) {
		if owners, ok := outside[p]; ok {
			return owners
		}
	}
	return nil
}

// owns reports whether a package is one of the owners, for its tests or at all.
func owns(owners []owner, pkg string, isTest bool) bool {
	return slices.ContainsFunc(owners, func(o owner) bool {
		return (o.pkg == pkg || o.pkg == "*") && (isTest || !o.tests)
	})
}

// edgeCalls complains about packages that ask the process where it runs, or call
// what has its callers.
func edgeCalls(t *tree) []complaint {
	var found []complaint
	for _, f := range t.sources() {
		from, _ := drawn(f.pkg)
		names := importNames(f.ast)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			what := "." + sel.Sel.Name // a method, whoever's it is
			if x, ok := sel.X.(*ast.Ident); ok && names[x.Name] != "" {
				what = path.Base(names[x.Name]) + what
			}
			if owners, isEdge := edge[what]; isEdge && !owns(owners, from, false) {
				found = append(found, complaint{"edge", from + " " + what, fmt.Sprintf("%s: %s may not use %s", t.at(sel), from,
					what)})
			}
			return true
		})
	}
	return found
}

// otherReaders complains about files that decode JSON by other means than
// internal/base/strictjson. What a file only writes, or holds to be JSON without
// taking anything out of it, is not reading.
func otherReaders(t *tree) []complaint {
	var found []complaint
	for _, f := range t.sources() {
		if f.pkg == "internal/base/strictjson" {
			continue
		}
		names := importNames(f.ast)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Unmarshal" && sel.Sel.Name != "NewDecoder" {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && path.Base(names[x.Name]) == "json" {
				found = append(found, complaint{"json", f.name, t.at(sel) + ": JSON is read by strictjson alone"})
			}
			return true
		})
	}
	return found
}

// importNames returns the import path that each name of a file stands for.
func importNames(f *ast.File) map[string]string {
	names := make(map[string]string)
	for _, spec := range f.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(target)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = target
	}
	return names
}
