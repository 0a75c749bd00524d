package hostcalls

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// maxKeys bounds the keys of an object.
const maxKeys = 101

// A jsonText is a request that is being read. It takes what the call takes and
// nothing else, keys spelled exactly and once, and so needs to know little of
// JSON. What it returns is the reader's own, but for keys.
type jsonText struct {
	s  string
	at int
}

// readObject reads text, which is one JSON object and nothing else. field reads
// the value of a key, which is a view of text.
func readObject(text string, field func(d *jsonText, key string) error) error {
	if !utf8.ValidString(text) {
		return errors.New("the request is not UTF-8")
	}
	d := &jsonText{s: text}
	if err := d.members("the request", field); err != nil {
		return err
	}
	if d.space(); d.at < len(text) {
		return errors.New("the request is one JSON object and nothing after it")
	}
	return nil
}

// members reads one object, whose place in the request is path.
func (d *jsonText) members(path string, member func(d *jsonText, key string) error) error {
	if !d.eat('{') {
		return fmt.Errorf("%s: an object is wanted", path)
	}
	if d.eat('}') {
		return nil
	}
	seen := make([]string, 0, 8)
	for {
		key, ok := d.quoted()
		if !ok || !d.eat(':') {
			return fmt.Errorf("%s: not JSON at byte %d", path, d.at)
		}
		if slices.Contains(seen, key) {
			return fmt.Errorf("%s: given twice", printable(key))
		}
		if len(seen) == maxKeys {
			return fmt.Errorf("%s: more than %d keys", path, maxKeys)
		}
		seen = append(seen, key)
		if err := member(d, key); err != nil {
			return err
		}
		if more, err := d.more(path, '}'); !more {
			return err
		}
	}
}

// items reads the rest of a list whose [ has been read.
func (d *jsonText) items(path string, item func() error) error {
	if d.eat(']') {
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if more, err := d.more(path, ']'); !more {
			return err
		}
	}
}

// more passes over what follows a part of path: a comma, or the end of all.
func (d *jsonText) more(path string, end byte) (bool, error) {
	switch {
	case d.eat(','):
		return true, nil
	case d.eat(end):
		return false, nil
	}
	return false, fmt.Errorf("%s: not JSON at byte %d", path, d.at)
}

func (d *jsonText) space() {
	for d.at < len(d.s) && (d.s[d.at] == ' ' || d.s[d.at] == '\n' || d.s[d.at] == '\r' || d.s[d.at] == '\t') {
		d.at++
	}
}

// eat passes over c, if it comes next.
func (d *jsonText) eat(c byte) bool {
	d.space()
	if d.at == len(d.s) || d.s[d.at] != c {
		return false
	}
	d.at++
	return true
}

// quoted reads a text. It is a view unless it has escapes.
func (d *jsonText) quoted() (text string, ok bool) {
	if !d.eat('"') {
		return "", false
	}
	escaped := false
	for i := d.at; i < len(d.s); i++ {
		switch c := d.s[i]; {
		case c == '"':
			whole := d.s[d.at-1 : i+1]
			d.at = i + 1
			if !escaped {
				return whole[1 : len(whole)-1], true
			}
			err := json.Unmarshal([]byte(whole), &text)
			return text, err == nil && !hasHalves(whole)
		case c == '\\':
			escaped = true
			i++
		case c < ' ':
			return "", false
		}
	}
	return "", false
}

// hasHalves reports whether a quoted text that is JSON has an escaped half of a
// character without the other: no text, and the decoder would put another
// character there.
func hasHalves(quoted string) bool {
	for {
		i := strings.IndexByte(quoted, '\\')
		if i < 0 {
			return false
		}
		first := escapedUnit(quoted[i:])
		switch {
		case first < 0:
			quoted = quoted[i+2:]
		case !utf16.IsSurrogate(first):
			quoted = quoted[i+6:]
		case utf16.DecodeRune(first, escapedUnit(quoted[i+6:])) == utf8.RuneError:
			return true
		default:
			quoted = quoted[i+12:]
		}
	}
}

// escapedUnit is the number of the \u escape that s begins with, or -1.
func escapedUnit(s string) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

func (d *jsonText) text(path string) (string, error) {
	s, ok := d.quoted()
	if !ok {
		return "", fmt.Errorf("%s: a text is wanted", path)
	}
	return strings.Clone(s), nil
}

// texts reads a text or a list of texts.
func (d *jsonText) texts(path string) (list []string, err error) {
	if s, ok := d.quoted(); ok {
		return []string{strings.Clone(s)}, nil
	}
	if d.eat('[') {
		err = d.items(path, func() error {
			s, err := d.text(path)
			list = append(list, s)
			return err
		})
		if err != nil || len(list) > 0 {
			return list, err
		}
	}
	return nil, fmt.Errorf("%s: a text or a list of texts is wanted", path)
}

// whole reads a whole number.
func (d *jsonText) whole() (n uint64, ok bool) {
	d.space()
	end := d.at
	for end < len(d.s) && d.s[end] >= '0' && d.s[end] <= '9' {
		end++
	}
	digits := d.s[d.at:end]
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || digits != "0" && digits[0] == '0' || end < len(d.s) && strings.IndexByte(".eE", d.s[end]) >= 0 {
		return 0, false
	}
	d.at = end
	return n, true
}

// timeout reads a number of milliseconds; 0 is the host's own. More than the
// longest is the longest.
func (d *jsonText) timeout(path string) (time.Duration, error) {
	ms, ok := d.whole()
	switch {
	case !ok:
		return 0, fmt.Errorf("%s: a whole number of milliseconds is wanted", path)
	case ms == 0:
		return defaultTimeout, nil
	}
	return time.Duration(min(ms, uint64(longestTimeout/time.Millisecond))) * time.Millisecond, nil
}

// printable is a guest's word as an error may quote it.
func printable(s string) string {
	if len(s) > 64 {
		s = s[:64]
	}
	q := strconv.QuoteToASCII(s)
	return q[1 : len(q)-1]
}

// appendJSON appends s as a JSON text. What is not UTF-8 becomes U+FFFD.
func appendJSON(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	plain := 0 // where what needs nothing begins
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
		} else if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[plain:i]...)
		switch {
		case c >= utf8.RuneSelf:
			b = utf8.AppendRune(b, utf8.RuneError)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, '\\', c)
		}
		i++
		plain = i
	}
	return append(append(b, s[plain:]...), '"')
}

// bytesOf views s.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
