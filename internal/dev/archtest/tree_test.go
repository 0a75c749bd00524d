package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

// A complaint is one broken law.
type complaint struct {
	law     string // a word, the key of exceptions
	subject string // what breaks it: a package, a file or package.Name
	text    string
}

// project is this repository, parsed once.
var project = sync.OnceValues(func() (*tree, error) { return load(os.DirFS("../../..")) })

// judge applies one law to this repository.
func judge(t *testing.T, law func(*tree) []complaint) {
	t.Helper()
	h, err := project()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range law(h) {
		if _, ok := exceptions[c.law+" "+c.subject]; !ok {
			t.Errorf("%s: %s", c.law, c.text)
		}
	}
}

// repo is a small repository for the tests of the laws.
func repo(t *testing.T, files map[string]string) *tree {
	t.Helper()
	tr, err := load(mapFS(files))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// wantComplaints checks that a law says exactly what is expected of it.
func wantComplaints(t *testing.T, got []complaint, want ...string) {
	t.Helper()
	var subjects []string
	for _, c := range got {
		subjects = append(subjects, c.law+" "+c.subject)
	}
	slices.Sort(subjects)
	slices.Sort(want)
	if !slices.Equal(subjects, want) {
		t.Errorf("complaints about\n%q, want\n%q\n%v", subjects, want, got)
	}
}

// mapFS makes a file system of texts, with a go.mod.
func mapFS(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{"go.mod": {Data: []byte("module example.org/m\n\ngo 1.26\n")}}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

var quoted = regexp.MustCompile("`([^`]+)`")

// readTable returns what is in backquotes in the first column of the table
// that begins with header.
func readTable(t *tree, name, header string) ([]string, error) {
	text, err := fs.ReadFile(t.root, name)
	if err != nil {
		return nil, err
	}
	_, rest, ok := strings.Cut(string(text), "\n"+header)
	if !ok {
		return nil, fmt.Errorf("%s has no table %q", name, header)
	}
	var words []string
	for line := range strings.Lines(rest) {
		if line == "\n" {
			break
		}
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
			words = append(words, m[1])
		}
	}
	return words, nil
}
