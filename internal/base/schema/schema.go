// Package schema checks JSON against JSON Schemas that nobody here wrote.
//
// A schema comes with the code that it bounds, so it is not trusted to be
// cheap: checking takes a number of steps that is bounded, whatever schema and
// document are, and what takes more is refused. What a schema says and this
// package does not know refuses the schema; nothing of it is passed over, but
// for what only describes. A schema refers to itself and to the files it was
// compiled with, and to nothing else.
package schema

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// MaxSteps bounds one check.
const MaxSteps = 100_000

// maxNodes bounds the schemas within a schema.
const maxNodes = 20_000

// A Schema is ready to check documents. The zero value takes everything.
type Schema struct{ root *node }

// A node is one schema within a schema; nil takes everything.
type node struct {
	never bool // the schema false

	ref   *node
	types []string
	enum  []any // const is an enum of one
	has   bool  // enum is there, and may be empty

	properties map[string]*node
	patterns   []patterned
	additional *node // what no property and no pattern names
	names      *node
	required   []string
	members    span

	prefix []*node
	items  *node
	length span // of a list
	unique bool

	text    span // runes of a text
	pattern *regexp.Regexp

	min, max, above, below, multiple *big.Rat

	all, any, one []*node
	not           *node
	cond          *node
	then, other   *node
}

type patterned struct {
	re   *regexp.Regexp
	node *node
}

// A span is how many of something there may be; max is negative for no bound.
type span struct{ min, max int64 }

func (s span) has(n int) bool { return int64(n) >= s.min && (s.max < 0 || int64(n) <= s.max) }

// An Error is what is wrong in a document or in a schema, and where: the zero
// path is the whole of it, "to[1].name" a part.
type Error struct{ Path, Problem string }

func (e *Error) Error() string {
	if e.Path == "" {
		return e.Problem
	}
	return e.Path + ": " + e.Problem
}

func wrong(path, format string, args ...any) error {
	return &Error{path, fmt.Sprintf(format, args...)}
}

func key(path, name string) string {
	if name == "" || !plain(name) {
		return path + "[" + strconv.QuoteToASCII(name) + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

func plain(s string) bool {
	for _, c := range s {
		if !(c == '_' || c == '-' || c == '$' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9') {
			return false
		}
	}
	return len(s) <= 64
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case *num:
		if v.whole {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// A num is a number of a document: exact, and as it was written.
type num struct {
	text  string
	value *big.Rat
	whole bool
}

// MarshalJSON writes the number as it was.
func (n *num) MarshalJSON() ([]byte, error) { return []byte(n.text), nil }

// number is n, nil for one with more digits than any use has.
func number(text string) *num {
	const most = 400
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if exp, err := strconv.Atoi(text[i+1:]); err != nil || exp > most || exp < -most {
			return nil
		}
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil
	}
	return &num{text, r, r.IsInt()}
}
