package tomlfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"runloop.dev/rlp/internal/base/strictjson"
)

// ParseJSON reads a JSON document, which is one object, into the same tree as
// TOML, so that both are held to one strictness: keys to the letter and once,
// every value with its place. A null is of the kind [Null].
func ParseJSON(file string, data []byte, max int) (*Table, error) {
	d := &document{file: file, data: data}
	if err := d.checkText(max); err != nil {
		return nil, err
	}
	d.indexLines()
	root := &Table{}
	err := strictjson.Read(string(data), func(r *strictjson.Reader) error { return d.object(r, root) })
	if err != nil {
		return nil, d.jsonError(err)
	}
	return root, nil
}

// ParseJSONC is [ParseJSON] of a document with comments, and commas behind the last
// of a list, as editors have in their settings.
func ParseJSONC(file string, data []byte, max int) (*Table, error) {
	return ParseJSON(file, Plain(data), max)
}

// Plain is JSON with comments, and commas behind the last, as JSON without: each byte
// of them is a blank, so that all else stands where it stood.
func Plain(data []byte) []byte {
	out := Uncommented(data)
	comma := -1     // the last one, if nothing but blanks stand behind it
	last := byte(0) // of what is no blank
	for i := 0; i < len(out); i++ {
		c := out[i]
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			continue
		case c == '"':
			i = quoteEnd(out, i)
			comma = -1
		case c == ',' && !bytes.ContainsRune([]byte("{[:,\x00"), rune(last)):
			comma = i
		case (c == '}' || c == ']') && comma >= 0:
			out[comma], comma = ' ', -1
		default:
			comma = -1
		}
		last = c
	}
	return out
}

// Uncommented is JSON with comments as JSON without: each byte of them is a blank.
func Uncommented(data []byte) []byte {
	out := bytes.Clone(data)
	for i := 0; i < len(out); i++ {
		end := i
		switch {
		case out[i] == '"':
			i = quoteEnd(out, i)
			continue
		case bytes.HasPrefix(out[i:], []byte("//")):
			if end = bytes.IndexByte(out[i:], '\n'); end < 0 {
				end = len(out) - i
			}
		case bytes.HasPrefix(out[i:], []byte("/*")):
			if end = bytes.Index(out[i+2:], []byte("*/")); end < 0 {
				return out // which the reader refuses there
			}
			end += 4
		default:
			continue
		}
		for end += i; i < end; i++ {
			if out[i] != '\n' && out[i] != '\r' {
				out[i] = ' '
			}
		}
		i--
	}
	return out
}

// quoteEnd is where the string ends that begins at a quotation mark; one that does
// not ends with its line.
func quoteEnd(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"' && text[i] != '\n'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}

func (d *document) jsonError(err error) error {
	var at *strictjson.Error
	if !errors.As(err, &at) {
		return err
	}
	var own *Error
	if errors.As(err, &own) {
		own.Field = at.Path
		return own
	}
	msg := at.Problem
	if strings.HasPrefix(msg, "not JSON") {
		msg = "this is " + msg
	}
	e := d.errorf(at.Offset, "%s", msg)
	e.Field = at.Path
	return e
}

func (d *document) object(r *strictjson.Reader, t *Table) error {
	t.Pos = d.pos(r.Offset())
	return r.Members(func(r *strictjson.Reader, key string) error {
		at := r.KeyOffset()
		if err := d.checkControl(at, key, true); err != nil {
			return err
		}
		e := Entry{Key: key, Pos: d.pos(at), start: at}
		var err error
		e.Value, err = d.jsonValue(r)
		t.add(e)
		return err
	})
}

func (d *document) jsonValue(r *strictjson.Reader) (v Value, err error) {
	at := r.Offset()
	v.Pos, v.start = d.pos(at), at
	defer func() { v.end = at + len(bytes.TrimRight(d.data[at:max(at, min(r.Offset(), len(d.data)))], " \t\r\n")) }()
	switch r.Kind() {
	case '{':
		v.Kind, v.Table = TableKind, &Table{}
		return v, d.object(r, v.Table)
	case '[':
		v.Kind = Array
		err = r.Items(func(r *strictjson.Reader, _ int) error {
			item, err := d.jsonValue(r)
			v.Items = append(v.Items, item)
			return err
		})
	case '"':
		v.Kind = String
		if v.Str, err = r.Text(); err == nil {
			err = d.checkControl(at, v.Str, false)
		}
	case '0':
		return v, d.number(r, &v)
	case 't':
		v.Kind = Bool
		v.Bool, err = r.Bool()
	default:
		v.Kind = Null
		err = r.Any()
	}
	return v, err
}

// number reads what TOML would: a whole number of 64 bits, or a decimal one.
func (d *document) number(r *strictjson.Reader, v *Value) error {
	text, err := r.Number()
	if err != nil {
		return err
	}
	if strings.ContainsAny(text, ".eE") {
		v.Kind = Float
		v.Float, err = strconv.ParseFloat(text, 64)
		return err
	}
	v.Kind = Integer
	if v.Int, err = strconv.ParseInt(text, 10, 64); err != nil {
		return d.errorf(r.Offset()-len(text), "the number %s is too large", strconv.Quote(text[:min(len(text), 32)]))
	}
	return nil
}

// JSON is the value as JSON, objects sorted by key.
func (v *Value) JSON() (json.RawMessage, error) { return json.Marshal(v.Plain()) }
