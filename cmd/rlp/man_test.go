package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// The manual has the exit codes that docs/operators.md has, and no others.
func TestManualHasTheExitCodes(t *testing.T) {
	text, err := os.ReadFile("../../docs/operators.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| code | means |\n|---|---|\n")
	if !ok {
		t.Fatal("docs/operators.md has no table of exit codes")
	}
	var documented, shown []string
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		codes, _, _ := strings.Cut(line[1:], "|")
		for _, code := range strings.Split(codes, ",") {
			documented = append(documented, strings.TrimSpace(code))
		}
	}
	for _, s := range statuses {
		shown = append(shown, s.code)
	}
	slices.Sort(documented)
	slices.Sort(shown)
	if !slices.Equal(documented, shown) {
		t.Errorf("the manual has %q, docs/operators.md %q", shown, documented)
	}
}

// What a text says never becomes a command of the formatter's.
func TestRoff(t *testing.T) {
	for text, want := range map[string]string{
		".TH x":     `\&.TH x`,
		"a\n.b":     "a\n" + `\&.b`,
		"'it\\n'":   `\(aqit\en\(aq`,
		"--limit":   `\-\-limit`,
		"`command`": `\(gacommand\(ga`,
	} {
		if got := roff(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// What the formatter does not fill, which are the examples of a page, fits 100 columns.
//
//rlp:holds D17
func TestManualFitsAPage(t *testing.T) {
	dir, verbatim := t.TempDir(), 0
	root := rootCommand(&app{})
	root.InitDefaultCompletionCmd()
	if err := writeManual(root, dir); err != nil {
		t.Fatal(err)
	}
	pages, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		text, err := os.ReadFile(filepath.Join(dir, p.Name()))
		if err != nil {
			t.Fatal(err)
		}
		inside := false
		for line := range strings.Lines(string(text)) {
			switch line = strings.TrimRight(line, "\n"); line {
			case ".nf", ".EX":
				inside = true
			case ".fi", ".EE":
				inside = false
			default:
				shown := strings.NewReplacer(`\&`, "", `\(aq`, "'", `\(ga`, "`", `\e`, `\`, `\-`, "-").Replace(line)
				if inside && utf8.RuneCountInString(shown) > pageWidth {
					t.Errorf("%s has a line of %d columns: %s", p.Name(), utf8.RuneCountInString(shown), shown)
				}
				if inside {
					verbatim++
				}
			}
		}
	}
	if verbatim < 50 {
		t.Errorf("control: only %d lines are verbatim", verbatim)
	}
}
