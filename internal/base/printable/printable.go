// Package printable shows text that somebody else chose, an agent most of all:
// what a reader sees is what is there.
//
// What steers a terminal, turns the reading direction, separates lines or is not
// seen at all has one definition, [Hidden], for all that is printed.
package printable

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Hidden reports whether r would not be seen as itself in a line of text: control
// and format characters (tags, turns of direction, joiners), separators of lines
// and paragraphs, what has no meaning agreed on, and what is left out when it is
// drawn. The blank of braille is drawn as nothing and is no blank.
func Hidden(r rune) bool {
	if ' ' <= r && r < 0x7f {
		return false
	}
	return !unicode.IsGraphic(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point,
		unicode.Variation_Selector) || r == '\u2800'
}

// Line is s in one line: what is hidden is written as Go writes it in a string,
// such as \n, \x1b or \u200b.
func Line(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			b.Write(AppendByte(nil, s[i]))
		} else {
			b.Write(AppendRune(nil, r))
		}
		i += n
	}
	return b.String()
}

func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

const digits = "0123456789abcdef"

// AppendRune appends r as [Line] shows it.
func AppendRune(b []byte, r rune) []byte {
	switch {
	case !Hidden(r):
		return utf8.AppendRune(b, r)
	case r == '\n':
		return append(b, `\n`...)
	case r == '\t':
		return append(b, `\t`...)
	case r == '\r':
		return append(b, `\r`...)
	case r < utf8.RuneSelf:
		return AppendByte(b, byte(r))
	}
	b, width := append(b, `\u`...), 4
	if r > 0xffff {
		b, width = append(b[:len(b)-1], 'U'), 8
	}
	for i := width - 1; i >= 0; i-- {
		b = append(b, digits[r>>(4*i)&15])
	}
	return b
}

// AppendByte appends a byte that is no text as [Line] shows it.
func AppendByte(b []byte, c byte) []byte {
	return append(b, '\\', 'x', digits[c>>4], digits[c&15])
}

// Lines is Line line by line; what follows the first line is indented, so that no
// text from a bundle begins a line of its own.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Line(lines[i])
		if i > 0 && !strings.HasPrefix(lines[i], " ") {
			lines[i] = "  " + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}
