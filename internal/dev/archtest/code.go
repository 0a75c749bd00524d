package archtest

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"strings"
)

// codeLines returns the numbers of the lines that hold code: a token that is
// no comment. A string over several lines counts with each of them.
func codeLines(src []byte) []int {
	var s scanner.Scanner
	fset := token.NewFileSet()
	f := fset.AddFile("", fset.Base(), len(src))
	s.Init(f, src, nil, 0)
	var lines []int
	last := 0
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue // put in by the scanner
		}
		line := f.Line(pos)
		for end := line + strings.Count(lit, "\n"); line <= end; line++ {
			if line > last {
				lines = append(lines, line)
				last = line
			}
		}
	}
}

// funcName returns "F", or "T.F" for a method.
func funcName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}
