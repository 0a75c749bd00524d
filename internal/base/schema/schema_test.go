package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

func compile(t testing.TB, text string, files map[string][]byte) *Schema {
	t.Helper()
	s, err := Compile([]byte(text), files)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

func says(t testing.TB, s *Schema, doc string) string {
	t.Helper()
	v, err := Decode([]byte(doc))
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	if err := s.Check(v); err != nil {
		return err.Error()
	}
	return ""
}

// What is wrong is said by its path.
func TestCheck(t *testing.T) {
	files := map[string][]byte{
		"schemas/person.json": []byte(`{"type": "object", "properties": {"name": {"$ref": "text.json#/$defs/short"}, "next": {"$ref": "person.json"}}, "required": ["name"]}`),
		"schemas/text.json":   []byte(`{"$defs": {"short": {"type": "string", "maxLength": 3}}}`),
	}
	const order = `{"type": "object", "properties": {
		"to": {"type": "array", "items": {"$ref": "schemas/person.json"}, "minItems": 1, "uniqueItems": true},
		"n": {"type": "integer", "minimum": 1, "exclusiveMaximum": 10, "multipleOf": 2},
		"how": {"enum": ["fast", 1, null, {"a": [1.0]}]}, "code": {"pattern": "^[a-z]+$"},
		"either": {"oneOf": [{"type": "string"}, {"type": "number"}, {"const": 7}]},
		"no": false
	}, "additionalProperties": false, "required": ["to"], "if": {"required": ["n"]}, "then": {"required": ["how"]}}`
	s := compile(t, order, files)
	for _, c := range []struct{ doc, says string }{
		{`{"to": [{"name": "Bo"}]}`, ""},
		{`{"to": [{"name": "Bo", "next": {"name": "Al"}}], "n": 4, "how": {"a": [1]}, "code": "x", "either": 5}`, ""},
		{`[]`, "is of type array, not object"},
		{`{}`, "to: is missing"},
		{`{"to": []}`, "to: has 0 items"},
		{`{"to": [{"name": "Bo"}, {"name": "Bo"}]}`, "to[1]: is there twice"},
		{`{"to": [{"name": "Robert"}]}`, "to[0].name: has 6 characters"},
		{`{"to": [{"name": "Bo", "next": {"name": 1}}]}`, "to[0].next.name: is of type integer, not string"},
		{`{"to": [{"name": "Bo"}], "n": 4}`, "how: is missing"},
		{`{"to": [{"name": "Bo"}], "n": 4.0, "how": 1.0}`, ""},
		{`{"to": [{"name": "Bo"}], "n": 4.5, "how": 1}`, "n: is of type number, not integer"},
		{`{"to": [{"name": "Bo"}], "n": 0, "how": 1}`, "n: is less than 1"},
		{`{"to": [{"name": "Bo"}], "n": 10, "how": 1}`, "n: is not less than 10"},
		{`{"to": [{"name": "Bo"}], "n": 3, "how": 1}`, "n: is no multiple of 2"},
		{`{"to": [{"name": "Bo"}], "how": "slow"}`, "how: is none of the values that are listed"},
		{`{"to": [{"name": "Bo"}], "code": "X"}`, "code: does not match ^[a-z]+$"},
		{`{"to": [{"name": "Bo"}], "either": 7}`, "either: is not exactly one of what it may be"},
		{`{"to": [{"name": "Bo"}], "no": 1}`, "no: is not allowed here"},
		{`{"to": [{"name": "Bo"}], "a b": 1}`, `["a b"]: is not allowed here`},
	} {
		if got := says(t, s, c.doc); got != c.says {
			t.Errorf("%s: %q, want %q", c.doc, got, c.says)
		}
	}
}

// A schema that says what is not known here is refused, never taken for less.
func TestCompileIsStrict(t *testing.T) {
	for text, want := range map[string]string{
		`{"type": "objekt"}`:                      `#/type: there is no type "objekt"`,
		`{"unevaluatedProperties": false}`:        "#/unevaluatedProperties: this keyword is not known here",
		`{"properties": {"a": {"contains": 1}}}`:  "#/properties/a/contains: this keyword",
		`{"$ref": "https://example.com/x"}`:       "is none of the schemas of this tool",
		`{"$ref": "../policy.caps"}`:              "is none of the schemas of this tool",
		`{"$ref": "#/nowhere"}`:                   "leads nowhere",
		`{"$ref": "#name"}`:                       "a place in a document is written",
		`{"$schema": "https://example.com/mine"}`: "#/$schema: write",
		`{"pattern": "(?=x)"}`:                    "bounded time",
		`{"minLength": -1}`:                       "whole number",
		`{"minimum": "1"}`:                        "is a number",
		`{"required": [1]}`:                       "list of texts",
		`{"allOf": []}`:                           "list of schemas",
		`{"enum": [1], "const": 1}`:               "stands beside const",
		`[]`:                                      "a schema is an object, true or false",
		`{"type": "object", "type": "array"}`:     "given twice",
		`{"multipleOf": 0}`:                       "is not above 0",
		`{`:                                       "not JSON",
	} {
		if _, err := Compile([]byte(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// No schema makes checking long: what explodes is refused within its steps.
func TestCheckIsBounded(t *testing.T) {
	defs := make([]string, 0, 41)
	for i := range 40 {
		defs = append(defs, fmt.Sprintf(`"a%d": {"oneOf": [{"$ref": "#/$defs/a%d"}, {"$ref": "#/$defs/a%d"}]}`, i, i+1, i+1))
	}
	defs = append(defs, `"a40": {"type": "string"}`)
	deep := strings.Repeat(`{"x":`, 60) + "1" + strings.Repeat("}", 60)
	items := "[" + strings.Repeat(`{"k":"0123456789012345678901234567890"},`, 7000) + "1]"
	for name, c := range map[string]struct{ schema, doc string }{
		"a chain of choices": {`{"$ref": "#/$defs/a0", "$defs": {` + strings.Join(defs, ",") + `}}`, "1"},
		"a tree of choices":  {`{"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"x": {"oneOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/x"}]}}}}}`, deep},
		"itself":             {`{"$ref": "#"}`, "1"},
		"not itself":         {`{"not": {"$ref": "#"}}`, "1"},
		"not a chain":        {`{"not": {"$ref": "#/$defs/a0"}, "$defs": {` + strings.Join(defs, ",") + `}}`, "1"},
		"pairs":              {`{"prefixItems": [true], "uniqueItems": true}`, "[" + many(3000) + "]"},
		"patterns":           {`{"items": {"properties": {"k": {"pattern": "^[0-9]*$"}}}}`, items},
	} {
		start := time.Now()
		if got := says(t, compile(t, c.schema, nil), c.doc); got != "checking it takes too many steps" {
			t.Errorf("%s: %q after %v", name, got, time.Since(start))
		}
	}
	if got := says(t, compile(t, `{"items": {"type": "integer"}, "uniqueItems": true}`, nil), "["+many(300)+"]"); got != "" {
		t.Errorf("control: %s", got)
	}
}

func many(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(i)
	}
	return strings.Join(list, ",")
}

func TestDecodeIsStrict(t *testing.T) {
	for _, doc := range []string{
		``, `{"a":1,"a":2}`, `{"a":{"b":1,"\u0062":1}}`, `1 2`, `{} x`, "\"\xff\"", `[1,]`, `{"a"}`, `1e99999999`, `1e401`,
		strings.Repeat("1", 500), strings.Repeat("[", 70) + strings.Repeat("]", 70), `NaN`,
	} {
		if v, err := Decode([]byte(doc)); err == nil {
			t.Errorf("%.40q is %v", doc, v)
		}
	}
	v, err := Decode([]byte(" {\"b\" : [1e2, \"<\\u00e9\"], \"a\": null}"))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := Encode(v); err != nil || string(text) != `{"a":null,"b":[1e2,"<é"]}` {
		t.Errorf("%s, %v", text, err)
	}
}

var words = []string{"a", "b", "c"}

func schemas(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if depth == 0 || rapid.IntRange(0, 9).Draw(t, "leaf") == 0 {
			return rapid.Bool().Draw(t, "bool")
		}
		sub := func() any { return schemas(depth-1).Draw(t, "sub") }
		s := map[string]any{}
		for range rapid.IntRange(1, 3).Draw(t, "keywords") {
			switch rapid.IntRange(0, 15).Draw(t, "keyword") {
			case 0:
				s["type"] = rapid.SampledFrom([]string{"object", "array", "string", "number", "integer", "boolean", "null"}).Draw(t,
					"type")
			case 1:
				s["properties"] = map[string]any{rapid.SampledFrom(words).Draw(t, "name"): sub(), rapid.SampledFrom(words).Draw(t,
					"name"): sub()}
			case 2:
				s["required"] = []string{rapid.SampledFrom(words).Draw(t, "name")}
			case 3:
				s["additionalProperties"] = sub()
			case 4:
				s["items"] = sub()
			case 5:
				s["prefixItems"] = []any{sub()}
			case 6:
				s["minItems"] = rapid.IntRange(0, 2).Draw(t, "n")
			case 7:
				s["uniqueItems"] = rapid.Bool().Draw(t, "unique")
			case 8:
				s["maxLength"] = rapid.IntRange(0, 2).Draw(t, "n")
			case 9:
				s["minimum"] = rapid.IntRange(-2, 2).Draw(t, "n")
			case 10:
				s["multipleOf"] = rapid.SampledFrom([]float64{1, 2, 0.5}).Draw(t, "n")
			case 11:
				s["anyOf"] = []any{sub(), sub()}
			case 12:
				s["oneOf"] = []any{sub(), sub()}
			case 13:
				s["not"] = sub()
			case 14:
				s["if"], s["then"], s["else"] = sub(), sub(), sub()
			case 15:
				s["patternProperties"] = map[string]any{"^[ab]$": sub()}
			}
		}
		return s
	})
}

func documents(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kind := rapid.IntRange(0, 6).Draw(t, "kind")
		if depth == 0 {
			kind %= 5
		}
		switch kind {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return rapid.SampledFrom(words).Draw(t, "text")
		case 3:
			return rapid.IntRange(-3, 3).Draw(t, "integer")
		case 4:
			return rapid.SampledFrom([]float64{0.5, 1.0, -1.5, 2}).Draw(t, "number")
		case 5:
			list := []any{}
			for range rapid.IntRange(0, 3).Draw(t, "items") {
				list = append(list, documents(depth-1).Draw(t, "item"))
			}
			return list
		}
		return map[string]any{rapid.SampledFrom(words).Draw(t, "name"): documents(depth-1).Draw(t, "member")}
	})
}

// Another reader of schemas says the same of the same documents.
func TestAgreesWithAnotherReader(t *testing.T) {
	agreed, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		schema, doc := schemas(3).Draw(t, "schema"), documents(2).Draw(t, "document")
		schemaText, err := Encode(schema)
		if err != nil {
			t.Fatal(err)
		}
		docText, err := Encode(doc)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := Compile(schemaText, nil)
		if err != nil {
			t.Fatalf("%s: %v", schemaText, err)
		}
		v, err := Decode(docText)
		if err != nil {
			t.Fatal(err)
		}
		theirs := other(t, string(schemaText))
		instance, err := jsonschema.UnmarshalJSON(strings.NewReader(string(docText)))
		if err != nil {
			t.Fatal(err)
		}
		got, want := ours.Check(v), theirs.Validate(instance)
		if (got == nil) != (want == nil) {
			t.Fatalf("%s\n%s\nours: %v\ntheirs: %v", schemaText, docText, got, want)
		}
		agreed++
		if got != nil {
			refused++
			if e := (*Error)(nil); !errors.As(got, &e) || e.Problem == "" {
				t.Fatalf("%v says nothing", got)
			}
		}
	})
	if refused == 0 || refused == agreed {
		t.Errorf("%d of %d refused: nothing was compared", refused, agreed)
	}
}

func other(t *rapid.T, text string) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("s.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("s.json")
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}
