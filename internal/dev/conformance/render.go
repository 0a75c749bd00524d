package main

import (
	"bytes"
	"fmt"
	"strings"
)

// preface explains the table to whoever opens it first.
const preface = `# Conformance

What the project promises, row by row, and the tests that hold each row: tests that would fail were the row broken.
The rows are ` + "`docs/rows.tsv`" + `; a test claims one with ` + "`//rlp:holds R7 R36`" + ` directly above its function, a script of
` + "`cmd/rlp/testdata/script`" + ` with ` + "`# holds: R1 R2`" + `. This file is written by ` + "`make conformance`" + `, and ` + "`make test`" + ` fails while it is stale.
A row that is not held as it is written is in ` + "`docs/unsupported.tsv`" + `, with the platform that would hold it, or with what is done instead and why.

`

// tables are the letters that rows begin with, in the order of the document,
// and what each is about.
var tables = []struct{ letter, title string }{
	{"R", "policy.caps: reading, narrowing, recording"},
	{"A", "Request grants, limits and the service"},
	{"Y", "Capability profiles, taint and delegation"},
	{"K", "Tenants, lanes, limits and secrets"},
	{"C", "Capability strings"},
	{"P", "Laws, by property tests and fuzzing"},
	{"D", "Embedding, and the first steps of who is new"},
	{"N", "Programs and MCP servers under a policy"},
}

// render writes the document.
func render(rows []row, held map[string][]holder, unsupported map[string]string) []byte {
	var b bytes.Buffer
	b.WriteString(preface)
	b.WriteString("| table | rows | held | unsupported | open |\n|---|---|---|---|---|\n")
	for _, t := range tables {
		all, n, not := 0, 0, 0
		for _, r := range rows {
			if strings.HasPrefix(r.id, t.letter) {
				all++
				n += min(1, len(held[r.id]))
				not += min(1, len(unsupported[r.id]))
			}
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", t.letter, all, n, not, all-n-not)
	}
	for _, t := range tables {
		fmt.Fprintf(&b, "\n## %s. %s\n\n| row | statement | held by |\n|---|---|---|\n", t.letter, t.title)
		for _, r := range rows {
			if strings.HasPrefix(r.id, t.letter) {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", r.id, r.statement, cell(held[r.id], unsupported[r.id]))
			}
		}
	}
	return b.Bytes()
}

// cell names the holders of one row, each with a link to its file, or says
// where it could be held.
func cell(hs []holder, where string) string {
	if where != "" {
		return "unsupported: " + where
	}
	if len(hs) == 0 {
		return "open"
	}
	links := make([]string, len(hs))
	for i, h := range hs {
		links[i] = fmt.Sprintf("[%s](../%s)", h.name, h.file)
	}
	return strings.Join(links, ", ")
}
