package schema

import (
	"fmt"
	"maps"
	"math/big"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Compile reads a schema. files are the documents that it may refer to, by
// their names, such as "schemas/address.json".
func Compile(text []byte, files map[string][]byte) (*Schema, error) {
	c := &compiler{files: files, documents: map[string]any{}, done: map[string]*node{}}
	v, err := Decode(text)
	if err != nil {
		return nil, err
	}
	c.documents[""] = v
	root, err := c.at("", "", v)
	if err != nil {
		return nil, err
	}
	return &Schema{root}, nil
}

// A compiler makes nodes, one for each place, so that a schema may refer to
// itself.
type compiler struct {
	files     map[string][]byte
	documents map[string]any   // by file; "" is the schema itself
	done      map[string]*node // by file and pointer
}

// at is the node of the schema v, which stands at pointer in file.
func (c *compiler) at(file, pointer string, v any) (*node, error) {
	where := file + "#" + pointer
	if n, ok := c.done[where]; ok {
		return n, nil
	}
	if len(c.done) == maxNodes {
		return nil, wrong(where, "more than %d schemas within the schema", maxNodes)
	}
	n := &node{members: span{0, -1}, length: span{0, -1}, text: span{0, -1}}
	c.done[where] = n
	switch v := v.(type) {
	case bool:
		n.never = !v
		return n, nil
	case map[string]any:
		k := &keywords{c, n, file, pointer, v}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := k.read(name, v[name]); err != nil {
				return nil, err
			}
		}
		return n, nil
	}
	return nil, wrong(where, "a schema is an object, true or false")
}

// keywords are those of one schema.
type keywords struct {
	*compiler
	n       *node
	file    string
	pointer string
	all     map[string]any
}

func (k *keywords) wrong(name, want string) error {
	return wrong(k.file+"#"+k.pointer+"/"+name, "%s", want)
}

// sub is the schema that a keyword holds, below more.
func (k *keywords) sub(v any, more ...string) (*node, error) {
	p := k.pointer
	for _, m := range more {
		p += "/" + escapePointer.Replace(m)
	}
	return k.at(k.file, p, v)
}

var (
	escapePointer   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")
)

// read takes in one keyword. What only describes is passed over; what is not
// known refuses.
func (k *keywords) read(name string, v any) (err error) {
	n := k.n
	switch name {
	case "title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly", "format",
		"contentEncoding", "contentMediaType", "then", "else": // the last two are the if's
	case "$schema":
		if s, ok := v.(string); !ok || !isDialect(s) {
			return k.wrong(name, "write https://json-schema.org/draft/2020-12/schema, or leave it out")
		}
	case "$defs", "definitions":
		_, err = k.schemas(name, v)
	case "$ref":
		n.ref, err = k.reference(v)
	case "type":
		n.types, err = k.typeWords(v)
	case "enum":
		list, ok := v.([]any)
		if !ok {
			return k.wrong(name, "is a list")
		}
		n.enum, n.has = append(n.enum, list...), true
		if _, both := k.all["const"]; both {
			return k.wrong(name, "stands beside const; write one of the two")
		}
	case "const":
		n.enum, n.has = []any{v}, true
	case "allOf":
		n.all, err = k.list(name, v)
	case "anyOf":
		n.any, err = k.list(name, v)
	case "oneOf":
		n.one, err = k.list(name, v)
	case "not":
		n.not, err = k.sub(v, name)
	case "if":
		err = k.condition(v)
	default:
		return k.readOf(name, v)
	}
	return err
}

// readOf takes in what speaks of one type of value alone.
func (k *keywords) readOf(name string, v any) (err error) {
	n := k.n
	switch name {
	case "properties":
		n.properties, err = k.schemas(name, v)
	case "patternProperties":
		err = k.patternProperties(v)
	case "additionalProperties":
		n.additional, err = k.sub(v, name)
	case "propertyNames":
		n.names, err = k.sub(v, name)
	case "required":
		n.required, err = k.words(name, v)
	case "minProperties":
		n.members.min, err = k.count(name, v)
	case "maxProperties":
		n.members.max, err = k.count(name, v)
	case "items":
		n.items, err = k.sub(v, name)
	case "prefixItems":
		n.prefix, err = k.list(name, v)
	case "minItems":
		n.length.min, err = k.count(name, v)
	case "maxItems":
		n.length.max, err = k.count(name, v)
	case "uniqueItems":
		b, ok := v.(bool)
		if n.unique = b; !ok {
			err = k.wrong(name, "is true or false")
		}
	case "minLength":
		n.text.min, err = k.count(name, v)
	case "maxLength":
		n.text.max, err = k.count(name, v)
	case "pattern":
		n.pattern, err = k.pattern(name, v)
	case "minimum":
		n.min, err = k.number(name, v)
	case "maximum":
		n.max, err = k.number(name, v)
	case "exclusiveMinimum":
		n.above, err = k.number(name, v)
	case "exclusiveMaximum":
		n.below, err = k.number(name, v)
	case "multipleOf":
		if n.multiple, err = k.number(name, v); err == nil && n.multiple.Sign() <= 0 {
			err = k.wrong(name, "is not above 0")
		}
	default:
		return k.wrong(name, "this keyword is not known here, and none is passed over")
	}
	return err
}

func isDialect(s string) bool {
	switch strings.TrimSuffix(s, "#") {
	case "https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2019-09/schema",
		"http://json-schema.org/draft-07/schema":
		return true
	}
	return false
}

// condition is if with its then and else.
func (k *keywords) condition(v any) (err error) {
	if k.n.cond, err = k.sub(v, "if"); err != nil {
		return err
	}
	if then, ok := k.all["then"]; ok {
		if k.n.then, err = k.sub(then, "then"); err != nil {
			return err
		}
	}
	if other, ok := k.all["else"]; ok {
		k.n.other, err = k.sub(other, "else")
	}
	return err
}

// reference is the node that a $ref names: "#/$defs/x", "file.json", or both.
func (k *keywords) reference(v any) (*node, error) {
	s, ok := v.(string)
	if !ok {
		return nil, k.wrong("$ref", "is a text")
	}
	file, pointer, _ := strings.Cut(s, "#")
	if beside := path.Join(path.Dir(k.file), file); file == "" {
		file = k.file
	} else if _, there := k.files[beside]; there {
		file = beside
	}
	doc, ok := k.documents[file]
	if !ok {
		text, there := k.files[file]
		if !there {
			return nil, k.wrong("$ref", fmt.Sprintf("%q is none of the schemas of this tool; list it in schema_refs, by its "+
				"whole name", file))
		}
		var err error
		if doc, err = Decode(text); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		k.documents[file] = doc
	}
	if pointer != "" && pointer[0] != '/' {
		return nil, k.wrong("$ref", "a place in a document is written #/$defs/name")
	}
	for _, part := range strings.Split(pointer, "/")[min(1, len(pointer)):] {
		if pointer == "" {
			break
		}
		object, _ := doc.(map[string]any)
		if doc, ok = object[unescapePointer.Replace(part)]; !ok {
			return nil, k.wrong("$ref", fmt.Sprintf("%q leads nowhere", s))
		}
	}
	return k.at(file, pointer, doc)
}

func (k *keywords) schemas(name string, v any) (map[string]*node, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return nil, k.wrong(name, "is an object of schemas")
	}
	nodes := make(map[string]*node, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		n, err := k.sub(object[key], name, key)
		if err != nil {
			return nil, err
		}
		nodes[key] = n
	}
	return nodes, nil
}

func (k *keywords) patternProperties(v any) error {
	nodes, err := k.schemas("patternProperties", v)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(nodes)) {
		re, err := k.pattern("patternProperties", key)
		if err != nil {
			return err
		}
		k.n.patterns = append(k.n.patterns, patterned{re, nodes[key]})
	}
	return nil
}

func (k *keywords) list(name string, v any) ([]*node, error) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil, k.wrong(name, "is a list of schemas")
	}
	nodes := make([]*node, len(list))
	for i, item := range list {
		n, err := k.sub(item, name, fmt.Sprint(i))
		if err != nil {
			return nil, err
		}
		nodes[i] = n
	}
	return nodes, nil
}

func (k *keywords) words(name string, v any) ([]string, error) {
	list, ok := v.([]any)
	words := make([]string, 0, len(list))
	for _, item := range list {
		s, text := item.(string)
		ok = ok && text
		words = append(words, s)
	}
	if !ok {
		return nil, k.wrong(name, "is a list of texts")
	}
	return words, nil
}

func (k *keywords) typeWords(v any) ([]string, error) {
	if s, ok := v.(string); ok {
		v = []any{s}
	}
	words, err := k.words("type", v)
	for _, w := range words {
		if !slices.Contains([]string{"object", "array", "string", "number", "integer", "boolean", "null"}, w) {
			return nil, k.wrong("type", fmt.Sprintf("there is no type %q", w))
		}
	}
	if err == nil && len(words) == 0 {
		err = k.wrong("type", "is a type, or a list of types")
	}
	return words, err
}

func (k *keywords) pattern(name string, v any) (*regexp.Regexp, error) {
	s, ok := v.(string)
	if !ok {
		return nil, k.wrong(name, "is a text")
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, k.wrong(name, "is no pattern that can be matched in bounded time: "+err.Error())
	}
	return re, nil
}

func (k *keywords) number(name string, v any) (*big.Rat, error) {
	n, ok := v.(*num)
	if !ok {
		return nil, k.wrong(name, "is a number")
	}
	return n.value, nil
}

func (k *keywords) count(name string, v any) (int64, error) {
	r, err := k.number(name, v)
	if err != nil || !r.IsInt() || r.Sign() < 0 || !r.Num().IsInt64() {
		return 0, k.wrong(name, "is a whole number from 0 on")
	}
	return r.Num().Int64(), nil
}
