package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestPackageVariablesNeverChange(t *testing.T) { judge(t, mutableVars) }

// mutableVars complains about package variables that hold state: assigned to
// after their declaration, declared without a value, or of a type that is
// there to change. Sentinel errors, compiled patterns, embedded files and
// tables that are only read are constants that Go has no other word for.
func mutableVars(t *tree) []complaint {
	var found []complaint
	byPackage := make(map[string][]*file)
	for _, f := range t.sources() {
		byPackage[f.pkg] = append(byPackage[f.pkg], f)
	}
	for pkg, files := range byPackage {
		v := &varLaw{tree: t, pkg: pkg, uses: t.uses(files)}
		for _, f := range files {
			v.judgeDecls(f.ast)
			v.judgeUses(f.ast)
		}
		found = append(found, v.found...)
	}
	return found
}

// A varLaw judges the package variables of one package.
type varLaw struct {
	tree  *tree
	pkg   string
	uses  map[*ast.Ident]types.Object
	found []complaint
}

func (v *varLaw) say(n ast.Node, name, what string) {
	v.found = append(v.found, complaint{"var", v.pkg + "." + name, fmt.Sprintf("%s: package variable %s %s", v.tree.at(n),
		name, what)})
}

// judgeDecls looks at how package variables are declared.
func (v *varLaw) judgeDecls(f *ast.File) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, spec := range g.Specs {
			s := spec.(*ast.ValueSpec)
			isEmbed := isEmbedded(g.Doc) || isEmbedded(s.Doc)
			for i, name := range s.Names {
				switch {
				case name.Name == "_" || isEmbed || isSentinel(name.Name) && len(s.Values) > 0:
				case len(s.Values) == 0:
					v.say(name, name.Name, "has no value: it can only be there to be set")
				case len(s.Values) == len(s.Names) && isState(s.Values[i]), s.Type != nil && isState(s.Type):
					v.say(name, name.Name, "is of a type that is there to change")
				}
			}
		}
	}
}

// isEmbedded reports whether a comment has a go:embed directive.
func isEmbedded(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return strings.HasPrefix(c.Text, "//go:embed ")
	})
}

// isSentinel reports whether a name is that of an error to compare with.
func isSentinel(name string) bool {
	return strings.HasPrefix(name, "Err") || strings.HasPrefix(name, "err")
}

// lazy are functions whose value is a constant that is worked out on first use.
var lazy = []string{"OnceValue", "OnceValues", "OnceFunc"}

// isState reports whether a type or a first value is one that changes: made
// empty, behind a pointer, a channel, or something of sync.
func isState(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.UnaryExpr:
		return x.Op == token.AND
	case *ast.CallExpr:
		if fn, ok := x.Fun.(*ast.Ident); ok {
			return fn.Name == "make" || fn.Name == "new"
		}
		return isState(x.Fun)
	case *ast.CompositeLit:
		return x.Type != nil && isState(x.Type)
	case *ast.IndexExpr:
		return isState(x.X)
	case *ast.StarExpr, *ast.ChanType:
		return true
	case *ast.SelectorExpr:
		pkg, ok := x.X.(*ast.Ident)
		return ok && (pkg.Name == "sync" && !slices.Contains(lazy, x.Sel.Name) || pkg.Name == "atomic")
	}
	return false
}

// judgeUses looks at what is done to package variables.
func (v *varLaw) judgeUses(f *ast.File) {
	names := importNames(f)
	changes := func(x ast.Expr) {
		if id, ok := root(x).(*ast.Ident); ok && v.isPackageVar(id) {
			v.say(x, id.Name, "is changed")
		}
		if sel, ok := foreign(x); ok && strings.HasPrefix(names[sel.X.(*ast.Ident).Name], v.tree.module+"/") &&
			v.isPackageName(sel.X.(*ast.Ident)) {
			v.say(x, path.Base(names[sel.X.(*ast.Ident).Name])+"."+sel.Sel.Name, "of another package is changed")
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				each(n.Lhs, changes)
			}
		case *ast.IncDecStmt:
			changes(n.X)
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				each([]ast.Expr{n.Key, n.Value}, changes)
			}
		case *ast.UnaryExpr:
			// A pointer to one row of a table is how a row is read.
			if _, isRow := n.X.(*ast.IndexExpr); n.Op == token.AND && !isRow {
				changes(n.X)
			}
		case *ast.CallExpr:
			fn, ok := n.Fun.(*ast.Ident)
			if ok && slices.Contains([]string{"delete", "clear", "copy"}, fn.Name) && len(n.Args) > 0 {
				changes(n.Args[0])
			}
		}
		return true
	})
}

// each calls fn for the expressions that are there.
func each(xs []ast.Expr, fn func(ast.Expr)) {
	for _, x := range xs {
		if x != nil {
			fn(x)
		}
	}
}

// isPackageVar reports whether an identifier is a variable of this package.
func (v *varLaw) isPackageVar(id *ast.Ident) bool {
	obj, ok := v.uses[id].(*types.Var)
	return ok && !obj.IsField() && obj.Pkg() != nil && obj.Parent() == obj.Pkg().Scope()
}

// isPackageName reports whether an identifier is an imported package here, and
// no variable that has its name.
func (v *varLaw) isPackageName(id *ast.Ident) bool {
	_, ok := v.uses[id].(*types.PkgName)
	return ok
}

// root returns the variable that an assignable expression is part of.
func root(x ast.Expr) ast.Expr {
	for {
		switch e := x.(type) {
		case *ast.ParenExpr:
			x = e.X
		case *ast.SelectorExpr:
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		case *ast.SliceExpr:
			x = e.X
		case *ast.StarExpr:
			x = e.X
		default:
			return x
		}
	}
}

// foreign returns the innermost "name.Name" of an assignable expression.
func foreign(x ast.Expr) (*ast.SelectorExpr, bool) {
	for {
		switch e := x.(type) {
		case *ast.ParenExpr:
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		case *ast.SliceExpr:
			x = e.X
		case *ast.StarExpr:
			x = e.X
		case *ast.SelectorExpr:
			if _, ok := e.X.(*ast.Ident); ok {
				return e, true
			}
			x = e.X
		default:
			return nil, false
		}
	}
}
