package hostcalls

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// What a JSON document of a guest's may have, so that every reader of reports
// takes it: Python, JavaScript, jq and Go differ in what they take beyond that.
const (
	maxLevels = 64
	maxDigits = 128 // characters of one number
)

// readable says why text is no JSON document that every reader takes; nil if it is
// one.
func readable(text string) error {
	if !utf8.ValidString(text) || !json.Valid(bytesOf(text)) {
		return errors.New("one JSON document in UTF-8 is wanted")
	}
	levels := 0
	for i := 0; i < len(text); {
		n := 1
		switch c := text[i]; {
		case c == '{', c == '[':
			if levels++; levels > maxLevels {
				return fmt.Errorf("more than %d levels of lists and objects, which not every reader takes: write what is deeper as a text", maxLevels)
			}
		case c == '}', c == ']':
			levels--
		case c == '"':
			n = quotedLen(text[i:])
			if hasHalves(text[i : i+n]) {
				return errors.New("half of a character (\\ud800 to \\udfff without its other half), which not every reader takes")
			}
		case c == '-', '0' <= c && c <= '9':
			n = numberLen(text[i:])
			if _, err := strconv.ParseFloat(text[i:i+n], 64); n > maxDigits || err != nil {
				return fmt.Errorf("a number of %d characters: not every reader takes numbers of more than %d characters or beyond 64 bits of floating point: write it as a text", n, maxDigits)
			}
		}
		i += n
	}
	return GivenTwice(text)
}

// GivenTwice names a key that an object in text, which is JSON, has twice; nil: there
// is none. Readers differ in which of the two they take.
func GivenTwice(text string) error {
	var open []map[string]bool // the keys of each object that text is in, nil for a list
	for i := 0; i < len(text); {
		n := 1
		switch text[i] {
		case '{':
			open = append(open, map[string]bool{})
		case '[':
			open = append(open, nil)
		case '}', ']':
			open = open[:len(open)-1]
		case '"':
			n = quotedLen(text[i:])
			if !strings.HasPrefix(strings.TrimLeft(text[i+n:], " \t\r\n"), ":") {
				break
			}
			key, _ := (&jsonText{s: text[i : i+n]}).quoted()
			if open[len(open)-1][key] {
				return fmt.Errorf("%s: given twice", printable(key))
			}
			open[len(open)-1][key] = true
		}
		i += n
	}
	return nil
}

// quotedLen is how long the quoted text is that s begins with.
func quotedLen(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(s)
}

// numberLen is how long the number is that s begins with.
func numberLen(s string) int {
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
		default:
			return i
		}
	}
	return len(s)
}
