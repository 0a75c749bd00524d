package printable

import (
	"strings"
	"unicode/utf8"
)

// Fold breaks the lines of a text between words where they are wider than so many
// columns, and begins each further line with indent. No word is broken, however long:
// it may be a path or an id, which somebody copies.
func Fold(text string, columns int, indent string) string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		for utf8.RuneCountInString(line) > columns {
			at := between(line, columns)
			if at < 0 {
				break
			}
			out, line = append(out, line[:at]), indent+line[at+1:]
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// between is the last blank of a line within so many columns, or else the first behind
// them; blanks that the line begins with are none. It is -1 where there is no other.
func between(line string, columns int) int {
	begin, found, n := len(line)-len(strings.TrimLeft(line, " ")), -1, 0
	for i, r := range line {
		if r == ' ' && i > begin {
			if n > columns && found >= 0 {
				return found
			}
			found = i
		}
		if n++; n > columns+1 && found >= 0 {
			return found
		}
	}
	return found
}
