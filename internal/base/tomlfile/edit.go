package tomlfile

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Edit returns the text of a document in which the key at path has v, written as
// literal. All else of the text stays as it is, comments too. It refuses a
// document in which that is not to be had by writing one value.
func Edit(file string, data []byte, path []string, literal string, v Value) ([]byte, error) {
	root, err := Parse(file, data)
	if err != nil {
		return nil, err
	}
	at := root.place(data, path)
	text := slices.Concat(data[:at.start], []byte(at.before+literal+at.after), data[at.end:])
	if err := root.Set(path, v); err != nil {
		return nil, err
	}
	now, err := Parse(file, text)
	if err != nil || !reflect.DeepEqual(now.Plain(), root.Plain()) {
		return nil, &Error{
			Pos: Pos{File: file}, Msg: bare(path...) + " cannot be set without rewriting what stands there",
			Hint: "write " + bare(path...) + " = " + literal + " by hand",
		}
	}
	return text, nil
}

// Literal writes a string as TOML does.
func Literal(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b) // what JSON escapes, TOML reads alike
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`)
}

// A spot is what an edit replaces, and what it writes around the value.
type spot struct {
	start, end    int
	before, after string
}

// place finds where the value of path stands, or where a line for it goes: behind
// the header of its table, or at the end under a header of its own.
func (t *Table) place(data []byte, path []string) spot {
	table, last := t, len(path)-1
	for _, key := range path[:last] {
		e, ok := table.Get(key)
		if !ok || e.Value.Table == nil {
			table = nil // of which Get has nothing
			break
		}
		table = e.Value.Table
	}
	if e, ok := table.Get(path[last]); ok && e.Value.end > 0 {
		return spot{start: e.Value.start, end: e.Value.end}
	}
	end := len(data)
	line := bare(path[last]) + " = "
	if table != nil && table.header {
		if at := lineAfter(data, table.Pos.Line); at < end || bytes.HasSuffix(data, []byte("\n")) {
			return spot{at, at, line, "\n"}
		}
		return spot{end, end, "\n" + line, "\n"}
	}
	if last > 0 {
		line = "[" + bare(path[:last]...) + "]\n" + line
	}
	switch {
	case end > 0 && data[end-1] != '\n':
		line = "\n\n" + line
	case end > 0:
		line = "\n" + line
	}
	return spot{end, end, line, "\n"}
}

// lineAfter is where the line behind the n-th begins, or the end.
func lineAfter(data []byte, n int) int {
	at := 0
	for ; n > 0; n-- {
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			return len(data)
		}
		at += i + 1
	}
	return at
}

// bare is a dotted key, in quotes where it needs some.
func bare(path ...string) string {
	var parts []string
	for _, key := range path {
		if key == "" || strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			key = Literal(key)
		}
		parts = append(parts, key)
	}
	return strings.Join(parts, ".")
}
