// Package jsonlite writes JSON and reads flat JSON without reflection.
//
// encoding/json is right wherever a megabyte does not matter; in a guest module
// it is a third of the size and is decoded at every launch.
package jsonlite

import (
	"strconv"
	"unicode/utf8"
)

// A Writer builds one JSON value in memory. The zero Writer is ready and
// compact. Commas, line breaks and indentation are its own doing; that keys are
// only written in objects and every object and array is ended is the caller's.
type Writer struct {
	Indent string // what a level is indented by; "" writes one line

	buf    []byte
	open   []byte // the closing bytes of what is open, outermost first
	filled bool   // the innermost open value has an element
	keyed  bool   // a key was written and waits for its value
}

// Bytes returns what was written so far. It stays the Writer's own.
func (w *Writer) Bytes() []byte { return w.buf }

// Object begins an object.
func (w *Writer) Object() { w.begin('{', '}') }

// Array begins an array.
func (w *Writer) Array() { w.begin('[', ']') }

// End ends the innermost object or array.
func (w *Writer) End() {
	last := len(w.open) - 1
	c := w.open[last]
	w.open = w.open[:last]
	if w.filled {
		w.line()
	}
	w.buf = append(w.buf, c)
	w.filled = true
}

// Key begins a member of an object; the next call writes its value.
func (w *Writer) Key(name string) *Writer {
	w.next()
	w.buf = appendString(w.buf, name)
	w.buf = append(w.buf, ':')
	if w.Indent != "" {
		w.buf = append(w.buf, ' ')
	}
	w.keyed = true
	return w
}

// String writes a text. What is not UTF-8 becomes U+FFFD; control and bidi
// characters are escaped.
func (w *Writer) String(s string) {
	w.next()
	w.buf = appendString(w.buf, s)
}

// Int writes a whole number.
func (w *Writer) Int(n int64) {
	w.next()
	w.buf = strconv.AppendInt(w.buf, n, 10)
}

// Bool writes true or false.
func (w *Writer) Bool(b bool) {
	w.next()
	w.buf = strconv.AppendBool(w.buf, b)
}

// Strings writes an array of texts, never null.
func (w *Writer) Strings(list []string) {
	w.Array()
	for _, s := range list {
		w.String(s)
	}
	w.End()
}

func (w *Writer) begin(open, end byte) {
	w.next()
	w.buf = append(w.buf, open)
	w.open = append(w.open, end)
	w.filled = false
}

// next makes room for one more element or for the value of a key.
func (w *Writer) next() {
	if w.keyed {
		w.keyed = false
		w.filled = true
		return
	}
	if len(w.open) == 0 {
		return
	}
	if w.filled {
		w.buf = append(w.buf, ',')
	}
	w.line()
	w.filled = true
}

func (w *Writer) line() {
	if w.Indent == "" {
		return
	}
	w.buf = append(w.buf, '\n')
	for range w.open {
		w.buf = append(w.buf, w.Indent...)
	}
}

func appendString(buf []byte, s string) []byte {
	const hex = "0123456789abcdef"
	buf = append(buf, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			buf = append(buf, '\\', byte(r))
		case r == '\n':
			buf = append(buf, '\\', 'n')
		case r == '\t':
			buf = append(buf, '\\', 't')
		case unprintable(r):
			buf = append(buf, '\\', 'u', hex[r>>12], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		default:
			buf = utf8.AppendRune(buf, r)
		}
	}
	return append(buf, '"')
}

// unprintable reports whether r is a control character, a line separator or a
// bidi control: what is written is often shown on a terminal, which they steer.
func unprintable(r rune) bool {
	return r < 0x20 || r >= 0x7f && r <= 0x9f || r == 0x61c || r == 0x200e || r == 0x200f ||
		r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
