package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

const maxDepth = 64

// Decode reads one JSON document. A key that is there twice is refused: readers
// differ in which one they take.
func Decode(text []byte) (any, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := decode(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something stands behind the end of the document")
	}
	return v, nil
}

// Encode writes a document in one spelling: what was checked, and nothing that
// another reader could find in how it was written.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func decode(d *json.Decoder, depth int) (any, error) {
	t, err := d.Token()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("not JSON: it ends too early")
	}
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	switch t {
	case json.Delim('{'):
		return decodeObject(d, depth)
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := decode(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, end(d)
	}
	if n, ok := t.(json.Number); ok {
		if exact := number(n); exact != nil {
			return exact, nil
		}
		return nil, errors.New("a number with too many digits")
	}
	return t, nil
}

func decodeObject(d *json.Decoder, depth int) (any, error) {
	object := map[string]any{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("not JSON: %w", err)
		}
		name, ok := t.(string)
		if !ok {
			return nil, errors.New("not JSON: a key in quotes is wanted")
		}
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("the key %s is there twice", strconv.QuoteToASCII(name))
		}
		if object[name], err = decode(d, depth+1); err != nil {
			return nil, err
		}
	}
	return object, end(d)
}

// end passes over what closes an object or a list.
func end(d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	return nil
}
