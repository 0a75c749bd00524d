package strictjson

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An Error is what is wrong at one place of a document.
type Error struct {
	Path         string // such as limits.fuel or deny[2]; "" is the document itself
	Offset       int    // in bytes
	Line, Column int    // counted from 1, columns in characters
	Problem      string
	Err          error // of who reads a value; nil: the document breaks a rule
}

func (e *Error) Error() string {
	path := e.Path
	if path != "" {
		path += ": "
	}
	return path + e.Why()
}

// Why is the error without its path.
func (e *Error) Why() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return e.Problem + " (" + placeText(e.Line, e.Column) + ")"
}

// Unwrap returns the error of who reads a value.
func (e *Error) Unwrap() error { return e.Err }

func (r *Reader) wrong(problem string) error { return r.wrongAt(r.Offset(), problem) }

func (r *Reader) wrongAt(offset int, problem string) error {
	e := &Error{Offset: offset, Problem: problem}
	e.Line, e.Column = place(r.text, offset)
	return e
}

// wanted is an error where another value stands, or none any more.
func (r *Reader) wanted(what string) error {
	if r.Offset() == len(r.text) {
		what = "not JSON: it ends too early"
	}
	return r.wrong(what)
}

func (r *Reader) syntax(wanted string) error { return r.wanted("not JSON: " + wanted) }

func (r *Reader) tooDeep() error {
	return r.wrongAt(r.at-1, fmt.Sprintf("more than %d levels of lists and objects, which not every reader takes; "+
		"write what is deeper as a text", r.most))
}

func (r *Reader) tooMany() error { return r.wrong("more values than a document may have") }

func (r *Reader) under(step string, from int, err error) error {
	if _, ok := err.(*Error); !ok { //nolint:errorlint // one that another error wraps is of another document
		e := &Error{Offset: from, Problem: err.Error(), Err: err}
		e.Line, e.Column = place(r.text, from)
		err = e
	}
	return Under(step, err)
}

// Under puts a step before the path of an error.
func Under(step string, err error) error {
	const most = 512
	e, ok := err.(*Error) //nolint:errorlint // as above
	switch {
	case !ok:
		return &Error{Path: step, Problem: err.Error(), Err: err}
	case len(e.Path) > most: // it is long enough to be found by
	case e.Path == "" || e.Path[0] == '[':
		e.Path = step + e.Path
	default:
		e.Path = step + "." + e.Path
	}
	return e
}

func place(text string, offset int) (line, column int) {
	before := text[:offset]
	start := strings.LastIndexByte(before, '\n') + 1
	return 1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[start:])
}

func placeText(line, column int) string { return fmt.Sprintf("line %d, column %d", line, column) }

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// Shown is a key as errors show it: plain, or in quotes, and not whole if it is long.
func Shown(key string) string {
	const most = 64
	if len(key) > most {
		return Shown(strings.ToValidUTF8(key[:most], "")) + "..."
	}
	special := func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`."[]`, r) }
	if key == "" || strings.ContainsFunc(key, special) {
		return strconv.QuoteToASCII(key)
	}
	return key
}
