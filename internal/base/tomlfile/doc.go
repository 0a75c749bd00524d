// Package tomlfile reads TOML so that nothing in it is taken for something
// else.
//
// A document becomes a tree that keeps every key exactly as it was written and
// the line and column of every key and value. Nothing is decoded into structs:
// the TOML packages of this language match struct fields without regard to
// case, so that FS = [...] would overwrite fs = [], and a policy would say one
// thing and mean another.
//
// [ReadFile] is the strict way to read a file of the operator's. It tells "there
// is no such file" from every other trouble, because a restriction that cannot
// be read must never count as one that was not made.
package tomlfile

import (
	"fmt"
	"time"
)

// DefaultMax is the size in bytes above which [Parse] and [ReadFile] refuse a
// document when the caller names no other bound.
const DefaultMax = 64 << 10

// maxDepth bounds how deep tables and arrays may be nested, dotted keys and
// headers included.
const maxDepth = 64

// A Pos is a place in a document. Line and Column count from 1, columns in
// characters. The zero Pos is no place.
type Pos struct {
	File   string
	Line   int
	Column int
}

// String returns "file:line:column", without what is not known.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// A Kind is the type of a [Value].
type Kind uint8

// The kinds. A date or a time without a time zone is a DateTime too, with a
// zero Time and its text in Str.
const (
	String Kind = iota
	Integer
	Float
	Bool
	DateTime
	Array
	TableKind
	Null // of JSON alone
)

// String returns what an operator calls the kind, with its article.
func (k Kind) String() string {
	return [...]string{
		"a string", "an integer", "a decimal number", "a boolean", "a date", "an array", "a table", "null",
	}[k]
}

// A Value is one value. Only the field that belongs to its Kind is set.
type Value struct {
	Kind  Kind
	Pos   Pos
	Str   string // String; for DateTime the text as written
	Int   int64
	Float float64
	Bool  bool
	Time  time.Time
	Items []Value
	Table *Table

	start, end int // where it stands in the text, in bytes; no end: in none
}

// A Table is a table: its entries in the order of the file. Pos is that of its
// header, its opening brace or the dotted key that made it.
type Table struct {
	Pos     Pos
	Entries []Entry

	index  map[string]int
	header bool // defined by a [header] of its own
}

// An Entry is one key of a table and its value. Key is exactly what was
// written, unquoted.
type Entry struct {
	Key   string
	Pos   Pos
	Value Value

	start int // of the key, in bytes
}

// Start is where the key stands in the text, in bytes: its last part, where it is
// dotted.
func (e *Entry) Start() int { return e.start }

// Span is where the value stands in the text, in bytes; 0 and 0 where it stands in
// several places, as a table under headers does.
func (v *Value) Span() (start, end int) { return v.start, v.end }

// Get returns the entry of a key, matched to the byte.
func (t *Table) Get(key string) (*Entry, bool) {
	if t == nil {
		return nil, false
	}
	i, ok := t.index[key]
	if !ok {
		return nil, false
	}
	return &t.Entries[i], true
}

// Set puts a value at a path of keys, in place of what was there, making the
// tables on the way. It is for laying settings from elsewhere over a document,
// and refuses to descend into what is no table.
func (t *Table) Set(path []string, v Value) error {
	key := path[0]
	if key == "" {
		return &Error{Pos: v.Pos, Msg: "the name has an empty part"}
	}
	e, ok := t.Get(key)
	if len(path) == 1 {
		if ok {
			e.Pos, e.Value = v.Pos, v
		} else {
			t.add(Entry{Key: key, Pos: v.Pos, Value: v})
		}
		return nil
	}
	if !ok {
		sub := &Table{Pos: v.Pos}
		e = t.add(Entry{Key: key, Pos: v.Pos, Value: Value{Kind: TableKind, Pos: v.Pos, Table: sub}})
	}
	if e.Value.Kind != TableKind {
		return &Error{Pos: v.Pos, Msg: fmt.Sprintf("%s is %s, not a table", key, e.Value.Kind)}
	}
	return e.Value.Table.Set(path[1:], v)
}

// Put adds an entry whose key t does not have.
func (t *Table) Put(e Entry) { t.add(e) }

// Plain returns the table as maps, slices and scalars, the way a JSON decoder
// would have made it. Integers are int64; dates are strings.
func (t *Table) Plain() map[string]any { return t.plain(asWritten) }

// Plain returns the value as [Table.Plain] does.
func (v *Value) Plain() any { return v.plain(asWritten) }

func asWritten(v *Value) any { return v.Str }

func (t *Table) plain(date func(*Value) any) map[string]any {
	m := make(map[string]any, len(t.Entries))
	for i := range t.Entries {
		m[t.Entries[i].Key] = t.Entries[i].Value.plain(date)
	}
	return m
}

func (v *Value) plain(date func(*Value) any) any {
	switch v.Kind {
	case Integer:
		return v.Int
	case Float:
		return v.Float
	case Bool:
		return v.Bool
	case Array:
		items := make([]any, len(v.Items))
		for i := range v.Items {
			items[i] = v.Items[i].plain(date)
		}
		return items
	case TableKind:
		return v.Table.plain(date)
	case Null:
		return nil
	case DateTime:
		return date(v)
	default:
		return v.Str
	}
}

func (t *Table) add(e Entry) *Entry {
	if t.index == nil {
		t.index = make(map[string]int)
	}
	t.index[e.Key] = len(t.Entries)
	t.Entries = append(t.Entries, e)
	return &t.Entries[len(t.Entries)-1]
}

// An Error is something wrong with a document and where. Hint says what to
// write instead; it may be empty.
type Error struct {
	Pos  Pos
	Msg  string
	Hint string
	// Field is the path of the value in a document of JSON, such as
	// "limits.max_steps" or "deny[2]"; empty where it is about no value.
	Field string
}

// Error returns "file:line:column: message (hint)".
func (e *Error) Error() string {
	s := e.Msg
	if p := e.Pos.String(); p != "" {
		s = p + ": " + s
	}
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}
