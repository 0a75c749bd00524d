package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"runloop.dev/rlp/agents/sdk"
)

// What is read of one folder.
const (
	mostFiles = 1000
	mostBytes = 1 << 20 // of one note
	deepest   = 16
)

// find is the passages that have most of the question's words, best first, and
// what could not be looked at.
func (c *chat) find(question string) (found []passage, problems []string) {
	words := wordsOf(question)
	s := search{words: words}
	s.walk(c.folder, 0)
	hits, err := sdk.KBSearch("notes", question, mostPassages)
	if err != nil {
		s.problem("the knowledge base's notes", err)
	}
	for _, h := range hits {
		s.found = append(s.found, passage{"kb notes/" + h.Key, oneLine(h.Snippet), 1 + s.score(h.Snippet)})
	}
	slices.SortStableFunc(s.found, func(a, b passage) int { return cmp.Compare(b.score, a.score) })
	return s.found[:min(len(s.found), mostPassages)], s.problems
}

// A search goes through a folder.
type search struct {
	words    []string
	files    int
	found    []passage
	problems []string
}

func (s *search) walk(dir string, depth int) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		s.problem(dir, err)
	}
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir() && depth < deepest:
			s.walk(p, depth+1)
		case e.Type().IsRegular() && isNote(e.Name()) && s.files < mostFiles:
			s.files++
			s.read(p)
		}
	}
}

// isNote reports whether a file of this name is read.
func isNote(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".md" || ext == ".txt"
}

// read takes the best line of a note.
func (s *search) read(p string) {
	info, err := os.Stat(p)
	if err == nil && info.Size() > mostBytes {
		return
	}
	text, err := os.ReadFile(p)
	if err != nil {
		s.problem(p, err)
		return
	}
	best := passage{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if score := s.score(line); score > best.score {
			best = passage{p + ":" + strconv.Itoa(n), oneLine(line), score}
		}
	}
	if best.score > 0 {
		s.found = append(s.found, best)
	}
}

// score is how many of the words a text has.
func (s *search) score(text string) int {
	n, has := 0, wordsOf(text)
	for _, w := range s.words {
		if slices.Contains(has, w) {
			n++
		}
	}
	return n
}

func (s *search) problem(what string, err error) {
	s.problems = append(s.problems, "could not read "+what+": "+why(err))
}

// wordsOf are the words of a text that say something, in lower case, each once.
func wordsOf(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) &&
			!unicode.IsDigit(r)
	})
	words = slices.DeleteFunc(words, func(w string) bool { return len(w) < 4 })
	slices.Sort(words)
	return slices.Compact(words)
}

// oneLine is text without line ends and marks of Markdown around it, and not
// long.
func oneLine(text string) string {
	const most = 160
	text = strings.TrimLeft(strings.Join(strings.Fields(text), " "), "#-*> ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "..."
	}
	return text
}

// why is what a person wants to know of an error.
func why(err error) string {
	var denied *sdk.Error
	switch {
	case errors.As(err, &denied) && denied.Hint != "":
		return denied.Errno.Error() + ", " + denied.Hint
	case errors.Is(err, fs.ErrPermission):
		return "not allowed"
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist"
	}
	return err.Error()
}
