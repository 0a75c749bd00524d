package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The sizes that a reader can take in.
const (
	maxFileLines = 400 // lines of code, without comments and blank lines
	maxFuncLines = 60
	maxParams    = 5
)

func TestTopLevelIsFixed(t *testing.T) { judge(t, topLevel) }

func TestPackageNamesSayWhatTheyHold(t *testing.T) { judge(t, emptyNames) }

func TestNoInit(t *testing.T) { judge(t, inits) }

func TestFilesAndFunctionsAreShort(t *testing.T) { judge(t, tooLong) }

func TestExportedNamesAreDocumented(t *testing.T) { judge(t, undocumented) }

func TestErrorsNameTheDeed(t *testing.T) { judge(t, failedTo) }

func TestTestsNeitherSkipNorSleep(t *testing.T) { judge(t, idleTests) }

// TestExceptionsAreNeeded fails when an exception has no reason or nothing
// needs it any more.
func TestExceptionsAreNeeded(t *testing.T) {
	h, err := project()
	if err != nil {
		t.Fatal(err)
	}
	needed := make(map[string]bool)
	for _, law := range []func(*tree) []complaint{
		undrawn, wrongDoors, unusedDoors, wrongOwners, edgeCalls, otherReaders, topLevel, emptyNames, inits, tooLong,
		undocumented, failedTo, idleTests, mutableVars, wideLines,
	} {
		for _, c := range law(h) {
			needed[c.law+" "+c.subject] = true
		}
	}
	for key, why := range exceptions {
		if !needed[key] || why == "" {
			t.Errorf("exception %q is not needed, or has no reason", key)
		}
	}
}

// topNames are the entries that the top level may have, beside dot files.
var topNames = []string{
	"go.mod", "go.sum", "Makefile",
	"cmd", "launcher", "caps", "hostcalls", "kb", "secrets", "bundles", "agents", "testdata", "internal", "docs",
	"README.md", "ARCHITECTURE.md", "RATIONALE.md", "SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE",
	"bin", "dist", // what make builds, not part of the tree
}

// topLevel complains about entries that the fixed top level does not have.
func topLevel(t *tree) []complaint {
	var found []complaint
	for dir, allowed := range map[string][]string{".": topNames, "cmd": {"rlp"}} {
		entries, err := fs.ReadDir(t.root, dir)
		if err != nil && dir == "." {
			return []complaint{{"top", dir, err.Error()}}
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if e.Name()[0] != '.' && !slices.Contains(allowed, e.Name()) {
				found = append(found, complaint{"top", name, name + " does not belong to the top level"})
			}
		}
	}
	return found
}

// emptyWords are names that say nothing of what a package holds.
var emptyWords = []string{
	"util", "utils", "common", "helper", "helpers", "types", "misc", "shared", "lib", "model",
	"models", "base",
}

// emptyNames complains about packages named for nothing.
func emptyNames(t *tree) []complaint {
	var found []complaint
	for _, f := range t.files {
		for _, name := range []string{path.Base(f.pkg), strings.TrimSuffix(f.ast.Name.Name, "_test")} {
			if slices.Contains(emptyWords, name) {
				found = append(found, complaint{"name", f.pkg, fmt.Sprintf("%s: package %s says nothing of what it holds", f.name,
					name)})
			}
		}
	}
	return found
}

// inits complains about init functions.
func inits(t *tree) []complaint {
	var found []complaint
	for _, f := range t.files {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				found = append(found, complaint{"init", f.pkg, t.at(fn) + ": init runs before anyone asked for it"})
			}
		}
	}
	return found
}

// tooLong complains about files, functions and parameter lists that nobody
// takes in at once.
func tooLong(t *tree) []complaint {
	var found []complaint
	say := func(law, subject, at string, have, most int) {
		if have > most {
			found = append(found, complaint{law, subject, fmt.Sprintf("%s: %s has %d, at most %d", at, subject, have, most)})
		}
	}
	for _, f := range t.sources() {
		if generated.Match(f.src) {
			continue
		}
		code := codeLines(f.src)
		say("lines", f.name, f.name, len(code), maxFileLines)
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			say("lines", f.pkg+"."+funcName(fn), t.at(fn), t.linesOf(fn, code), maxFuncLines)
			say("params", f.pkg+"."+funcName(fn), t.at(fn), fn.Type.Params.NumFields(), maxParams)
		}
	}
	return found
}

// ownDocs are methods whose meaning the standard library fixes.
var ownDocs = []string{
	"Error", "Unwrap", "Is", "As", "String", "GoString", "Format", "LogValue",
	"MarshalText", "UnmarshalText", "MarshalJSON", "UnmarshalJSON", "MarshalCBOR", "UnmarshalCBOR", "MarshalBinary",
	"UnmarshalBinary",
}

// undocumented complains about exported names, and packages, without a comment.
func undocumented(t *tree) []complaint {
	var found []complaint
	isSaid := make(map[string]bool)
	for _, f := range t.sources() {
		isSaid[f.pkg] = isSaid[f.pkg] || f.ast.Doc != nil
	}
	for pkg, said := range isSaid {
		if !said {
			found = append(found, complaint{"doc", pkg, pkg + ": the package has no comment that states its law"})
		}
	}
	for _, f := range t.sources() {
		for _, d := range f.ast.Decls {
			for _, name := range bareNames(d) {
				found = append(found, complaint{"doc", f.pkg + "." + name, fmt.Sprintf("%s: %s has no comment", t.at(d), name)})
			}
		}
	}
	return found
}

// bareNames returns the exported names that a declaration leaves without a
// comment.
func bareNames(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		isMethod := d.Recv != nil
		name := funcName(d)
		recv, _, _ := strings.Cut(name, ".")
		if d.Doc != nil || !d.Name.IsExported() || !ast.IsExported(recv) || isMethod && slices.Contains(ownDocs,
			d.Name.Name) {
			return nil
		}
		return []string{name}
	case *ast.GenDecl:
		var names []string
		for _, spec := range d.Specs {
			names = append(names, bareSpec(d, spec)...)
		}
		return names
	}
	return nil
}

// bareSpec returns the exported names of one specification without a comment.
// The comment of a group of constants or variables serves each of them.
func bareSpec(d *ast.GenDecl, spec ast.Spec) []string {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		isAlone := !d.Lparen.IsValid() && d.Doc != nil
		if s.Name.IsExported() && s.Doc == nil && !isAlone {
			return []string{s.Name.Name}
		}
	case *ast.ValueSpec:
		if d.Doc != nil || s.Doc != nil || s.Comment != nil {
			return nil
		}
		var names []string
		for _, n := range s.Names {
			if n.IsExported() {
				names = append(names, n.Name)
			}
		}
		return names
	}
	return nil
}

// failedTo complains about errors that begin with what went wrong rather than
// with what was being done.
func failedTo(t *tree) []complaint {
	var found []complaint
	for _, f := range t.sources() {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Errorf" && sel.Sel.Name != "New" {
				return true
			}
			lit, ok := call.Args[0].(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, _ := strconv.Unquote(lit.Value)
			for _, phrase := range []string{"failed to", "unable to", "could not", "error while"} {
				if strings.HasPrefix(strings.ToLower(text), phrase) || strings.Contains(text, ": "+phrase) {
					found = append(found, complaint{"error", f.name, fmt.Sprintf("%s: %q says %q, not what was being done", t.at(lit),
						text, phrase)})
				}
			}
			return true
		})
	}
	return found
}

// idleTests complains about tests that skip themselves, or wait for time to
// pass. A fuzz target may skip an input that says nothing, and time in a
// synctest bubble does not pass.
func idleTests(t *tree) []complaint {
	var found []complaint
	for _, f := range t.files {
		if !f.isTest {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			isFuzz, isBubble := strings.HasPrefix(fn.Name.Name, "Fuzz"), false
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				x, _ := sel.X.(*ast.Ident)
				isBubble = isBubble || x != nil && x.Name == "synctest"
				law := ""
				switch {
				case slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) && !isFuzz:
					law = "skip"
				case sel.Sel.Name == "Sleep" && x != nil && x.Name == "time" && !isBubble:
					law = "sleep"
				default:
					return true
				}
				found = append(found, complaint{law, f.pkg + "." + funcName(fn), fmt.Sprintf("%s: %s: a test does not %s",
					t.at(sel), funcName(fn), law)})
				return true
			})
		}
	}
	return found
}
