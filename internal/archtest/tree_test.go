package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

// A tree is every Go file of a repository, whatever system it is for.
type tree struct {
	root   fs.FS
	module string
	fset   *token.FileSet
	files  []*file
}

// A file is one parsed Go file.
type file struct {
	name   string // from the root, with slashes
	room   string // the directory
	isTest bool
	src    []byte
	ast    *ast.File
}

// A complaint is one broken law.
type complaint struct {
	law     string // a word, the key of exceptions
	subject string // what breaks it: a room, a file or room.Name
	text    string
}

var moduleLine = regexp.MustCompile(`(?m)^module (\S+)$`)

// load parses the repository at root.
func load(root fs.FS) (*tree, error) {
	mod, err := fs.ReadFile(root, "go.mod")
	if err != nil {
		return nil, err
	}
	m := moduleLine.FindSubmatch(mod)
	if m == nil {
		return nil, fmt.Errorf("go.mod names no module")
	}
	t := &tree{root: root, module: string(m[1]), fset: token.NewFileSet()}
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && isSkipped(root, name):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		return t.parse(name)
	})
	return t, err
}

// isSkipped reports whether a directory is not built as part of the module.
func isSkipped(root fs.FS, name string) bool {
	base := path.Base(name)
	if name == "." {
		return false
	}
	if base == "testdata" || base[0] == '.' || base[0] == '_' {
		return true
	}
	_, err := fs.Stat(root, name+"/go.mod")
	return err == nil
}

func (t *tree) parse(name string) error {
	src, err := fs.ReadFile(t.root, name)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(t.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.files = append(t.files, &file{
		name:   name,
		room:   path.Dir(name),
		isTest: strings.HasSuffix(name, "_test.go"),
		src:    src,
		ast:    f,
	})
	return nil
}

// at says where a node is.
func (t *tree) at(n ast.Node) string {
	p := t.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// rooms returns the directories that hold Go files, sorted.
func (t *tree) rooms() []string {
	var names []string
	for _, f := range t.files {
		names = append(names, f.room)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// sources returns the files that are no tests.
func (t *tree) sources() []*file {
	return slices.DeleteFunc(slices.Clone(t.files), func(f *file) bool { return f.isTest })
}

// house is this repository, parsed once.
var house = sync.OnceValues(func() (*tree, error) { return load(os.DirFS("../..")) })

// judge applies one law to this repository.
func judge(t *testing.T, law func(*tree) []complaint) {
	t.Helper()
	h, err := house()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range law(h) {
		if _, ok := exceptions[c.law+" "+c.subject]; !ok {
			t.Errorf("%s: %s", c.law, c.text)
		}
	}
}

// repo is a small repository for the tests of the laws.
func repo(t *testing.T, files map[string]string) *tree {
	t.Helper()
	tr, err := load(mapFS(files))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// wantComplaints checks that a law says exactly what is expected of it.
func wantComplaints(t *testing.T, got []complaint, want ...string) {
	t.Helper()
	var subjects []string
	for _, c := range got {
		subjects = append(subjects, c.law+" "+c.subject)
	}
	slices.Sort(subjects)
	slices.Sort(want)
	if !slices.Equal(subjects, want) {
		t.Errorf("complaints about\n%q, want\n%q\n%v", subjects, want, got)
	}
}

// mapFS makes a file system of texts, with a go.mod.
func mapFS(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{"go.mod": {Data: []byte("module example.org/m\n\ngo 1.26\n")}}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

var quoted = regexp.MustCompile("`([^`]+)`")

// readTable returns what is in backquotes in the first column of the table
// that begins with header.
func readTable(t *tree, name, header string) ([]string, error) {
	text, err := fs.ReadFile(t.root, name)
	if err != nil {
		return nil, err
	}
	_, rest, ok := strings.Cut(string(text), "\n"+header)
	if !ok {
		return nil, fmt.Errorf("%s has no table %q", name, header)
	}
	var words []string
	for line := range strings.Lines(rest) {
		if line == "\n" {
			break
		}
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
			words = append(words, m[1])
		}
	}
	return words, nil
}
