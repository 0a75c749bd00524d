package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
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
	pkg    string // the directory
	isTest bool
	src    []byte
	ast    *ast.File
}

var (
	moduleLine = regexp.MustCompile(`(?m)^module (\S+)$`)
	generated  = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
)

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
		pkg:    path.Dir(name),
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

// packages returns the directories that hold Go files, sorted.
func (t *tree) packages() []string {
	var names []string
	for _, f := range t.files {
		names = append(names, f.pkg)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// sources returns the files that are no tests.
func (t *tree) sources() []*file {
	return slices.DeleteFunc(slices.Clone(t.files), func(f *file) bool { return f.isTest })
}
