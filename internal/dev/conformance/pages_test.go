package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Bounds of a page that people read from its beginning.
const (
	mostLines = 300
	mostWords = 60 // of a sentence, code in backquotes being one
)

// A page begins with its task and an example, is no longer than people read, and says
// one thing in a sentence.
func TestPagesAreReadable(t *testing.T) {
	pages := append([]string{"../../../README.md", "../../../CONTRIBUTING.md"}, glob(t, "../../../docs/*.md")...)
	for _, page := range pages {
		name, text := filepath.Base(page), read(t, page)
		if name == "conformance.md" { // which is a table that a program writes
			continue
		}
		lines := strings.Split(text, "\n")
		if len(lines) > mostLines+1 {
			t.Errorf("%s has %d lines, more than %d: split it", name, len(lines), mostLines)
		}
		if !example.MatchString(strings.Join(lines[:min(45, len(lines))], "\n")) {
			t.Errorf("%s has no example among its first 45 lines", name)
		}
		for _, s := range sentences(lines) {
			if n := len(strings.Fields(inCode.ReplaceAllString(s, "x"))); n > mostWords {
				t.Errorf("%s: a sentence has %d words, more than %d; split it: %s", name, n, mostWords, s)
			}
		}
	}
}

var (
	example  = regexp.MustCompile("(?m)^(    \\S|```)")
	inCode   = regexp.MustCompile("`[^`]*`")
	target   = regexp.MustCompile(`\]\([^)]*\)`)
	item     = regexp.MustCompile(`^\s*([-*]|\d+\.) `)
	sentence = regexp.MustCompile("[.!?:]\\**\\)? +([A-Z0-9`*\\[(])")
)

// sentences are those of paragraphs, items and cells; blocks of code have none.
func sentences(lines []string) (list []string) {
	var text []string
	end := func(more ...string) {
		for _, s := range append([]string{strings.Join(text, " ")}, more...) {
			s = sentence.ReplaceAllString(target.ReplaceAllString(s, "]"), ".\n$1")
			list = append(list, strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '·' })...)
		}
		text = nil
	}
	fenced := false
	for _, line := range lines {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
			end()
		case fenced, trimmed == "", strings.HasPrefix(line, "    "), strings.HasPrefix(line, "#"):
			end()
		case strings.HasPrefix(trimmed, "|"):
			end(strings.Split(trimmed, "|")...)
		case item.MatchString(line):
			end()
			text = []string{trimmed}
		default:
			text = append(text, trimmed)
		}
	}
	end()
	return list
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(names), err)
	}
	return names
}

// The control: what is too long is found, in a paragraph, an item and a cell, and code is
// not looked at.
func TestLongSentencesAreFound(t *testing.T) {
	long := strings.Repeat("word ", mostWords) + "end."
	for _, page := range []string{long, "- " + long, "| a | " + long + " |", "Short one. " + long} {
		found := false
		for _, s := range sentences(strings.Split(page, "\n")) {
			found = found || len(strings.Fields(s)) > mostWords
		}
		if !found {
			t.Errorf("nothing is too long in %q", page)
		}
	}
	for _, page := range []string{"    " + long, "```\n" + long + "\n```", "One. Two `a. b`: Three."} {
		for _, s := range sentences(strings.Split(page, "\n")) {
			if len(strings.Fields(s)) > mostWords {
				t.Errorf("%q is no sentence", s)
			}
		}
	}
}
