package tomlfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
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
	r := newJSONReader(d)
	v, err := r.value(0)
	if err != nil {
		return nil, err
	}
	if v.Kind != TableKind {
		return nil, &Error{Pos: v.Pos, Msg: "the document is " + v.Kind.String() + ", not an object", Hint: "begin with {"}
	}
	end := int(r.dec.InputOffset())
	if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, d.errorf(r.next(end), "something stands behind the end of the object")
	}
	return v.Table, nil
}

// A jsonReader makes the tree of a document of JSON.
type jsonReader struct {
	*document
	dec *json.Decoder
}

func newJSONReader(d *document) *jsonReader {
	r := &jsonReader{document: d, dec: json.NewDecoder(bytes.NewReader(d.data))}
	r.dec.UseNumber()
	return r
}

// next is where the value begins that follows an offset.
func (r *jsonReader) next(off int) int {
	for off < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[off]) >= 0 {
		off++
	}
	return off
}

// token reads the next token and says where it begins.
func (r *jsonReader) token() (json.Token, int, error) {
	at := r.next(int(r.dec.InputOffset()))
	t, err := r.dec.Token()
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, at, r.errorf(at, "this is not JSON: %s", strings.TrimPrefix(syntax.Error(), "json: "))
	case err != nil:
		return nil, at, r.errorf(len(r.data), "this is not JSON: it ends too early")
	}
	return t, at, nil
}

func (r *jsonReader) value(depth int) (Value, error) {
	t, at, err := r.token()
	if err != nil {
		return Value{}, err
	}
	if depth > maxDepth {
		return Value{}, r.errorf(at, "nested deeper than %d", maxDepth)
	}
	v := Value{Pos: r.pos(at)}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			v.Kind = TableKind
			v.Table, err = r.object(v.Pos, depth)
			return v, err
		}
		v.Kind = Array
		v.Items, err = r.array(depth)
		return v, err
	case string:
		v.Kind, v.Str = String, t
		return v, r.checkControl(at, t, false)
	case json.Number:
		return v, r.number(&v, at, t.String())
	case bool:
		v.Kind, v.Bool = Bool, t
	case nil:
		v.Kind = Null
	}
	return v, nil
}

func (r *jsonReader) object(pos Pos, depth int) (*Table, error) {
	t := &Table{Pos: pos}
	for r.dec.More() {
		key, at, err := r.token()
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if !ok {
			return nil, r.errorf(at, "this is not JSON: a key in quotes is wanted")
		}
		if err := r.checkControl(at, name, true); err != nil {
			return nil, err
		}
		place := r.pos(at)
		if e, twice := t.Get(name); twice {
			return nil, &Error{Pos: place, Msg: fmt.Sprintf("the key %s is there twice", strconv.Quote(name)), Hint: "the first one is at " + e.Pos.String(), Field: name}
		}
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, under(name, err)
		}
		t.add(Entry{Key: name, Pos: place, Value: v})
	}
	_, _, err := r.token() // the closing brace
	return t, err
}

func (r *jsonReader) array(depth int) (items []Value, err error) {
	for r.dec.More() {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, under("["+strconv.Itoa(len(items))+"]", err)
		}
		items = append(items, v)
	}
	_, _, err = r.token() // the closing bracket
	return items, err
}

// number reads what TOML would: a whole number of 64 bits, or a decimal one.
func (r *jsonReader) number(v *Value, at int, text string) error {
	var err error
	if strings.ContainsAny(text, ".eE") {
		v.Kind = Float
		v.Float, err = strconv.ParseFloat(text, 64)
	} else {
		v.Kind = Integer
		v.Int, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil {
		return r.errorf(at, "the number %s is too large", strconv.Quote(text[:min(len(text), 32)]))
	}
	return nil
}

// JSON is the value as JSON, objects sorted by key.
func (v *Value) JSON() (json.RawMessage, error) { return json.Marshal(v.Plain()) }
