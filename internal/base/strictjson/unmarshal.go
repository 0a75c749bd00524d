package strictjson

import (
	"encoding"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// Check holds a document to the rules.
func Check(text []byte, options ...Option) error {
	return Read(view(text), (*Reader).Any, options...)
}

// Unmarshal reads a document into what v points to, which gets it as encoding/json
// would give it, and nothing if anything is wrong with it. A key of a struct is
// spelled exactly; one that only its letters' case tells from it is refused, whatever
// the options.
func Unmarshal(text []byte, v any, options ...Option) error {
	to := reflect.TypeOf(v).Elem()
	h := holder{unknown: has(options, UnknownFields)}
	if err := Read(view(text), func(r *Reader) error { return h.value(r, to) }, options...); err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// Decode reads all of in, which is one document of at most most bytes.
func Decode(in io.Reader, most int64, v any, options ...Option) error {
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return err
	}
	if int64(len(text)) > most {
		return errors.New("a document of more than " + strconv.FormatInt(most, 10) + " bytes")
	}
	return Unmarshal(text, v, options...)
}

// A Member is one of an object, as it stands in the document.
type Member struct {
	Key string
	Raw []byte
}

// Members are those of text, which is one object. Each is a document of its own.
func Members(text []byte, options ...Option) (list []Member, err error) {
	err = Object(view(text), func(r *Reader, key string) error {
		raw, err := r.part(text)
		list = append(list, Member{strings.Clone(key), raw})
		return err
	}, options...)
	return list, err
}

// Elements are those of text, which is one list. Each is a document of its own.
func Elements(text []byte, options ...Option) (list [][]byte, err error) {
	err = Read(view(text), func(r *Reader) error {
		return r.Items(func(r *Reader, _ int) error {
			raw, err := r.part(text)
			list = append(list, raw)
			return err
		})
	}, options...)
	return list, err
}

// part is Raw of the text that is read.
func (r *Reader) part(text []byte) ([]byte, error) {
	from := r.Offset()
	if _, err := r.Raw(); err != nil {
		return nil, err
	}
	return text[from:r.at:r.at], nil
}

// Text is the text that raw, which is one document, is.
func Text(raw []byte) (s string, err error) {
	err = Read(view(raw), func(r *Reader) error {
		s, err = r.Text()
		return err
	})
	return s, err
}

// view is text as a string, which nobody keeps.
func view(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }

// A holder holds documents to the types that they are read into.
type holder struct{ unknown bool }

var (
	ownJSON = reflect.TypeFor[json.Unmarshaler]()
	ownText = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// value passes over a value of type t. A type that reads itself says itself what is
// wrong; the rules hold for what it reads.
func (h *holder) value(r *Reader, t reflect.Type) error {
	kind := r.Kind()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	own := reflect.PointerTo(t)
	if kind == 'n' || t.Kind() == reflect.Interface || own.Implements(ownJSON) || own.Implements(ownText) {
		return r.Any()
	}
	switch t.Kind() {
	case reflect.Struct:
		return h.object(r, fieldsOf(t))
	case reflect.Map:
		return r.Members(func(r *Reader, _ string) error { return h.value(r, t.Elem()) })
	case reflect.Slice, reflect.Array:
		if kind == '"' && t.Elem().Kind() == reflect.Uint8 { // base64
			return r.Any()
		}
		return r.Items(func(r *Reader, _ int) error { return h.value(r, t.Elem()) })
	case reflect.String:
		if kind == '0' && t == reflect.TypeFor[json.Number]() {
			return r.Any()
		}
		_, _, err := r.quoted(false)
		return err
	case reflect.Bool:
		_, err := r.Bool()
		return err
	}
	return h.number(r, t)
}

func (h *holder) object(r *Reader, fields map[string]reflect.Type) error {
	return r.Members(func(r *Reader, key string) error {
		if t, known := fields[key]; known {
			return h.value(r, t)
		}
		for name := range fields {
			if strings.EqualFold(name, key) {
				return r.wrongAt(r.keyAt, "there is no such field; write "+name)
			}
		}
		if h.unknown {
			return r.Any()
		}
		return r.wrongAt(r.keyAt, "there is no such field; there are "+strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
	})
}

func (h *holder) number(r *Reader, t reflect.Type) error {
	from := r.Offset()
	text, err := r.Number()
	if err != nil {
		return err
	}
	if json.Unmarshal([]byte(text), reflect.New(t).Interface()) == nil {
		return nil
	}
	if reflect.Zero(t).CanFloat() {
		return r.wrongAt(from, "a number of "+strconv.Itoa(t.Bits())+" bits of floating point is wanted")
	}
	return r.wrongAt(from, "a whole number of "+strconv.Itoa(t.Bits())+" bits is wanted")
}

func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Anonymous && name == "" && structOf(f.Type)
		if !f.IsExported() || inner || f.Tag.Get("json") == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		fields[name] = f.Type
	}
	return fields
}

func structOf(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
}
