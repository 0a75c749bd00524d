package main

import shown "runloop.dev/rlp/internal/base/printable"

// printable keeps what agents and files say from steering the terminal, and from
// looking like something else.
func printable(s string) string { return shown.Line(s) }

// printableLines is printable line by line.
func printableLines(s string) string { return shown.Lines(s) }

// counted is a number and what it counts.
func counted[N int | int64 | uint64](n N, one string) string { return shown.Count(n, one) }
