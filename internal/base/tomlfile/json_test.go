package tomlfile

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/base/strictjson/jsontest"
)

// A document means what a decoder would make of it, and each value has its place.
func TestJSON(t *testing.T) {
	const text = "{\n  \"a\": [1, -2.5e1, \"x\\u00e9\", true, null],\n  \"b\": {\"c\": {}}\n}\n"
	root, err := ParseJSON("x.json", []byte(text), 1<<10)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"a": []any{int64(1), -25.0, "xé", true, nil},
		"b": map[string]any{"c": map[string]any{}},
	}
	if got := root.Plain(); !reflect.DeepEqual(got, want) {
		t.Errorf("%#v", got)
	}
	a, _ := root.Get("a")
	b, _ := root.Get("b")
	for pos, want := range map[Pos]string{
		a.Pos: "x.json:2:3", a.Value.Pos: "x.json:2:8", a.Value.Items[1].Pos: "x.json:2:12",
		a.Value.Items[4].Pos: "x.json:2:37", b.Value.Table.Pos: "x.json:3:8",
	} {
		if pos.String() != want {
			t.Errorf("%s, want %s", pos, want)
		}
	}
	if a.Value.Items[4].Kind != Null || Null.String() != "null" {
		t.Error("null is of no kind")
	}
	if again, err := b.Value.JSON(); err != nil || string(again) != `{"c":{}}` {
		t.Errorf("%s, %v", again, err)
	}
}

func TestJSONIsStrict(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{``, "this is not JSON: it ends too early"},
		{`{"a": 1`, "ends too early"},
		{`{"a": }`, `x.json:1:7: this is not JSON`},
		{`{"a" 1}`, "this is not JSON"},
		{`{a: 1}`, "this is not JSON"},
		{`{"a": 1,}`, "this is not JSON"},
		{`[1]`, "an object is wanted"},
		{`{} {}`, "x.json:1:4: this is not JSON: something stands behind the end"},
		{`{} x`, "something stands behind the end"},
		{"{\"a\": 1,\n \"a\": 2}", `x.json:2:2: given twice, first at line 1, column 2`},
		{`{"a": {"b": 1, "\u0062": 2}}`, `x.json:1:16: given twice`},
		{`{"a": 9223372036854775808}`, "too large"},
		{`{"a": 1e999}`, "beyond 64 bits of floating point"},
		{strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70), "more than 64 levels"},
		{"{\"a\": \"\xff\"}", "UTF-8"},
		{`{"a\u0000": 1}`, "a key"},
		{`{"a": "\u001b[2J"}`, "a string"},
		{"\xef\xbb\xbf{}", "byte order mark"},
		{`{"a": "` + strings.Repeat("x", 2<<10) + `"}`, "at most 1024 are read"},
	} {
		_, err := ParseJSON("x.json", []byte(c.text), 1<<10)
		var at *Error
		if !errors.As(err, &at) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.40q: %v, want %q", c.text, err, c.says)
		}
	}
}

// Whatever is accepted is what the standard library reads, once each key is
// there once.
func FuzzParseJSON(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":[1,2.5,"x",true,null,{"b":{}}]}`, `{"a":1,"a":2}`,
		`{"\ud800":"\ud83d\ude00"}`, ` {"a" : -0 } `,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		root, err := ParseJSON("x", data, 1<<16)
		if err != nil {
			return
		}
		var theirs map[string]any
		if err := json.Unmarshal(data, &theirs); err != nil {
			t.Fatalf("accepted, and no JSON: %v", err)
		}
		text, err := json.Marshal(root.Plain())
		if err != nil {
			t.Fatal(err)
		}
		var ours map[string]any
		if err := json.Unmarshal(text, &ours); err != nil || !reflect.DeepEqual(ours, theirs) {
			t.Errorf("%q: read %v, it is %v (%v)", data, ours, theirs, err)
		}
	})
}

// What no reader takes is no policy. Control: the good one is.
func TestNoPolicyIsReadTwoWays(t *testing.T) {
	bad, good := jsontest.Documents(`{"x":%s}`)
	if _, err := ParseJSON("x.json", []byte(good), 1<<10); err != nil {
		t.Errorf("control: %v", err)
	}
	for name, text := range bad {
		if _, err := ParseJSON("x.json", []byte(text), 1<<20); err == nil {
			t.Errorf("%s is taken: %.80s", name, text)
		}
	}
}
