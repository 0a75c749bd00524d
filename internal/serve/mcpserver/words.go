package mcpserver

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	shown "runloop.dev/rlp/internal/base/printable"
)

// Bounds of what is told, in bytes.
const (
	mostLine   = 300      // of one line of a list
	mostText   = 8 << 10  // of one text
	mostTail   = 4 << 10  // of what was printed last
	mostResult = 1 << 20  // of a result as structure
	mostSaid   = 64 << 10 // of an answer of a tool that reads
)

// short is the beginning of s, and says that it is one.
func short(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const more = " [...]"
	cut := max(0, most-len(more))
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + more
}

// tail is the end of s.
func tail(s string, most int) (string, bool) {
	if len(s) <= most {
		return s, false
	}
	from := len(s) - most
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return s[from:], true
}

// printable takes out what a terminal or a reader would take for something else
// than letters.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', joins(r):
			return r
		case shown.Hidden(r):
			return utf8.RuneError
		}
		return r
	}, s)
}

// joins reports whether r is one of the two letters that nobody sees and that
// Persian, Hindi and others are not written without.
func joins(r rune) bool { return r == '\u200c' || r == '\u200d' }

// plainJSON is a document in which what printable takes out is written as JSON
// writes it: the document stays the same.
func plainJSON(p []byte) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(string(p), "\ufffd") {
		switch {
		case r == '\n', r == '\t', joins(r), !shown.Hidden(r):
			b.WriteRune(r)
		case r < ' ': // of which only what separates can stand there
			b.WriteByte(' ')
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
	}
	return b.String()
}

// oneLine is s on one line.
func oneLine(s string) string {
	return strings.Join(strings.Fields(printable(s)), " ")
}
