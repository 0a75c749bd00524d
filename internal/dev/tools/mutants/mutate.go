package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// A mutant is one change of the source that a test should notice.
type mutant struct {
	id   int
	file string // slash-separated, from the module's root
	line int
	end  int // last line
	in   string
	what string // what it does, and to which text
	nth  int    // among those of its file and function that do the same
}

// key names a mutant by what it does, so that lines may move.
func (m mutant) key() string {
	return fmt.Sprintf("%s\t%s\t%s\t%d", m.file, m.in, m.what, m.nth)
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", m.file, m.line, m.in, m.what)
}

// An edit wraps the text between two offsets.
type edit struct {
	start, end  int
	open, close string
	mutant      int
}

// A mutator writes every mutant of one file into its text. A mutant is off
// unless the process is told its number, so that one build holds them all.
type mutator struct {
	path    string
	src     []byte
	fset    *token.FileSet
	next    int
	in      string
	edits   []edit
	mutants []mutant
	seen    map[string]int
}

// mutate finds the mutants of a file. Numbers begin at first.
func mutate(path string, src []byte, first int) (*mutator, error) {
	m := &mutator{path: path, src: src, fset: token.NewFileSet(), next: first, seen: map[string]int{}}
	file, err := parser.ParseFile(m.fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
			m.in = funcName(f)
			m.function(f.Type, f.Body)
		}
	}
	return m, nil
}

// funcName is F, or T.M for a method.
func funcName(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	switch g := t.(type) {
	case *ast.IndexExpr:
		t = g.X
	case *ast.IndexListExpr:
		t = g.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// function visits a body; what it returns is known by the type's last result.
func (m *mutator) function(t *ast.FuncType, body *ast.BlockStmt) {
	last, n := "", t.Results.NumFields()
	if n > 0 {
		if id, ok := t.Results.List[len(t.Results.List)-1].Type.(*ast.Ident); ok {
			last = id.Name
		}
	}
	ast.Inspect(body, func(node ast.Node) bool {
		switch s := node.(type) {
		case *ast.FuncLit:
			m.function(s.Type, s.Body)
			return false
		case *ast.GenDecl:
			return s.Tok == token.VAR // constants are what they are
		case *ast.BlockStmt:
			m.statements(s.List)
		case *ast.CaseClause:
			m.statements(s.Body)
		case *ast.CommClause:
			m.statements(s.Body)
		case *ast.IfStmt:
			m.condition(s.Cond, true)
		case *ast.ForStmt:
			if s.Cond != nil {
				m.condition(s.Cond, false)
			}
		case *ast.SwitchStmt:
			m.cases(s)
		case *ast.BinaryExpr:
			m.binary(s)
		case *ast.ReturnStmt:
			m.results(s, n, last)
		}
		return true
	})
}

// cases are the conditions of a switch without a value.
func (m *mutator) cases(s *ast.SwitchStmt) {
	if s.Tag != nil {
		return
	}
	for _, c := range s.Body.List {
		for _, e := range c.(*ast.CaseClause).List {
			m.condition(e, true)
		}
	}
}

func (m *mutator) condition(e ast.Expr, always bool) {
	m.wrap(e, "never", "((", ") && !rlpMutant(%d))")
	if always {
		m.wrap(e, "always", "((", ") || rlpMutant(%d))")
	}
}

func (m *mutator) binary(e *ast.BinaryExpr) {
	switch e.Op {
	case token.LAND:
		m.wrap(e.Y, "drop from &&", "((", ") || rlpMutant(%d))")
		m.wrap(e.X, "drop from &&", "((", ") || rlpMutant(%d))")
	case token.LOR:
		m.wrap(e.Y, "drop from ||", "((", ") && !rlpMutant(%d))")
		m.wrap(e.X, "drop from ||", "((", ") && !rlpMutant(%d))")
	case token.LSS:
		m.swap(e, "<=")
	case token.LEQ:
		m.swap(e, "<")
	case token.GTR:
		m.swap(e, ">=")
	case token.GEQ:
		m.swap(e, ">")
	case token.ADD, token.SUB:
		m.wrap(e, "one more than", "rlpMutantAdd(%d, ", ")")
	}
}

// swap is the same comparison with its boundary on the other side.
func (m *mutator) swap(e *ast.BinaryExpr, op string) {
	x, y := m.text(e.X), m.text(e.Y)
	if strings.Contains(x+y, "\n") {
		return
	}
	m.wrap(e, op+" in", "(rlpMutant(%[1]d) && (("+escape(x)+") "+op+" ("+escape(y)+")) || !rlpMutant(%[1]d) && (", "))")
}

func escape(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// statements can each be left out.
func (m *mutator) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if isPanic(s.X) { // a body may have to end with it
				continue
			}
		case *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt, *ast.GoStmt:
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		case *ast.BranchStmt:
			if s.Tok != token.BREAK && s.Tok != token.CONTINUE {
				continue
			}
		default:
			continue
		}
		m.wrap(s, "without", "if !rlpMutant(%d) { ", " }")
	}
}

func isPanic(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.Ident)
	return ok && f.Name == "panic"
}

// results are no error where there is one, and the other truth.
func (m *mutator) results(r *ast.ReturnStmt, n int, last string) {
	if len(r.Results) == 0 || len(r.Results) != n { // or one call answers them all
		return
	}
	e := r.Results[len(r.Results)-1]
	if id, ok := e.(*ast.Ident); ok && id.Name == "nil" {
		return
	}
	switch last {
	case "error":
		m.wrap(e, "no error of", "rlpMutantError(%d, ", ")")
	case "bool":
		m.wrap(e, "not", "((", ") != rlpMutant(%d))")
	}
}

func (m *mutator) offset(p token.Pos) int { return m.fset.Position(p).Offset }

func (m *mutator) text(n ast.Node) string {
	return string(m.src[m.offset(n.Pos()):m.offset(n.End())])
}

func (m *mutator) wrap(n ast.Node, verb, open, closing string) {
	text := strings.Join(strings.Fields(m.text(n)), " ")
	if r := []rune(text); len(r) > 90 {
		text = string(r[:87]) + "..."
	}
	mut := mutant{
		id: m.next, file: m.path, in: m.in, what: verb + " " + text,
		line: m.fset.Position(n.Pos()).Line, end: m.fset.Position(n.End()).Line,
	}
	same := mut.in + "\x00" + mut.what
	m.seen[same]++
	mut.nth = m.seen[same]
	m.next++
	m.mutants = append(m.mutants, mut)
	m.edits = append(m.edits, edit{
		m.offset(n.Pos()), m.offset(n.End()), numbered(open, mut.id), numbered(closing, mut.id), mut.id,
	})
}

func numbered(format string, id int) string {
	if !strings.Contains(format, "%") {
		return format
	}
	return fmt.Sprintf(format, id)
}

// source is the file with the mutants in it but those left out. It has the
// lines of the original.
func (m *mutator) source(without map[int]bool) []byte {
	type insertion struct {
		at, class, order int // what closes comes before what opens
		text             string
	}
	var ins []insertion
	for i, e := range m.edits {
		if without[e.mutant] {
			continue
		}
		span := e.end - e.start
		ins = append(ins,
			insertion{e.start, 1, -span*len(m.edits) + i - len(m.edits), e.open},
			insertion{e.end, 0, span*len(m.edits) - i, e.close})
	}
	slices.SortStableFunc(ins, func(a, b insertion) int {
		if a.at != b.at {
			return a.at - b.at
		}
		if a.class != b.class {
			return a.class - b.class
		}
		return a.order - b.order
	})
	var out bytes.Buffer
	at := 0
	for _, in := range ins {
		out.Write(m.src[at:in.at])
		out.WriteString(in.text)
		at = in.at
	}
	out.Write(m.src[at:])
	return out.Bytes()
}
