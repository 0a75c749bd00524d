package main

import (
	"fmt"
	"io"
	"os"

	shown "runloop.dev/rlp/internal/base/printable"
)

// printable keeps what agents and files say from steering the terminal, and from
// looking like something else.
func printable(s string) string { return shown.Line(s) }

// printableLines is printable line by line.
func printableLines(s string) string { return shown.Lines(s) }

// fitted is a message to a person on w: on a terminal, in lines of at most a page or of
// the terminal, which break no path and no id.
func fitted(w io.Writer, text string) string {
	if !isTerminal(w) {
		return text
	}
	columns := pageWidth
	if f, ok := w.(*os.File); ok {
		if n := columnsOf(f); n >= pageWidth/2 {
			columns = min(columns, n)
		}
	}
	return shown.Fold(text, columns, "     ")
}

// none reports whether a list has nothing in it, and says so to a person: it prints no
// line.
func none(a *app, n int, text string) bool {
	if n == 0 && !a.json && !a.quiet {
		a.say(text)
	}
	return n == 0
}

// counted is a number and what it counts.
func counted[N int | int64 | uint64](n N, one string) string { return shown.Count(n, one) }

// answer prints what came of a command: doc as JSON where that is asked for, else
// one line, unless nothing but results and errors is wanted.
func answer(a *app, doc any, format string, args ...any) error {
	switch {
	case a.json:
		return a.printJSON(doc)
	case !a.quiet:
		fmt.Fprintf(a.stdout, format+"\n", args...)
	}
	return nil
}
