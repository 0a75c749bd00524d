package jsonlite

import (
	"bytes"
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrSyntax is what [Objects] returns for anything that is not an object or an
// array of objects.
var ErrSyntax = errors.New("malformed JSON")

// Objects reads one object, or an array of objects, into a map each: a text is
// its decoded self, null is absent, and a number, boolean, array or object is
// its JSON text. Of a name that occurs twice the last stands.
func Objects(data []byte) ([]map[string]string, error) {
	s := scanner{data: data}
	var list []map[string]string
	if s.take('[') {
		for first := true; !s.take(']'); first = false {
			if !first && !s.take(',') {
				return nil, ErrSyntax
			}
			if !s.object(&list) {
				return nil, ErrSyntax
			}
		}
	} else if !s.object(&list) {
		return nil, ErrSyntax
	}
	if s.space(); s.pos != len(data) {
		return nil, ErrSyntax
	}
	return list, nil
}

type scanner struct {
	data []byte
	pos  int
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// take moves past c if that is next.
func (s *scanner) take(c byte) bool {
	s.space()
	if s.pos < len(s.data) && s.data[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) object(list *[]map[string]string) bool {
	if !s.take('{') {
		return false
	}
	o := map[string]string{}
	for first := true; !s.take('}'); first = false {
		if !first && !s.take(',') {
			return false
		}
		key, ok := s.text()
		if !ok || !s.take(':') {
			return false
		}
		value, null, ok := s.value()
		if !ok {
			return false
		}
		if null {
			delete(o, key)
		} else {
			o[key] = value
		}
	}
	*list = append(*list, o)
	return true
}

func (s *scanner) value() (text string, null, ok bool) {
	s.space()
	if s.pos == len(s.data) {
		return "", false, false
	}
	switch s.data[s.pos] {
	case '"':
		text, ok = s.text()
		return text, false, ok
	case '{', '[':
		text, ok = s.nested()
		return text, false, ok
	}
	for _, literal := range []string{"null", "true", "false"} {
		if bytes.HasPrefix(s.data[s.pos:], []byte(literal)) {
			s.pos += len(literal)
			return literal, literal == "null", true
		}
	}
	start := s.pos
	for s.pos < len(s.data) && numeric(s.data[s.pos]) {
		s.pos++
	}
	text = string(s.data[start:s.pos])
	_, err := strconv.ParseFloat(text, 64)
	return text, false, err == nil || errors.Is(err, strconv.ErrRange)
}

// numeric reports whether c can be part of a number.
func numeric(c byte) bool {
	return c >= '0' && c <= '9' || c == 'e' || c == 'E' || c == '+' || c == '-' || c == '.'
}

// nested moves past an array or object; only brackets and texts are checked.
func (s *scanner) nested() (string, bool) {
	start := s.pos
	var open []byte
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		if c == '"' {
			if _, ok := s.text(); !ok {
				return "", false
			}
			continue
		}
		s.pos++
		switch c {
		case '{':
			open = append(open, '}')
		case '[':
			open = append(open, ']')
		case '}', ']':
			if open[len(open)-1] != c {
				return "", false
			}
			if open = open[:len(open)-1]; len(open) == 0 {
				return string(s.data[start:s.pos]), true
			}
		}
	}
	return "", false
}

func (s *scanner) text() (string, bool) {
	if !s.take('"') {
		return "", false
	}
	var out []byte
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		switch {
		case c == '"':
			s.pos++
			return string(out), true
		case c < 0x20:
			return "", false
		case c == '\\':
			r, ok := s.escape()
			if !ok {
				return "", false
			}
			out = utf8.AppendRune(out, r)
		default:
			r, size := utf8.DecodeRune(s.data[s.pos:])
			out = utf8.AppendRune(out, r)
			s.pos += size
		}
	}
	return "", false
}

// escape reads one escape sequence, a surrogate pair included.
func (s *scanner) escape() (rune, bool) {
	s.pos++
	if s.pos == len(s.data) {
		return 0, false
	}
	c := s.data[s.pos]
	s.pos++
	switch c {
	case '"', '\\', '/':
		return rune(c), true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case 'u':
		return s.unicode()
	}
	return 0, false
}

func (s *scanner) unicode() (rune, bool) {
	r, ok := s.hex4()
	if !ok || !utf16.IsSurrogate(r) {
		return r, ok
	}
	before := s.pos
	if s.pos+1 < len(s.data) && s.data[s.pos] == '\\' && s.data[s.pos+1] == 'u' {
		s.pos += 2
		if low, ok := s.hex4(); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, true
			}
		}
	}
	s.pos = before
	return utf8.RuneError, true
}

func (s *scanner) hex4() (rune, bool) {
	if s.pos+4 > len(s.data) {
		return 0, false
	}
	var r rune
	for _, c := range s.data[s.pos : s.pos+4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	s.pos += 4
	return r, true
}
