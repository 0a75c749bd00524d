package main

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// A note is what one text holds.
type note struct {
	name     string
	contacts []sighting
	todos    []todo
	done     int
	dates    []date
	includes []include
	empty    bool
}

// An include is a file that a note wants to be a part of it.
type include struct {
	target string
	line   int
}

// parse takes a text apart. Code blocks hold examples, not facts.
func parse(name, text string) note {
	n := note{name: name, empty: strings.TrimSpace(text) == ""}
	code, before := false, ""
	no := 0
	for line := range strings.Lines(text) {
		no++
		line = strings.TrimRight(line, "\r\n")
		if fence := strings.TrimSpace(line); strings.HasPrefix(fence, "```") || strings.HasPrefix(fence, "~~~") {
			code = !code
			continue
		}
		if code {
			continue
		}
		n.contacts = appendSightings(n.contacts, before, line)
		found := findDates(line)
		for i := range found {
			found[i].note, found[i].line = name, no
		}
		n.dates = append(n.dates, found...)
		if t, state := parseTodo(line); state == openTodo {
			t.note, t.line, t.due = name, no, firstDeadline(found)
			n.todos = append(n.todos, t)
		} else if state == doneTodo {
			n.done++
		}
		for _, target := range includesOf(line) {
			n.includes = append(n.includes, include{target, no})
		}
		before = line
	}
	return n
}

// includesOf finds `![[target]]` and lines `include: target`.
func includesOf(line string) []string {
	var targets []string
	if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "include:"); ok {
		if target := strings.Trim(rest, " \t\"'`"); target != "" {
			targets = append(targets, target)
		}
	}
	for rest := line; ; {
		_, after, ok := strings.Cut(rest, "![[")
		if !ok {
			return targets
		}
		target, tail, ok := strings.Cut(after, "]]")
		if !ok {
			return targets
		}
		target, _, _ = strings.Cut(target, "|") // ![[target|size]]
		target, _, _ = strings.Cut(target, "#") // ![[target#heading]]
		if target = strings.TrimSpace(target); target != "" {
			targets = append(targets, target)
		}
		rest = tail
	}
}

// decode turns a file into text: UTF-8, UTF-16 with a byte order mark, and for
// anything else Latin-1, which every byte sequence is. The remark says which,
// and is empty for UTF-8.
func decode(content []byte) (text, remark string) {
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	switch {
	case bytes.HasPrefix(content, []byte{0xff, 0xfe}):
		return decode16(content[2:], 0, 1), "read as UTF-16"
	case bytes.HasPrefix(content, []byte{0xfe, 0xff}):
		return decode16(content[2:], 1, 0), "read as UTF-16"
	case utf8.Valid(content):
		return string(content), ""
	}
	runes := make([]rune, len(content))
	for i, b := range content {
		runes[i] = rune(b)
	}
	return string(runes), "not UTF-8, read as Latin-1"
}

func decode16(b []byte, low, high int) string {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = uint16(b[2*i+low]) | uint16(b[2*i+high])<<8
	}
	return string(utf16.Decode(units))
}

// textMax bounds a quotation from a note, in characters.
const textMax = 200

// clean makes a quotation fit to print: one line, without control and bidi
// characters, which could rewrite a terminal or a reader's view, and not too long.
func clean(s string) string {
	var runes []rune
	for _, r := range s {
		if r == '\t' {
			r = ' '
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError {
			continue
		}
		if runes = append(runes, r); len(runes) > 2*textMax {
			break
		}
	}
	s = strings.TrimSpace(string(runes))
	if runes = []rune(s); len(runes) > textMax {
		s = strings.TrimSpace(string(runes[:textMax-3])) + "..."
	}
	return s
}

// place is a note's name and a line in it.
func place(name string, line int) string { return name + ":" + strconv.Itoa(line) }
