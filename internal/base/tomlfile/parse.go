package tomlfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// Parse reads a document of at most [DefaultMax] bytes. File is used in
// positions alone. Every error is an [*Error]; an empty document is an empty
// table.
func Parse(file string, data []byte) (*Table, error) {
	return ParseMax(file, data, DefaultMax)
}

// ParseMax is [Parse] with another bound on the size in bytes.
func ParseMax(file string, data []byte, max int) (*Table, error) {
	d := &document{file: file, data: data}
	if err := d.checkText(max); err != nil {
		return nil, err
	}
	d.indexLines()
	// The tree is made of the syntax alone. What TOML forbids beyond syntax
	// (one key twice, a table reopened) is left to the library, which knows
	// its rules; the tree is not used unless the library accepts the document.
	root, err := d.build()
	if err != nil {
		return nil, err
	}
	var decoded map[string]any
	if err := toml.Unmarshal(data, &decoded); err != nil {
		return nil, d.libraryError(err)
	}
	return root, nil
}

// A document is the text being parsed, with what is needed to say where a byte
// of it stands.
type document struct {
	file  string
	data  []byte
	lines []int // offset of the first byte of each line

	newest struct{ off, line, column int } // the place that was found last; line is an index of lines
	walked int                             // bytes that were looked at to find columns
}

func (d *document) checkText(max int) error {
	if len(d.data) > max {
		return &Error{
			Pos: Pos{File: d.file}, Msg: fmt.Sprintf("the file has %d bytes; at most %d are read", len(d.data), max),
		}
	}
	if bytes.HasPrefix(d.data, []byte("\xef\xbb\xbf")) {
		return &Error{
			Pos: Pos{d.file, 1, 1}, Msg: "the file begins with a byte order mark",
			Hint: "save it as UTF-8 without BOM",
		}
	}
	for off := 0; off < len(d.data); {
		r, n := utf8.DecodeRune(d.data[off:])
		if r == utf8.RuneError && n == 1 {
			d.indexLines()
			return d.errorf(off, "the file is not UTF-8 text: byte 0x%02x", d.data[off])
		}
		off += n
	}
	return nil
}

func (d *document) indexLines() {
	d.lines = append(d.lines[:0], 0)
	for i, c := range d.data {
		if c == '\n' {
			d.lines = append(d.lines, i+1)
		}
	}
}

// pos returns the place of a byte offset. Columns are counted from the place that
// was found last, where that is in the same line: a file of one line would take
// the square of its length.
func (d *document) pos(off int) Pos {
	off = min(max(off, 0), len(d.data))
	for off > 0 && off < len(d.data) && !utf8.RuneStart(d.data[off]) {
		off--
	}
	lo, hi := 0, len(d.lines)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; d.lines[mid] <= off {
			lo = mid
		} else {
			hi = mid
		}
	}
	at := &d.newest
	switch {
	case at.column == 0 || at.line != lo || off-d.lines[lo] < at.off-off:
		at.column = 1 + d.runes(d.lines[lo], off)
	case off >= at.off:
		at.column += d.runes(at.off, off)
	default:
		at.column -= d.runes(off, at.off)
	}
	at.off, at.line = off, lo
	return Pos{d.file, lo + 1, at.column}
}

func (d *document) runes(from, to int) int {
	d.walked += to - from
	return utf8.RuneCount(d.data[from:to])
}

func (d *document) errorf(off int, format string, args ...any) *Error {
	return &Error{Pos: d.pos(off), Msg: fmt.Sprintf(format, args...)}
}

// libraryError restates an error of the TOML library with a place of ours.
func (d *document) libraryError(err error) *Error {
	msg := strings.TrimPrefix(err.Error(), "toml: ")
	var at *toml.DecodeError
	if errors.As(err, &at) {
		row, col := at.Position()
		if row >= 1 && row <= len(d.lines) {
			return &Error{Pos: d.pos(d.lines[row-1] + col - 1), Msg: msg}
		}
	}
	return &Error{Pos: Pos{File: d.file}, Msg: msg}
}

func (d *document) syntaxError(err error) *Error {
	var at *unstable.ParserError
	if errors.As(err, &at) {
		// A highlight is a view of the document: the capacities differ by
		// the offset.
		off := cap(d.data) - cap(at.Highlight)
		if off < 0 || off > len(d.data) {
			off = len(d.data)
		}
		return d.incomplete(off, at.Message)
	}
	return &Error{Pos: Pos{File: d.file}, Msg: strings.TrimPrefix(err.Error(), "toml: ")}
}

// incomplete tells of an array or an inline table that has no end where it begins:
// the library does at the end of the document.
func (d *document) incomplete(off int, msg string) *Error {
	what, found := strings.CutSuffix(msg, " is incomplete")
	begin, end := "[", "]"
	if what == "inline table" {
		begin, end = "{", "}"
	} else if !found || what != "array" {
		return d.errorf(off, "%s", msg)
	}
	hint := "write " + end + " behind its last entry"
	for lines := bytes.Split(d.data[:off], []byte("\n")); len(lines) > 0; lines = lines[:len(lines)-1] {
		key, value, ok := strings.Cut(string(lines[len(lines)-1]), "=")
		if key = strings.TrimSpace(key); !ok || key == "" || strings.ContainsAny(key, " []{}#,\"'") ||
			!strings.HasPrefix(strings.TrimSpace(value), begin) {
			continue
		}
		if strings.Contains(value, end) {
			break // it has one
		}
		return &Error{Pos: Pos{d.file, len(lines), 1}, Msg: fmt.Sprintf("the %s of %s has no end", what, key), Hint: hint}
	}
	return &Error{Pos: d.pos(off), Msg: "the " + what + " has no end", Hint: hint}
}

// checkControl refuses what an operator cannot see in an editor and a C program
// would cut short. Tabs and line ends may stand in a string, not in a key.
func (d *document) checkControl(off int, s string, key bool) error {
	for _, r := range s {
		if !unicode.IsControl(r) || !key && (r == '\t' || r == '\n' || r == '\r') {
			continue
		}
		what := "a string"
		if key {
			what = "a key"
		}
		return d.errorf(off, "%s contains the control character %U", what, r)
	}
	return nil
}
