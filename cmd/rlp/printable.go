package main

import (
	"strings"

	shown "runloop.dev/rlp/internal/printable"
)

// printable keeps what agents and files say from steering the terminal, and from
// looking like something else.
func printable(s string) string { return shown.Line(s) }

// printableLines is printable line by line; what follows the first line is
// indented, so that no text from a bundle begins a line of its own.
func printableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
		if i > 0 && !strings.HasPrefix(lines[i], " ") {
			lines[i] = "  " + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}
