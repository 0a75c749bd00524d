package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// SECURITY.md says what is enforced, what is best effort and what is not
// promised, and something under each.
//
//rlp:holds K75
func TestSecurityClaimsNoMoreThanIsEnforced(t *testing.T) {
	text := read(t, "../../../SECURITY.md")
	for _, heading := range []string{"Enforced", "Best effort", "Not promised"} {
		_, section, ok := strings.Cut(text, "\n## "+heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !ok || strings.Count(section, "\n| ")+strings.Count(section, "\n- ") < 3 {
			t.Errorf("SECURITY.md has no section %q with entries", heading)
		}
		if heading == "Not promised" && !strings.Contains(section, "defense in depth and nothing absolute") {
			t.Errorf("SECURITY.md does not say that it is defense in depth, and nothing absolute:\n%s", section)
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`)

// Every link of the documentation to a file of the tree leads to one.
func TestLinksLead(t *testing.T) {
	for _, doc := range docs(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, doc), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", doc, m[1])
			}
		}
	}
}

var (
	madeCommand = regexp.MustCompile("(?m)(?:`|^ {4})make ([a-z-]+)")
	makeTarget  = regexp.MustCompile(`(?m)^([a-z-]+):`)
)

// Every make command that the documentation names is one.
func TestMakeCommandsExist(t *testing.T) {
	targets := make(map[string]bool)
	for _, m := range makeTarget.FindAllStringSubmatch(read(t, "../../../Makefile"), -1) {
		targets[m[1]] = true
	}
	named := 0
	for _, doc := range docs(t) {
		for _, m := range madeCommand.FindAllStringSubmatch(read(t, doc), -1) {
			named++
			if !targets[m[1]] {
				t.Errorf("%s names `make %s`, which the Makefile has not", doc, m[1])
			}
		}
	}
	if named == 0 {
		t.Error("no document names a make command: the pattern is wrong")
	}
}

// docs are the documents of the top level and of docs.
func docs(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, pattern := range []string{"../../../*.md", "../../../docs/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, error %v", pattern, found, err)
		}
		names = append(names, found...)
	}
	return names
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Every page is found from the README.
func TestReadmeLinksEveryPage(t *testing.T) {
	readme := read(t, "../../../README.md")
	pages, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		if name := "docs/" + filepath.Base(page); !strings.Contains(readme, "]("+name+")") {
			t.Errorf("README.md does not link %s", name)
		}
	}
}
