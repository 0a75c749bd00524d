package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"runloop.dev/rlp/internal/service"
)

// Bounds of a body, beside its size.
const (
	mostDepth    = 128
	mostValues   = 1 << 20
	mostProblems = 100
)

// A member is one of an object, as it stands in the body.
type member struct {
	key string
	raw []byte
}

// A step leads from a value to one in it: a key, or an index.
type step struct {
	key   string
	index int // -1: key
}

// A scanner goes once over a body that is known to be JSON: it finds keys that
// are there twice, which readers understand differently, and bounds how deep and
// how many values are.
type scanner struct {
	data     []byte
	at       int
	steps    []step
	values   int
	top      []member
	problems service.FieldErrors
}

// scan reads the object that a body is. All that is wrong is in its problems; the
// members are those that could be told.
func scan(body []byte) ([]member, service.FieldErrors) {
	if len(strings.TrimSpace(string(body[:min(len(body), 64)]))) == 0 && len(strings.TrimSpace(string(body))) == 0 {
		return nil, service.FieldErrors{{Field: "", Why: `the body is empty; send a JSON object, such as {"agent": "NAME"}`}}
	}
	if bytes.HasPrefix(body, []byte("\ufeff")) {
		return nil, service.FieldErrors{{Field: "", Why: "the body begins with a byte order mark (EF BB BF), which is no JSON; send UTF-8 without one"}}
	}
	if !utf8.Valid(body) {
		return nil, service.FieldErrors{{Field: "", Why: "the body is not UTF-8"}}
	}
	if err := syntax(body); err != nil {
		return nil, service.FieldErrors{{Field: "", Why: err.Error()}}
	}
	s := &scanner{data: body}
	s.space()
	if s.data[s.at] != '{' {
		return nil, service.FieldErrors{{Field: "", Why: "the body is " + kindOf(body[s.at:]) + ", not an object"}}
	}
	s.value(0)
	return s.top, s.problems
}

// syntax says where a body is not JSON.
func syntax(body []byte) error {
	if json.Valid(body) {
		return nil
	}
	var v json.RawMessage
	err := json.Unmarshal(body, &v)
	var bad *json.SyntaxError
	if !errors.As(err, &bad) {
		return errors.New("the body is not JSON")
	}
	before := body[:min(max(bad.Offset-1, 0), int64(len(body)))]
	line := 1 + strings.Count(string(before), "\n")
	column := len(before) - strings.LastIndexByte(string(before), '\n')
	switch text := bad.Error(); {
	case strings.Contains(text, "after top-level value"):
		return fmt.Errorf("line %d, column %d: something stands behind the end of the object", line, column)
	case strings.Contains(text, "unexpected end"):
		return fmt.Errorf("line %d, column %d: this is not JSON: it ends too early", line, column)
	case strings.Contains(text, "exceeded max depth"):
		return fmt.Errorf("nested deeper than %d", mostDepth)
	}
	return fmt.Errorf("line %d, column %d: this is not JSON", line, column)
}

func (s *scanner) space() {
	for s.at < len(s.data) && strings.IndexByte(" \t\r\n", s.data[s.at]) >= 0 {
		s.at++
	}
}

func (s *scanner) wrong(format string, args ...any) {
	if len(s.problems) < mostProblems {
		s.problems = append(s.problems, service.FieldError{Field: pathOf(s.steps), Why: fmt.Sprintf(format, args...)})
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
	if s.values++; s.values > mostValues {
		s.wrong("the body has more than %d values; send less", mostValues)
		s.end()
		return
	}
	switch s.data[s.at] {
	case '{', '[':
		if depth >= mostDepth {
			s.wrong("nested deeper than %d", mostDepth)
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
			s.top = append(s.top, member{key, s.data[min(from, len(s.data)):s.at]})
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
		s.value(depth + 1)
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
		b.WriteString(shownKey(st.key))
	}
	return b.String()
}

// shownKey is a key as it is told back: plain, or in quotes, and not whole if it is
// long.
func shownKey(k string) string {
	const most = 64
	if len(k) > most {
		k = strings.ToValidUTF8(k[:most], "") + "..."
	}
	if k == "" || strings.ContainsFunc(k, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`."[]`, r) }) {
		return strconv.QuoteToASCII(k)
	}
	return k
}

// kindOf names what a value is.
func kindOf(raw []byte) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}
