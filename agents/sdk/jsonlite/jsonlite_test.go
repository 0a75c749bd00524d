package jsonlite_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"runloop.dev/rlp/agents/sdk/jsonlite"
)

func TestWriterCompactAndIndented(t *testing.T) {
	write := func(indent string) string {
		w := jsonlite.Writer{Indent: indent}
		w.Object()
		w.Key("name").String("a\"\\\n\t\x01é\xff")
		w.Key("empty").Array()
		w.End()
		w.Key("list").Strings([]string{"x", "y"})
		w.Key("in").Object()
		w.Key("n").Int(-3)
		w.Key("ok").Bool(true)
		w.End()
		w.End()
		return string(w.Bytes())
	}
	const compact = `{"name":"a\"\\\n\t\u0001é` + "\ufffd" + `","empty":[],"list":["x","y"],"in":{"n":-3,"ok":true}}`
	if got := write(""); got != compact {
		t.Errorf("compact:\n got %s\nwant %s", got, compact)
	}
	var want strings.Builder
	enc := json.NewEncoder(&want)
	enc.SetIndent("", "  ")
	if err := enc.Encode(json.RawMessage(compact)); err != nil {
		t.Fatal(err)
	}
	if got := write("  ") + "\n"; got != want.String() {
		t.Errorf("indented:\n got %s\nwant %s", got, want.String())
	}
}

func TestWriterEscapesWhatSteersATerminal(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[2J\x7f": `"\u001b[2J\u007f"`, "\u009b": `"\u009b"`, "a\u202eb\u2066": `"a\u202eb\u2066"`,
		"\u2028\u200f\u061c": `"\u2028\u200f\u061c"`, "é\u00a0\u2030": "\"é\u00a0\u2030\"",
	} {
		var w jsonlite.Writer
		w.String(in)
		if got := string(w.Bytes()); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestObjects(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []map[string]string
	}{
		{"one object", ` {"a":"b"} `, []map[string]string{{"a": "b"}}},
		{"array", `[{"k":"x","n":12},{"k":"y","n":-1.5e3}]`, []map[string]string{
			{"k": "x", "n": "12"},
			{"k": "y", "n": "-1.5e3"},
		}},
		{"empty array", `[]`, nil},
		{
			"null is absent, the last of a name stands", `{"a":1,"a":null,"b":false,"b":true}`,
			[]map[string]string{{"b": "true"}},
		},
		{"nested stays text", `{"a":{"b":["}",1]},"c":[]}`, []map[string]string{{"a": `{"b":["}",1]}`, "c": "[]"}}},
		{
			"escapes", `{"a":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\ud83d"}`,
			[]map[string]string{{"a": "\"\\/\b\f\n\r\té😀\ufffd"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := jsonlite.Objects([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(c.want) {
				t.Fatalf("got %v, want %v", got, c.want)
			}
			for i := range got {
				if !maps.Equal(got[i], c.want[i]) {
					t.Errorf("object %d: got %v, want %v", i, got[i], c.want[i])
				}
			}
		})
	}
}

func TestObjectsRefusesWhatIsMalformed(t *testing.T) {
	for _, in := range []string{
		``, `null`, `"a"`, `1`, `{`, `[`, `[1]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `[{},]`, `[{} {}]`, `{"a":1}x`,
		`{a:1}`, `{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":"` + "\n" + `"}`, `{"a":[}`, `{"a":[`, `{"a":"`, `{"a":"\`, `{"a":1e}`,
		`{"a":NaN}`, `{"a":0x1p1}`,
	} {
		if got, err := jsonlite.Objects([]byte(in)); err == nil {
			t.Errorf("%q: read as %v", in, got)
		}
	}
}

// FuzzObjects: whatever encoding/json reads as flat objects is read as the same.
func FuzzObjects(f *testing.F) {
	for _, s := range []string{
		`{"error":"denied","hint":""}`, `[{"key":"a","revision":1,"size":2}]`, `[]`,
		`{"a":"\ud800\udc00","b":{"c":[1]}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := jsonlite.Objects(data)
		var want []map[string]any
		if data = append([]byte(nil), data...); json.Unmarshal(data, &want) != nil || want == nil {
			var one map[string]any
			if json.Unmarshal(data, &one) != nil || one == nil {
				return
			}
			want = []map[string]any{one}
		}
		for _, o := range want {
			if o == nil {
				return // a null among the objects is not flat
			}
		}
		if err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		for i, o := range want {
			for k, v := range o {
				text, ok := v.(string)
				if have, found := got[i][k]; ok && have != text || found == (v == nil) {
					t.Fatalf("%q: %q is %q, want %v", data, k, have, v)
				}
			}
		}
	})
}

// FuzzWriter: a text survives the way through the writer and encoding/json, and
// through the writer and the reader.
func FuzzWriter(f *testing.F) {
	f.Add("k", "v")
	f.Add("\x00\"", "\xff\\\u2028")
	f.Fuzz(func(t *testing.T, key, value string) {
		var w jsonlite.Writer
		w.Object()
		w.Key(key).String(value)
		w.End()
		var o map[string]string
		if err := json.Unmarshal(w.Bytes(), &o); err != nil {
			t.Fatal(err)
		}
		list, err := jsonlite.Objects(w.Bytes())
		if err != nil || !maps.Equal(list[0], o) {
			t.Fatalf("%q: %v %v, want %v", w.Bytes(), list, err, o)
		}
		want := string([]rune(value))
		if got := o[string([]rune(key))]; got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}
