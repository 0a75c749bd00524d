package sdk

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each function that agents call stands in the README with its signature; what
// replaces the host in tests does not.
func TestTheReadmeHasTheSignatures(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || f.Recv != nil || !f.Name.IsExported() || f.Name.Name == "SetBackend" {
				continue
			}
			f.Body = nil
			var text bytes.Buffer
			if err := printer.Fprint(&text, set, f); err != nil {
				t.Fatal(err)
			}
			if found++; !strings.Contains(string(readme), "    "+text.String()+"\n") {
				t.Errorf("README.md does not have: %s", &text)
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d functions were found", found)
	}
}
