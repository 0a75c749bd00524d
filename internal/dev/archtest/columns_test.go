package archtest

import (
	"fmt"
	"go/scanner"
	"go/token"
	"testing"
	"unicode/utf8"
)

const (
	maxColumns = 120
	longText   = 30 // a text of that many bytes may keep its line
)

func TestLinesEndBeforeTheEdge(t *testing.T) { judge(t, wideLines) }

// wideLines complains about lines of code that are too long for a screen. A line
// that a long text or a comment reaches into is not judged.
func wideLines(t *tree) []complaint {
	var found []complaint
	for _, f := range t.files {
		for _, n := range wide(f.src) {
			at := fmt.Sprintf("%s:%d", f.name, n)
			found = append(found, complaint{"wide", at, fmt.Sprintf("%s is longer than %d columns", at, maxColumns)})
		}
	}
	return found
}

// wide returns the numbers of the lines that are too long, from 1.
func wide(src []byte) []int {
	fset := token.NewFileSet()
	f := fset.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(f, src, nil, scanner.ScanComments)
	texts := make(map[int]bool)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.COMMENT || tok == token.STRING && len(lit) >= longText {
			for n := f.Line(pos); n <= f.Line(pos+token.Pos(len(lit))); n++ {
				texts[n] = true
			}
		}
	}
	var lines []int
	for n := 1; n <= f.LineCount(); n++ {
		end := len(src)
		if n < f.LineCount() {
			end = f.Offset(f.LineStart(n+1)) - 1
		}
		if !texts[n] && utf8.RuneCount(src[f.Offset(f.LineStart(n)):end]) > maxColumns {
			lines = append(lines, n)
		}
	}
	return lines
}
