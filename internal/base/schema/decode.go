package schema

import (
	"bytes"
	"encoding/json"
	"errors"

	"runloop.dev/rlp/internal/base/strictjson"
)

// Decode reads one JSON document, with its numbers as they are written.
func Decode(text []byte) (v any, err error) {
	err = strictjson.Read(string(text), func(r *strictjson.Reader) error {
		v, err = decode(r)
		return err
	})
	return v, err
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

func decode(r *strictjson.Reader) (any, error) {
	switch r.Kind() {
	case '{':
		object := map[string]any{}
		return object, r.Members(func(r *strictjson.Reader, key string) (err error) {
			object[key], err = decode(r)
			return err
		})
	case '[':
		list := []any{}
		err := r.Items(func(r *strictjson.Reader, _ int) error {
			v, err := decode(r)
			list = append(list, v)
			return err
		})
		return list, err
	case '"':
		return r.Text()
	case '0':
		text, err := r.Number()
		if exact := number(text); err != nil || exact != nil {
			return exact, err
		}
		return nil, errors.New("a number with too many digits")
	case 't':
		return r.Bool()
	}
	return nil, r.Any()
}
