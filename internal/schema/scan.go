package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of a document that [Scan] reads, beside its size.
const (
	MaxScanDepth    = 128
	maxScanValues   = 1 << 20
	maxScanProblems = 100
)

// A Member is one of an object, as it stands in the document.
type Member struct {
	Key string
	Raw []byte
}

// A Problem is what is wrong at one place of a document; at its root, the path is
// "".
type Problem struct{ Path, Why string }

// A Document is one that was scanned. What it holds is part of its text.
type Document struct {
	Raw      []byte   // without the space before it
	Members  []Member // of an object: the first of each key
	Elements [][]byte // of a list
}

// A step leads from a value to one in it: a key, or an index.
type step struct {
	key   string
	index int // -1: key
}

// A scanner goes once over a document that is known to be JSON: it finds keys that
// are there twice, which readers understand differently, and bounds how deep and
// how many values are.
type scanner struct {
	data     []byte
	at       int
	steps    []step
	values   int
	top      Document
	problems []Problem
}

// Scan reads what stands at the top of a document and holds all of it to be
// readable in one way only. Everything that is wrong is in the problems; the
// document has what could be read in spite of them.
func Scan(text []byte) (Document, []Problem) {
	switch {
	case bytes.HasPrefix(text, []byte("\ufeff")):
		return Document{}, []Problem{{"", "begins with a byte order mark (EF BB BF), which is no JSON; send UTF-8 without one"}}
	case !utf8.Valid(text):
		return Document{}, []Problem{{"", "is not UTF-8"}}
	}
	if err := syntax(text); err != nil {
		return Document{}, []Problem{{"", err.Error()}}
	}
	s := &scanner{data: text}
	s.space()
	s.top.Raw = s.data[s.at:]
	s.value(0)
	return s.top, s.problems
}

// syntax says where a document is not JSON.
func syntax(text []byte) error {
	if json.Valid(text) {
		return nil
	}
	var v json.RawMessage
	err := json.Unmarshal(text, &v)
	var bad *json.SyntaxError
	if !errors.As(err, &bad) {
		return errors.New("is not JSON")
	}
	before := text[:min(max(bad.Offset-1, 0), int64(len(text)))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n')
	switch said := bad.Error(); {
	case strings.Contains(said, "after top-level value"):
		return fmt.Errorf("has something behind its end (line %d, column %d)", line, column)
	case strings.Contains(said, "unexpected end"):
		return fmt.Errorf("ends too early to be JSON (line %d, column %d)", line, column)
	case strings.Contains(said, "exceeded max depth"):
		return fmt.Errorf("is nested deeper than %d", MaxScanDepth)
	}
	return fmt.Errorf("is not JSON (line %d, column %d)", line, column)
}

func (s *scanner) space() {
	for s.at < len(s.data) && strings.IndexByte(" \t\r\n", s.data[s.at]) >= 0 {
		s.at++
	}
}

func (s *scanner) wrong(format string, args ...any) {
	if len(s.problems) < maxScanProblems {
		s.problems = append(s.problems, Problem{pathOf(s.steps), fmt.Sprintf(format, args...)})
	}
}

// end gives up: what follows is not looked at.
func (s *scanner) end() { s.at = len(s.data) }

// value passes over one value.
func (s *scanner) value(depth int) {
	s.space()
	if s.at >= len(s.data) {
		return
	}
	if s.values++; s.values > maxScanValues {
		s.wrong("has more than %d values; send less", maxScanValues)
		s.end()
		return
	}
	switch s.data[s.at] {
	case '{', '[':
		if depth >= MaxScanDepth {
			s.wrong("nested deeper than %d", MaxScanDepth)
			s.end()
			return
		}
		if s.data[s.at] == '{' {
			s.object(depth)
		} else {
			s.array(depth)
		}
	case '"':
		s.str()
	default:
		for s.at < len(s.data) && strings.IndexByte(",]} \t\r\n", s.data[s.at]) < 0 {
			s.at++
		}
	}
}

// str passes over a string and returns it as it stands there.
func (s *scanner) str() []byte {
	from := s.at
	for s.at++; s.at < len(s.data) && s.data[s.at] != '"'; s.at++ {
		if s.data[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
	return s.data[from:min(s.at, len(s.data))]
}

func (s *scanner) object(depth int) {
	seen := map[string]bool{}
	for s.at++; ; s.at++ {
		s.space()
		if s.at >= len(s.data) {
			return
		}
		if s.data[s.at] == '}' {
			s.at++
			return
		}
		key := unquoted(s.str())
		s.steps = append(s.steps, step{key, -1})
		if seen[key] {
			s.wrong("is there twice; keep one")
		}
		s.space()
		s.at++ // the colon
		s.space()
		from := s.at
		s.value(depth + 1)
		if depth == 0 && !seen[key] && s.at <= len(s.data) {
			s.top.Members = append(s.top.Members, Member{key, s.data[min(from, len(s.data)):s.at]})
		}
		seen[key] = true
		s.steps = s.steps[:len(s.steps)-1]
		s.space()
		if s.at >= len(s.data) || s.data[s.at] == '}' {
			s.at++
			return
		}
	}
}

func (s *scanner) array(depth int) {
	s.at++
	s.space()
	for i := 0; s.at < len(s.data) && s.data[s.at] != ']'; i++ {
		s.steps = append(s.steps, step{"", i})
		from := s.at
		s.value(depth + 1)
		if depth == 0 && s.at <= len(s.data) {
			s.top.Elements = append(s.top.Elements, s.data[from:s.at])
		}
		s.steps = s.steps[:len(s.steps)-1]
		s.space()
		if s.at < len(s.data) && s.data[s.at] == ',' {
			s.at++
			s.space()
		}
	}
	s.at = min(s.at+1, len(s.data))
}

func unquoted(raw []byte) (s string) {
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// pathOf writes where a value is, such as "limits.max_steps" or "deny[2]", and cuts
// what would be endless.
func pathOf(steps []step) string {
	var b strings.Builder
	for i, st := range steps {
		switch {
		case b.Len() > 512:
			return b.String() + "..."
		case st.index >= 0:
			b.WriteString("[" + strconv.Itoa(st.index) + "]")
			continue
		case i > 0:
			b.WriteByte('.')
		}
		b.WriteString(ShownKey(st.key))
	}
	return b.String()
}

// ShownKey is a key as it is told back: plain, or in quotes, and not whole if it is
// long.
func ShownKey(k string) string {
	const most = 64
	if len(k) > most {
		k = strings.ToValidUTF8(k[:most], "") + "..."
	}
	if k == "" || strings.ContainsFunc(k, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`."[]`, r) }) {
		return strconv.QuoteToASCII(k)
	}
	return k
}
