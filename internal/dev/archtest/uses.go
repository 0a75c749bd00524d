package archtest

import (
	"errors"
	"go/ast"
	"go/types"
	"slices"
)

// noImports is an importer without packages: names of the package itself
// resolve without them.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not imported") }

// uses resolves the identifiers of a package as far as that goes without its
// imports.
func (t *tree) uses(files []*file) map[*ast.Ident]types.Object {
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	conf := types.Config{Importer: noImports{}, FakeImportC: true, Error: func(error) {}}
	var asts []*ast.File
	for _, f := range files {
		asts = append(asts, f.ast)
	}
	// What does not resolve is an import; conf.Error has seen to it.
	_, _ = conf.Check(files[0].pkg, t.fset, asts, info)
	return info.Uses
}

// largestCircle returns how many files of a package use each other in a circle.
func (t *tree) largestCircle(name string) int {
	files := slices.DeleteFunc(t.sources(), func(f *file) bool { return f.pkg != name })
	uses := make(map[string]map[string]bool)
	for id, obj := range t.uses(files) {
		if _, isImport := obj.(*types.PkgName); isImport || !obj.Pos().IsValid() {
			continue
		}
		from, to := t.fset.Position(id.Pos()).Filename, t.fset.Position(obj.Pos()).Filename
		if uses[from] == nil {
			uses[from] = make(map[string]bool)
		}
		uses[from][to] = true
	}
	largest := 0
	for _, group := range circles(uses) {
		largest = max(largest, len(group))
	}
	return largest
}

// circles returns, for each file, the files that it reaches and that reach it.
func circles(uses map[string]map[string]bool) map[string][]string {
	reach := make(map[string]map[string]bool)
	for from := range uses {
		reach[from] = make(map[string]bool)
		for todo := []string{from}; len(todo) > 0; {
			next := todo[0]
			todo = todo[1:]
			for to := range uses[next] {
				if !reach[from][to] {
					reach[from][to] = true
					todo = append(todo, to)
				}
			}
		}
	}
	groups := make(map[string][]string)
	for from, tos := range reach {
		for to := range tos {
			if reach[to][from] {
				groups[from] = append(groups[from], to)
			}
		}
	}
	return groups
}
