package archtest

import (
	"go/ast"
	"path"
	"slices"
	"testing"
)

// commandLines are what reads a command line, with the files of cmd/rlp that do:
// the process's own, and one that another process handed over. The service answers
// questions by functions (launcher/ask), never by a command whose output it reads.
var commandLines = map[string][]string{
	"invoke":  {"main.go", "root.go", "daemon_launch.go"},
	"execute": {"root.go", "root_command.go"},
	"args":    {"main.go", "daemon_launch.go"}, // of an environment
}

func TestTheServiceCallsNoCommand(t *testing.T) { judge(t, commandsCalled) }

// commandsCalled complains about files that make a command line, or do one.
func commandsCalled(t *tree) []complaint {
	var found []complaint
	for _, f := range t.sources() {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			for _, name := range commandWords(n) {
				file := path.Base(f.name)
				if files, is := commandLines[name]; is && f.pkg == "cmd/rlp" && !slices.Contains(files, file) {
					found = append(found, complaint{"command", file + " " + name, t.at(n) +
						": a command line is made or done here; call the function that answers"})
				}
			}
			return true
		})
	}
	return found
}

// commandWords are the name of the function that n calls, or the fields of the
// environment that n makes.
func commandWords(n ast.Node) (words []string) {
	switch n := n.(type) {
	case *ast.CallExpr:
		switch fn := n.Fun.(type) {
		case *ast.Ident:
			words = append(words, fn.Name)
		case *ast.SelectorExpr:
			words = append(words, fn.Sel.Name)
		}
	case *ast.CompositeLit:
		if of, is := n.Type.(*ast.Ident); !is || of.Name != "environment" {
			return nil
		}
		for _, e := range n.Elts {
			if kv, is := e.(*ast.KeyValueExpr); is {
				words = append(words, kv.Key.(*ast.Ident).Name)
			}
		}
	}
	return words
}

func TestControlCommands(t *testing.T) {
	got := commandsCalled(repo(t, map[string]string{
		"cmd/rlp/main.go": "package main; func main() { invoke(ctx, environment{args: os.Args}) }",
		"cmd/rlp/serve_a.go": "package main; func f(a *app) { invoke(ctx, environment{env: nil, args: " +
			"[]string{\"caps\"}}); a.execute(ctx) }",
		"cmd/rlp/serve_b.go":        "package main; func f(args []string) { answer(args) }",
		"internal/serve/api/api.go": "package api; func f() { invoke() }",
	}))
	wantComplaints(t, got, "command serve_a.go invoke", "command serve_a.go args", "command serve_a.go execute")
}
