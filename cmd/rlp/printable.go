package main

import (
	"fmt"

	shown "runloop.dev/rlp/internal/base/printable"
)

// printable keeps what agents and files say from steering the terminal, and from
// looking like something else.
func printable(s string) string { return shown.Line(s) }

// printableLines is printable line by line.
func printableLines(s string) string { return shown.Lines(s) }

// none says to a person that a list has nothing in it, which prints no line.
func none(a *app, n int, text string) {
	if n == 0 && !a.json && !a.quiet {
		fmt.Fprintln(a.stderr, "rlp: "+text)
	}
}

// counted is a number and what it counts.
func counted[N int | int64 | uint64](n N, one string) string { return shown.Count(n, one) }
