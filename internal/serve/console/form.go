package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"runloop.dev/rlp/internal/base/printable"
	"runloop.dev/rlp/internal/base/strictjson"
)

// A form is made of the JSON Schema of an agent's input: a field for each property
// of an object, and one of JSON for what a form has no field for.
type form struct {
	Fields []inputField
	Whole  *inputField // instead of fields: the input as a text, or as JSON
}

// An inputField is one value of the input.
type inputField struct {
	Name, Label, About string
	Kind               string // text, long, number, choice, lines or json
	Choices            []choice
	Required           bool
	Value              string
	Step               string // of numbers

	values []json.RawMessage // of Choices
}

// inputSchema is what a form needs of a JSON Schema, which a stranger wrote. What it
// does not say here is judged when the run begins.
type inputSchema struct {
	Type        any               `json:"type"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Enum        []json.RawMessage `json:"enum"`
	Default     json.RawMessage   `json:"default"`
	Properties  json.RawMessage   `json:"properties"`
	Required    []string          `json:"required"`
	Items       json.RawMessage   `json:"items"`
	MaxLength   *int              `json:"maxLength"`
}

// Bounds of forms: a schema that asks for more is filled in as JSON.
const (
	mostFields  = 40
	mostChoices = 100
	mostSchema  = 64 << 10
	longText    = 120 // from so many letters on a text has several lines
)

// formOf is the form of a schema; nil: any JSON.
func formOf(schema []byte, asJSON bool) form {
	s, ok := readSchema(schema)
	properties, err := strictjson.Members(s.Properties)
	switch {
	case ok && s.Type == "string" && !asJSON:
		return form{Whole: &inputField{Name: "text", Label: "Input", About: s.Description, Kind: "long"}}
	case !ok || asJSON || s.Type != "object" || err != nil || len(properties) == 0 || len(properties) > mostFields:
		return form{Whole: &inputField{Name: "json", Label: "Input, as JSON", About: s.Description, Kind: "json"}}
	}
	f := form{}
	for i, p := range properties {
		field := fieldOf(p.Key, p.Raw, slices.Contains(s.Required, p.Key))
		field.Name = fmt.Sprintf("in.%d", i)
		f.Fields = append(f.Fields, field)
	}
	slices.SortStableFunc(f.Fields, func(a, b inputField) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	if f.weight() > formRoom {
		return formOf(nil, true)
	}
	return f
}

// formRoom is how much HTML what a stranger and a caller wrote may be in a form.
const formRoom = 44 << 10

// weight is about how much HTML the form is.
func (f *form) weight() int {
	if f.Whole != nil {
		return weight(f.Whole.Value)
	}
	n := 0
	for _, p := range f.Fields {
		n += weight(p.Name) + wordRoom + min(weight(p.About), cellRoom) + weight(p.Value)
		for _, c := range p.Choices {
			n += 32 + weight(c.Value) + min(weight(c.Text), cellRoom)
		}
	}
	return n
}

func readSchema(schema []byte) (s inputSchema, ok bool) {
	if len(schema) == 0 || len(schema) > mostSchema {
		return s, false
	}
	return s, strictjson.Unmarshal(schema, &s, strictjson.UnknownFields) == nil
}

// fieldOf is the field of a property.
func fieldOf(name string, schema json.RawMessage, required bool) inputField {
	f := inputField{Label: name, Kind: "json", Required: required}
	s, ok := readSchema(schema)
	if !ok {
		return f
	}
	if f.About = s.Description; f.About == "" {
		f.About = s.Title
	}
	items, _ := readSchema(s.Items)
	switch {
	case len(s.Enum) > 0 && len(s.Enum) <= mostChoices:
		f.choose(s.Enum, plainText)
	case s.Type == "boolean":
		f.choose([]json.RawMessage{[]byte("true"), []byte("false")}, func(v json.RawMessage) string {
			return map[string]string{"true": "yes", "false": "no"}[string(v)]
		})
	case s.Type == "integer":
		f.Kind, f.Step = "number", "1"
	case s.Type == "number":
		f.Kind, f.Step = "number", "any"
	case s.Type == "array" && items.Type == "string" && len(items.Enum) == 0:
		f.Kind = "lines"
	case s.Type == "string" && s.MaxLength != nil && *s.MaxLength > longText:
		f.Kind = "long"
	case s.Type == "string":
		f.Kind = "text"
	}
	f.fill(s.Default)
	return f
}

// choose makes the field a choice of values.
func (f *inputField) choose(values []json.RawMessage, text func(json.RawMessage) string) {
	f.Kind, f.values = "choice", values
	for i, v := range values {
		f.Choices = append(f.Choices, choice{Value: strconv.Itoa(i), Text: text(v)})
	}
}

// plainText is a JSON value as somebody would write it: a string without quotes.
func plainText(v json.RawMessage) string {
	if text, err := strictjson.Text(v); err == nil {
		return text
	}
	return string(v)
}

// fill has the field begin with a value; nil: with none. False: it has no room for it,
// or the value has letters that nobody sees.
func (f *inputField) fill(v json.RawMessage) bool {
	switch {
	case len(v) == 0:
		return true
	case f.Kind == "choice":
		i := slices.IndexFunc(f.values, func(known json.RawMessage) bool { return sameJSON(known, v) })
		if i >= 0 {
			f.Choices[i].Chosen = true
		}
		return i >= 0
	case f.Kind == "json":
		f.Value = seenJSON(indented(v))
		return true
	case f.Kind == "number":
		f.Value = string(v)
		return strictjson.Check(v) == nil && len(v) < 32
	case f.Kind == "lines":
		var lines []string
		if strictjson.Unmarshal(v, &lines) != nil || slices.ContainsFunc(lines, func(l string) bool {
			return strings.TrimSpace(l) == "" || shown(l, formRoom) != l
		}) {
			return false
		}
		f.Value = strings.Join(lines, "\n")
		return true
	}
	text, err := strictjson.Text(v)
	if err != nil || f.Kind == "text" && strings.Contains(text, "\n") || shownBlock(text, formRoom) != text {
		return false
	}
	f.Value = text
	return true
}

// seenJSON is a document in which each letter that nobody sees is written as JSON
// escapes it.
func seenJSON(doc []byte) string {
	var b strings.Builder
	for _, r := range string(doc) {
		if r != '\n' && (r < ' ' || r == 0x7f || printable.Hidden(r)) {
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, "\\u%04x", unit)
			}
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func sameJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// fillAll has the form begin with an earlier input. False: it has no room for it.
func (f *form) fillAll(input json.RawMessage) bool {
	if f.Whole != nil {
		return f.Whole.fill(input)
	}
	var values map[string]json.RawMessage
	if len(input) > 0 && strictjson.Unmarshal(input, &values) != nil {
		return false
	}
	for i := range f.Fields {
		v, given := values[f.Fields[i].Label]
		if delete(values, f.Fields[i].Label); given && !f.Fields[i].fill(v) {
			return false
		}
	}
	return len(values) == 0
}

// take has the form say what was posted, for another try.
func (f *form) take(posted url.Values) {
	fields := f.Fields
	if f.Whole != nil {
		fields = []inputField{*f.Whole}
	}
	for i := range fields {
		p := &fields[i]
		p.Value = posted.Get(p.Name)
		for k := range p.Choices {
			p.Choices[k].Chosen = p.Choices[k].Value == p.Value
		}
	}
	if f.Whole != nil {
		f.Whole = &fields[0]
	}
}

// input is the input that was posted; nil: none.
func (f *form) input(posted url.Values) (json.RawMessage, error) {
	if f.Whole != nil {
		return f.Whole.value(posted.Get(f.Whole.Name))
	}
	values := map[string]json.RawMessage{}
	for _, p := range f.Fields {
		switch v, err := p.value(posted.Get(p.Name)); {
		case err != nil:
			return nil, err
		case v != nil:
			values[p.Label] = v
		case p.Required && (p.Kind == "text" || p.Kind == "long"):
			values[p.Label] = json.RawMessage(`""`)
		case p.Required:
			return nil, fmt.Errorf("%s is needed", p.Label)
		}
	}
	return json.Marshal(values)
}

// value is what a field says as JSON; nil: nothing.
func (f *inputField) value(text string) (json.RawMessage, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	switch {
	case strings.TrimSpace(text) == "":
		return nil, nil
	case f.Kind == "choice":
		i, err := strconv.Atoi(text)
		if err != nil || i < 0 || i >= len(f.values) {
			return nil, fmt.Errorf("%s: choose one of the values", f.Label)
		}
		return f.values[i], nil
	case f.Kind == "lines":
		lines := strings.Split(strings.TrimSpace(text), "\n")
		return json.Marshal(slices.DeleteFunc(lines, func(l string) bool { return l == "" }))
	case f.Kind == "text" || f.Kind == "long":
		return json.Marshal(text)
	case strictjson.Check([]byte(text)) != nil:
		what := "one JSON value"
		if f.Kind == "number" {
			what = "a number, such as 12"
		}
		return nil, fmt.Errorf("%s: write %s", f.Label, what)
	}
	return json.RawMessage(strings.TrimSpace(text)), nil
}
