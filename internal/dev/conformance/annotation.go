package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	goMark     = "//rlp:holds"
	scriptMark = "# holds:"
)

// almost matches what was meant as an annotation and is none: a blank before
// the directive, another case, a missing colon, a block comment.
var almost = regexp.MustCompile(`(?i)^(//|/\*)\s*rlp:?\s*holds\b|^#+\s*holds\b`)

// testKinds are the functions that `go test` runs, and what each is given.
var testKinds = map[string]string{"Test": "T", "Fuzz": "F", "Benchmark": "B"}

// scanGo returns the annotations of one Go file.
func scanGo(name string, data []byte) ([]finding, error) {
	if !bytes.Contains(bytes.ToLower(data), []byte("holds")) {
		return nil, nil
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, data, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	tests := docsOfTests(name, file)
	var found []finding
	var errs []error
	for _, group := range file.Comments {
		for _, c := range group.List {
			if !almost.MatchString(c.Text) {
				continue
			}
			p := fset.Position(c.Pos())
			pos := fmt.Sprintf("%s:%d", p.Filename, p.Line)
			ids, isMark := strings.CutPrefix(c.Text, goMark+" ")
			test, isAbove := tests[group]
			switch {
			case !isMark || strings.TrimSpace(ids) == "":
				errs = append(errs, fmt.Errorf("%s: want %q and the rows, have %q", pos, goMark, c.Text))
			case !isAbove:
				errs = append(errs, fmt.Errorf("%s: %s stands above no test function", pos, goMark))
			default:
				h := holder{file.Name.Name + "." + test, name}
				found = append(found, finding{h, pos, strings.Fields(ids)})
			}
		}
	}
	return found, errors.Join(errs...)
}

// docsOfTests returns the doc comments of the file's test functions.
func docsOfTests(name string, file *ast.File) map[*ast.CommentGroup]string {
	docs := make(map[*ast.CommentGroup]string)
	if !strings.HasSuffix(name, "_test.go") {
		return docs
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Doc != nil && isTest(f) {
			docs[f.Doc] = f.Name.Name
		}
	}
	return docs
}

// isTest reports whether `go test` runs f.
func isTest(f *ast.FuncDecl) bool {
	for kind, param := range testKinds {
		rest, ok := strings.CutPrefix(f.Name.Name, kind)
		if !ok || f.Recv != nil || len(f.Type.Params.List) != 1 {
			continue
		}
		if r, _ := utf8.DecodeRuneInString(rest); unicode.IsLower(r) {
			continue
		}
		star, ok := f.Type.Params.List[0].Type.(*ast.StarExpr)
		if !ok {
			continue
		}
		if sel, ok := star.X.(*ast.SelectorExpr); ok && sel.Sel.Name == param {
			return true
		}
	}
	return false
}

// scanScript returns the annotations of one script: comment lines before its
// first file.
func scanScript(name string, data []byte) ([]finding, error) {
	var found []finding
	var errs []error
	isFile := false // below the first file marker nothing is a comment
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimRight(line, "\r")
		isFile = isFile || strings.HasPrefix(line, "-- ") && strings.HasSuffix(line, " --")
		if isFile || !almost.MatchString(line) {
			continue
		}
		pos := fmt.Sprintf("%s:%d", name, i+1)
		ids, isMark := strings.CutPrefix(line, scriptMark+" ")
		if !isMark || strings.TrimSpace(ids) == "" {
			errs = append(errs, fmt.Errorf("%s: want %q and the rows, have %q", pos, scriptMark, line))
			continue
		}
		h := holder{"script " + strings.TrimSuffix(path.Base(name), ".txtar"), name}
		found = append(found, finding{h, pos, strings.Fields(ids)})
	}
	return found, errors.Join(errs...)
}
