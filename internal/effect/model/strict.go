package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"runloop.dev/rlp/internal/base/strictjson"
)

// A FieldError says what is wrong with which field of a request. Path is as in
// "messages[2].content"; "" is the request itself.
type FieldError struct{ Path, Problem string }

func (e *FieldError) Error() string {
	if e.Path == "" {
		return "the request " + e.Problem
	}
	return e.Path + " " + e.Problem
}

func wrong(path, format string, args ...any) error {
	return &FieldError{path, fmt.Sprintf(format, args...)}
}

// An object is a JSON object whose fields are taken one by one, each by its
// exact name; what is left at the end is unknown. The first problem stays.
// A field that is null counts as one that is not there.
type object struct {
	path   string
	fields map[string]json.RawMessage
	err    error
}

func parseObject(text string) *object {
	raw := []byte(text)
	if err := strictjson.Check(raw); err != nil {
		return &object{err: broken("", err)}
	}
	return newObject("", raw)
}

// broken is what a reader of JSON says of the value at path.
func broken(path string, err error) error {
	var e *strictjson.Error
	if !errors.As(err, &e) {
		return wrong(path, "cannot be read: %v", err)
	}
	if e.Path != "" {
		path = e.Path
	}
	return wrong(path, "is no JSON that every reader takes: %s", e.Why())
}

func newObject(path string, raw json.RawMessage) *object {
	o := &object{path: path, fields: map[string]json.RawMessage{}}
	members, err := strictjson.Members(raw)
	if err != nil {
		o.err = wrong(path, "must be a JSON object")
	}
	for _, m := range members {
		o.fields[m.Key] = m.Raw
	}
	return o
}

func (o *object) at(name string) string {
	if len(name) > 64 {
		name = name[:64] + "..."
	}
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

func (o *object) take(name string) json.RawMessage {
	raw, ok := o.fields[name]
	delete(o.fields, name)
	if !ok || o.err != nil || string(raw) == "null" {
		return nil
	}
	return raw
}

func (o *object) fail(path, format string, args ...any) {
	if o.err == nil {
		o.err = wrong(path, format, args...)
	}
}

func (o *object) done() error {
	if o.err == nil && len(o.fields) > 0 {
		o.fail(o.at(slices.Min(slices.Collect(maps.Keys(o.fields)))), "is not a field that this call knows")
	}
	return o.err
}

// need is take of a field that must be there.
func (o *object) need(name string) json.RawMessage {
	raw := o.take(name)
	if raw == nil {
		o.fail(o.at(name), "is missing")
	}
	return raw
}

func (o *object) text(name string) string { return asText(o, name, o.take(name)) }

func asText(o *object, name string, raw json.RawMessage) (s string) {
	o.into(name, raw, &s, "must be a string")
	return s
}

func (o *object) into(name string, raw json.RawMessage, v any, problem string) bool {
	if raw == nil {
		return false
	}
	if strictjson.Unmarshal(raw, v) != nil {
		o.fail(o.at(name), "%s", problem)
		return false
	}
	return true
}

// oneOf is a text that is one of words; "" when it is not there.
func (o *object) oneOf(name string, words ...string) string {
	s := o.text(name)
	if s != "" && !slices.Contains(words, s) {
		o.fail(o.at(name), "is one of %v", words)
	}
	return s
}

func (o *object) bool(name string) (b bool) {
	o.into(name, o.take(name), &b, "must be true or false")
	return b
}

// whole is an integer within [low, high]; 0 when it is not there.
func (o *object) whole(name string, low, high int64) int64 {
	n := o.integer(name)
	if n == nil {
		return 0
	}
	if *n < low || *n > high {
		o.fail(o.at(name), "must be a whole number from %d to %d", low, high)
	}
	return *n
}

func (o *object) integer(name string) *int64 {
	var n int64
	if !o.into(name, o.take(name), &n, "must be a whole number") {
		return nil
	}
	return &n
}

func (o *object) number(name string, low, high float64) *float64 {
	var n float64
	within := fmt.Sprintf("must be a number from %g to %g", low, high)
	if !o.into(name, o.take(name), &n, within) {
		return nil
	}
	if n < low || n > high {
		o.fail(o.at(name), "%s", within)
	}
	return &n
}

func (o *object) list(name string, raw json.RawMessage, most int) [][]byte {
	if raw == nil {
		return nil
	}
	items, err := strictjson.Elements(raw)
	switch {
	case err != nil:
		o.fail(o.at(name), "must be an array")
	case len(items) > most:
		o.fail(o.at(name), "has %d items, at most %d", len(items), most)
	default:
		return items
	}
	return nil
}

func (o *object) each(name string, raw json.RawMessage, most int, one func(i int, item *object)) {
	for i, item := range o.list(name, raw, most) {
		if o.err != nil {
			return
		}
		child := newObject(fmt.Sprintf("%s[%d]", o.at(name), i), item)
		if child.err == nil {
			one(i, child)
		}
		o.err = child.done()
	}
}

func (o *object) child(name string, one func(c *object)) {
	raw := o.take(name)
	if raw == nil {
		return
	}
	c := newObject(o.at(name), raw)
	if c.err == nil {
		one(c)
	}
	o.err = c.done()
}

func (o *object) schema(name string) json.RawMessage {
	raw := o.take(name)
	if raw == nil {
		return nil
	}
	var b bytes.Buffer
	if raw[0] != '{' || json.Compact(&b, raw) != nil {
		o.fail(o.at(name), "must be a JSON Schema, an object")
		return nil
	}
	return b.Bytes()
}
