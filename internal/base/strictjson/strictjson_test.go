package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/base/strictjson/jsontest"
)

// Nothing is taken that some reader takes for something else, wherever it stands.
// Control: the same document without it is.
func TestBadValuesAreRefused(t *testing.T) {
	for _, around := range []string{"%s", " [1, %s ]", `{"x":{"y":[%s]},"z":1}`} {
		if err := Check(fmt.Appendf(nil, around, `{"a":1,"b":"\ud83d\ude00"}`), Enclosing); err != nil {
			t.Errorf("control: %v", err)
		}
		for name, bad := range jsontest.Values() {
			text := fmt.Sprintf(around, bad)
			var into any
			if Check([]byte(text), Enclosing) == nil || Unmarshal([]byte(text), &into, Enclosing|UnknownFields) == nil ||
				into != nil {
				t.Errorf("%s is taken: %.80s", name, text)
			}
		}
	}
	for name, bad := range jsontest.Broken(`{"a":1}`) {
		if Check([]byte(bad)) == nil {
			t.Errorf("%s is taken: %q", name, bad)
		}
	}
}

// What is wrong is said with the path, the line and the column of it.
func TestErrorsSayWhere(t *testing.T) {
	for text, want := range map[string]string{
		``:                                 "not JSON: it ends too early (line 1, column 1)",
		`{"a":1`:                           "not JSON: it ends too early (line 1, column 7)",
		`{"a":1,}`:                         "not JSON: a key in quotes is wanted (line 1, column 8)",
		`{'a':1}`:                          "not JSON: a key in quotes is wanted (line 1, column 2)",
		`{"a" 1}`:                          "not JSON: a colon is wanted behind a key (line 1, column 6)",
		`{"a":1 "b":2}`:                    "not JSON: a comma or } is wanted (line 1, column 8)",
		`{"a":[1 2]}`:                      "a: not JSON: a comma or ] is wanted (line 1, column 9)",
		`{"a":[1,]}`:                       "a[1]: not JSON: a value is wanted (line 1, column 9)",
		`{"a":nil}`:                        "a: not JSON: a value is wanted (line 1, column 6)",
		`{"a":TRUE}`:                       "a: not JSON: a value is wanted (line 1, column 6)",
		`{"a":truth}`:                      "a: true or false is wanted (line 1, column 6)",
		`{"a":1} x`:                        "not JSON: something stands behind the end of the document (line 1, column 9)",
		"{\n \"é\": 1, \"\\u00e9\": 2}":    `"\u00e9": given twice, first at column 2; keep one (line 2, column 10)`,
		`{"a":[{},{"b c":{"d":1,"d":2}}]}`: `a[1]."b c".d: given twice, first at column 18; keep one (line 1, column 24)`,
		"{\"a\":1,\n\"a\":2}":              "a: given twice, first at line 1, column 2; keep one (line 2, column 1)",
		"[\n\n  \"x\\q\"]":                 "[0]: not JSON: no escape of a text (line 3, column 5)",
		`["\u12g4"]`:                       `[0]: not JSON: \u is followed by four hexadecimal digits (line 1, column 3)`,
		"[\"a\tb\"]":                       `[0]: not JSON: a control character in a text; write it as an escape, such as \u0009 (line 1, column 4)`,
		"[\"\\n\x01\"]":                    `[0]: not JSON: a control character in a text; write it as an escape, such as \u0009 (line 1, column 5)`,
		`["\`:                              "[0]: not JSON: it ends too early (line 1, column 3)",
		`["\n`:                             "[0]: not JSON: it ends too early (line 1, column 5)",
		`[-]`:                              "[0]: a number is wanted (line 1, column 2)",
		`[01]`:                             "[0]: a number is wanted (line 1, column 2)",
		`[1.]`:                             "[0]: a number is wanted (line 1, column 2)",
		`[1e]`:                             "[0]: a number is wanted (line 1, column 2)",
		"[1,\"\xff\"]":                     "not UTF-8 (line 1, column 5)",
		"[" + strings.Repeat("[],", 3) + strings.Repeat("[", 64): "[3]" + strings.Repeat("[0]", 63) + ": more than 64 levels",
		"[" + strings.Repeat("0,", MaxValues) + "0]":             "[1048576]: more values than",
	} {
		if err := Check([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60q:\n%v\n%s", text, err, want)
		}
	}
	deep := func(n int) []byte { return []byte(strings.Repeat(`{"a":[`, n/2) + strings.Repeat(`]}`, n/2)) }
	if err := errors.Join(Check(deep(64)), Check(deep(80), Enclosing)); err != nil {
		t.Error(err)
	}
	if Check(deep(66)) == nil || Check(deep(82), Enclosing) == nil {
		t.Error("it is not bounded how deep a document is")
	}
	long := strings.Repeat("k", 200)
	if err := Check([]byte(strings.Repeat(`{"`+long+`":`, 60) + "x")); err == nil || len(err.Error()) > 700 {
		t.Errorf("%v", err)
	}
	own := errors.New("own")
	err := Object(`{"a": 1}`, func(*Reader, string) error { return own })
	var e *Error
	if !errors.Is(err, own) || !errors.As(err, &e) || e.Offset != 5 || e.Path != "a" || err.Error() != "a: own" ||
		Under("b", err).Error() != "b.a: own" {
		t.Errorf("%v %+v", err, e)
	}
}

// A struct gets what encoding/json gives it, of keys that are spelled as it has them.
func TestUnmarshal(t *testing.T) {
	type inner struct {
		N    int8           `json:"n"`
		Many map[string]int `json:"many"`
	}
	type base struct {
		Shared string `json:"shared"`
	}
	type doc struct {
		base
		Text   string          `json:"text"`
		In     *inner          `json:"in,omitempty"`
		List   []inner         `json:"list"`
		Raw    json.RawMessage `json:"raw"`
		At     time.Time       `json:"at"`
		Bytes  []byte          `json:"bytes"`
		U      uint8           `json:"u"`
		F      float32         `json:"f"`
		B      bool            `json:"b"`
		Num    json.Number     `json:"num"`
		Any    any             `json:"any"`
		None   string          `json:"-"`
		Plain  string
		hidden int // encoding/json has no key for it
	}
	const good = `{"shared":"s","text":"x\n","in":{"n":-128,"many":{"K":1,"k":2}},"list":[{"n":1},{}],"raw":{"x":[1]},"at":"2026-01-02T03:04:05Z",` +
		`"bytes":"AAE=","u":255,"f":1.5,"b":true,"num":1e3,"any":{"x":null},"Plain":"p"}`
	var got, want doc
	if err := errors.Join(Unmarshal([]byte(good), &got), json.Unmarshal([]byte(good), &want)); err != nil ||
		!reflect.DeepEqual(got, want) {
		t.Errorf("%+v %+v %v", got, want, err)
	}
	got = doc{hidden: got.hidden}
	if err := Unmarshal([]byte(`{"more":{"any":1},"text":null,"in":null}`), &got, UnknownFields); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		`{"more":1}`:                   "more: there is no such field; there are Plain, any, at, b",
		`{"Text":"x"}`:                 "Text: there is no such field; write text",
		`{"in":{"N":1}}`:               "in.N: there is no such field; write n",
		`{"None":""}`:                  "None: there is no such field; there are",
		`{"base":{}}`:                  "base: there is no such field; there are",
		`{"hidden":1}`:                 "hidden: there is no such field; there are",
		`[]`:                           "an object is wanted",
		`{"text":1}`:                   "text: a text is wanted",
		`{"in":{"n":128}}`:             "in.n: a whole number of 8 bits is wanted",
		`{"in":{"many":{"a":"x"}}}`:    "in.many.a: a number is wanted",
		`{"list":[{},{"n":1.5}]}`:      "list[1].n: a whole number of 8 bits",
		`{"list":{}}`:                  "list: a list is wanted",
		`{"u":-1}`:                     "u: a whole number of 8 bits",
		`{"f":1e300}`:                  "f: a number of 32 bits",
		`{"b":"true"}`:                 "b: true or false is wanted",
		`{"num":"x"}`:                  "",
		`{"at":"yesterday"}`:           "",
		`{"bytes":"?"}`:                "",
		`{"raw":{"a":1,"a":2}}`:        "raw.a: given twice",
		`{"any":[{"a":1,"a":2}]}`:      "any[0].a: given twice",
		`{"text":"x","te\u0078t":"y"}`: "text: given twice",
	} {
		if err := Unmarshal([]byte(text), &doc{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if err := Unmarshal([]byte(`{"TEXT":"x"}`), &doc{}, UnknownFields); err == nil {
		t.Error("a key that only its case tells from one that is known is taken")
	}
	if err := Decode(strings.NewReader(good), int64(len(good)), &got); err != nil {
		t.Error(err)
	}
	if err := Decode(strings.NewReader(good), int64(len(good)-1), &got); err == nil || !strings.Contains(err.Error(),
		"more than") {
		t.Error(err)
	}
}

// The parts of a document are told apart as they stand there.
func TestParts(t *testing.T) {
	members, err := Members([]byte(` {"a":[1, {"b":2}] , "\u0063" : "\"}"} `))
	if want := []Member{{"a", []byte(`[1, {"b":2}]`)}, {"c", []byte(`"\"}"`)}}; err != nil || !reflect.DeepEqual(members,
		want) {
		t.Errorf("%q %v", members, err)
	}
	elements, err := Elements([]byte(`[{"a":1},[2] , "x",-1.5e3]`))
	if want := [][]byte{[]byte(`{"a":1}`), []byte(`[2]`), []byte(`"x"`), []byte(`-1.5e3`)}; err != nil ||
		!reflect.DeepEqual(elements, want) {
		t.Errorf("%q %v", elements, err)
	}
	deep := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	if _, err := Members([]byte(`{"a":` + deep + `}`)); err != nil { // each is a document of its own
		t.Error(err)
	}
	for _, bad := range []string{`[]`, `{"a":[` + deep + `]}`, `{"a":1}x`} {
		if _, err := Members([]byte(bad)); err == nil {
			t.Errorf("%.40s is taken", bad)
		}
	}
	if s, err := Text([]byte(` "\u0061b" `)); s != "ab" || err != nil {
		t.Errorf("%q %v", s, err)
	}
}

// What a caller asks for is read, or said to be missing.
func TestReader(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "7": 7, "12": 12, "01": -1, "1.": -1, "1e": -1, "1E2": -1, "": -1, "x": -1, "-1": -1,
		"9223372036854775807": 1<<63 - 1, "9223372036854775808": -1,
	} {
		err := Read(text, func(r *Reader) error {
			n, err := r.Whole()
			if err == nil && int64(n) != want {
				t.Errorf("%s: %d", text, n)
			}
			return err
		})
		if (err == nil) != (want >= 0) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, want := range map[string][]string{
		`"a"`: {"a"}, `["a","\u0062"]`: {"a", "b"}, `[]`: nil, `1`: nil,
		`["a",1]`: nil, `{}`: nil,
	} {
		var got []string
		err := Read(text, func(r *Reader) (err error) {
			got, err = r.Texts()
			return err
		})
		if (err == nil) != (want != nil) || err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
}

// Whatever is taken is what encoding/json takes, with the same value, and refused for
// no reason but the rules.
func FuzzRead(f *testing.F) {
	for _, s := range jsontest.Values() {
		f.Add(s)
	}
	for _, s := range jsontest.Broken(`{"a":1}`) {
		f.Add(s)
	}
	for _, s := range []string{
		`{}`, ` { "a" : "b" , "l":["x","\u00e9\ud83d\ude00"], "n": 12, "o":{"k":"\b\f\n\r\t\/\\\""} } `, `{"n":01}`,
		`{"n":-0.5E+7}`, `{"a":"` + "\x7f" + `"}`,
		`[true,false,null,1e-999]`, `"\u0000"`, `{"A":1,"a":2}`, `{"":{}}`, `[[],{}]`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got, want any
		err := Read(text, func(r *Reader) (err error) {
			got, err = valueOf(r)
			return err
		})
		theirs := json.Unmarshal([]byte(text), &want)
		switch {
		case err == nil && (theirs != nil || !reflect.DeepEqual(got, want)):
			t.Fatalf("%q is %v, want %v (%v)", text, got, want, theirs)
		case err != nil && strings.Contains(err.Error(), "not JSON: ") && theirs == nil:
			t.Fatalf("%q is JSON: %v", text, err)
		case (Check([]byte(text)) == nil) != (err == nil):
			t.Fatalf("%q: to read and to check differ: %v", text, err)
		}
		var into any
		if (Unmarshal([]byte(text), &into) == nil) != (err == nil) || err == nil && !reflect.DeepEqual(into, want) {
			t.Fatalf("%q is %v, want %v", text, into, want)
		}
	})
}

// valueOf reads any value by the methods that readers of requests use.
func valueOf(r *Reader) (any, error) {
	switch r.Kind() {
	case '{':
		o := map[string]any{}
		return o, r.Members(func(r *Reader, key string) (err error) {
			o[key], err = valueOf(r)
			return err
		})
	case '[':
		list := []any{}
		err := r.Items(func(r *Reader, _ int) error {
			v, err := valueOf(r)
			list = append(list, v)
			return err
		})
		return list, err
	case '"':
		return r.Text()
	case '0':
		text, err := r.Number()
		if err != nil {
			return nil, err
		}
		return strconv.ParseFloat(text, 64)
	case 't':
		return r.Bool()
	}
	if r.Null() {
		return nil, nil
	}
	return nil, r.Any()
}
