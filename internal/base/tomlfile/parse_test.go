package tomlfile

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
)

func mustParse(t *testing.T, text string) *Table {
	t.Helper()
	tab, err := Parse("f.toml", []byte(text))
	if err != nil {
		t.Fatalf("parsing %q: %v", text, err)
	}
	return tab
}

// at returns "line:column" of every key and value under its dotted name.
func at(prefix string, t *Table, into map[string]string) {
	for _, e := range t.Entries {
		name := prefix + e.Key
		into[name] = strings.TrimPrefix(e.Pos.String(), "f.toml:") + " " + strings.TrimPrefix(e.Value.Pos.String(), "f.toml:")
		if e.Value.Kind == TableKind {
			at(name+".", e.Value.Table, into)
		}
		for i := range e.Value.Items {
			v := &e.Value.Items[i]
			into[name+"["+string(rune('0'+i))+"]"] = strings.TrimPrefix(v.Pos.String(), "f.toml:")
		}
	}
}

func TestPositions(t *testing.T) {
	tab := mustParse(t, strings.Join([]string{
		`schema = "0.1" # = [`,
		`[capabilities]`,
		`fs = [ # ] here`,
		`  "/é", '/b' , # c`,
		`  [], {a = 1, "b c".d = true},`,
		`]`,
		`"ne\u0074" = { hosts = ["x"] }`,
		`[[model.providers]]`,
		`  id = 'a'`,
		`"é" = "ü"`,
	}, "\r\n"))
	got := map[string]string{}
	at("", tab, got)
	want := map[string]string{
		"schema": "1:1 1:10", "capabilities": "2:2 2:2",
		"capabilities.fs": "3:1 3:6", "capabilities.fs[0]": "4:3", "capabilities.fs[1]": "4:9",
		"capabilities.fs[2]": "5:3", "capabilities.fs[3]": "5:7",
		"capabilities.net": "7:1 7:14", "capabilities.net.hosts": "7:16 7:24", "capabilities.net.hosts[0]": "7:25",
		"model": "8:3 8:3", "model.providers": "8:9 8:9", "model.providers[0]": "8:9",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("positions\n got %v\nwant %v", got, want)
	}
	inner, _ := tab.Get("model")
	prov, _ := inner.Value.Table.Get("providers")
	e, _ := prov.Value.Items[0].Table.Get("é")
	if e.Pos != (Pos{"f.toml", 10, 1}) || e.Value.Pos != (Pos{"f.toml", 10, 7}) {
		t.Errorf("columns count characters: %v %v", e.Pos, e.Value.Pos)
	}
}

// Keys that differ by case are different keys, and nothing is lost.
//
//rlp:holds R38
func TestKeysAreExact(t *testing.T) {
	text := "fs = []\nFS = [\"/a\"]\nFs = 1\n"
	tab := mustParse(t, text)
	var keys []string
	for _, e := range tab.Entries {
		keys = append(keys, e.Key)
	}
	if !reflect.DeepEqual(keys, []string{"fs", "FS", "Fs"}) {
		t.Errorf("keys %v", keys)
	}
	if e, _ := tab.Get("fs"); len(e.Value.Items) != 0 {
		t.Errorf("fs took the value of FS: %v", e.Value.Items)
	}
	// Control: what decoding into a struct does with the same text.
	var s struct {
		FS []string `toml:"fs"`
	}
	if err := toml.Unmarshal([]byte("fs = []\nFS = [\"/a\"]\n"), &s); err != nil || len(s.FS) != 1 {
		t.Errorf("control: the trap is gone: %v %v", s, err)
	}
}

func TestScalars(t *testing.T) {
	tab := mustParse(t, `
i = [0, -0, +17, 1_000, 0xDEAD_beef, 0o17, 0b101, -9223372036854775808, 9223372036854775807]
f = [1.5, -1e3, 1_0.2_5, inf, -inf, nan]
b = [true, false]
d = [2026-12-01T00:00:00Z, 2026-12-01 01:00:00.5+01:00, 2026-12-01, 10:00:00, 2026-12-01T10:00:00]
s = ["a\tb", 'c\d', """
x""", '''y''', ""]
`)
	items := func(k string) []Value { e, _ := tab.Get(k); return e.Value.Items }
	for i, want := range []int64{0, 0, 17, 1000, 0xdeadbeef, 15, 5, math.MinInt64, math.MaxInt64} {
		if v := items("i")[i]; v.Kind != Integer || v.Int != want {
			t.Errorf("i[%d] = %v, want %d", i, v, want)
		}
	}
	for i, want := range []float64{1.5, -1000, 10.25, math.Inf(1), math.Inf(-1)} {
		if v := items("f")[i]; v.Kind != Float || v.Float != want {
			t.Errorf("f[%d] = %v, want %v", i, v.Float, want)
		}
	}
	if v := items("f")[5]; !math.IsNaN(v.Float) {
		t.Errorf("nan = %v", v.Float)
	}
	if !items("b")[0].Bool || items("b")[1].Bool {
		t.Error("booleans")
	}
	noon := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for i, want := range []time.Time{noon, noon.Add(time.Second / 2), {}, {}, {}} {
		if v := items("d")[i]; v.Kind != DateTime || !v.Time.Equal(want) || v.Str == "" {
			t.Errorf("d[%d] = %v %q, want %v", i, v.Time, v.Str, want)
		}
	}
	for i, want := range []string{"a\tb", `c\d`, "x", "y", ""} {
		if v := items("s")[i]; v.Kind != String || v.Str != want {
			t.Errorf("s[%d] = %q", i, v.Str)
		}
	}
}

//rlp:holds R10
func TestRefused(t *testing.T) {
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	cases := []struct{ name, text, pos, msg string }{
		{"byte order mark", "\xef\xbb\xbfa = 1", "f.toml:1:1", "byte order mark"},
		{"not UTF-8", "a = 1\nb = \"\xff\"", "f.toml:2:6", "UTF-8"},
		{"UTF-16", "\xff\xfea\x00", "f.toml:1:1", "UTF-8"},
		{"raw NUL", "a = \"x\x00\"", "f.toml:1:", ""},
		{"escaped NUL", `a = "x\u0000"`, "f.toml:1:5", "U+0000"},
		{"escaped NUL in a key", "\n\"a\\u0000\" = 1", "f.toml:2:1", "U+0000"},
		{"escape in a string", `a = "\u001b[31m"`, "f.toml:1:5", "U+001B"},
		{"C1 control", `a = "\u0085"`, "f.toml:1:5", "U+0085"},
		{"line end in a key", `"a\nb" = 1`, "f.toml:1:1", "U+000A"},
		{"key twice", "a = 1\na = 2", "f.toml:2:1", "there already"},
		{"key twice, quoted", "a = 1\n\"a\" = 2", "f.toml:2:1", "there already"},
		{"key twice in an inline table", "x = {a = 1, a = 2}", "f.toml:1:13", "there already"},
		{"table twice", "[a]\nx=1\n[a]\ny=1", "f.toml:3:", ""},
		{"table over key", "a = 1\n[a]\n", "f.toml:2:2", "there already"},
		{"array of tables over array", "a = [1]\n[[a]]\n", "f.toml:2:", ""},
		{"dotted into inline", "a = {x = 1}\na.y = 2", "f.toml:2:", ""},
		{"reopened by dots", "[a.b]\nx=1\n[a]\nb.y=1", "f.toml:4:", ""},
		{"integer too large", "a = 9223372036854775808", "f.toml:1:5", "integer"},
		{"leading zero", "a = 012", "f.toml:1:", ""},
		{"syntax", "a = \n", "f.toml:1:", ""},
		{"unclosed", "a = [1,\n", "f.toml:1:1", "the array of a has no end"},
		{"unclosed, further up", "b = 1\n[x]\n\"a b\".c = [\n  \"d = [\",\n  \"e\"\n", "f.toml:", "the array has no end"},
		{"unclosed, with lines", "b = 1\n[x]\nfs = [\n  \"d = [\",\n  \"e\"\n", "f.toml:3:1", "the array of fs has no end"},
		{"unclosed table", "[x]\nt = { a = 1", "f.toml:2:1", "the inline table of t has no end"},
		{"too deep", "a = " + deep, "f.toml:1:69", "nested"},
		{"too deep by dots", strings.Repeat("a.", 65) + "b = 1", "f.toml:1:129", "nested"},
		{"too deep by a header", "[" + strings.Repeat("a.", 65) + "b]", "f.toml:1:", "nested"},
		{"too large", strings.Repeat("#\n", DefaultMax/2) + "#", "f.toml", "65537 bytes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tab, err := Parse("f.toml", []byte(c.text))
			var e *Error
			if !errors.As(err, &e) || tab != nil {
				t.Fatalf("got %v, %v; want an *Error alone", tab, err)
			}
			if !strings.HasPrefix(e.Pos.String(), c.pos) || !strings.Contains(e.Msg, c.msg) {
				t.Errorf("got %v, want %s ... %s", e, c.pos, c.msg)
			}
		})
	}
}

//rlp:holds R10
func TestAccepted(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "comments": "# x\n\n# y", "no last line end": "a=1", "CRLF": "a=1\r\n[b]\r\nc = [\r\n1,\r\n]\r\n",
		"at the bound": strings.Repeat("#\n", DefaultMax/2), "deep": "a = " + strings.Repeat("[", 60) + strings.Repeat("]",
			60),
	} {
		t.Run(name, func(t *testing.T) { mustParse(t, text) })
	}
	crlf, lf := mustParse(t, "a=1\r\n[b]\r\nc=\"x\"\r\n"), mustParse(t, "a=1\n[b]\nc=\"x\"\n")
	one, _ := crlf.Get("b")
	other, _ := lf.Get("b")
	if !reflect.DeepEqual(crlf.Plain(), lf.Plain()) || one.Value.Table.Entries[0].Pos != other.Value.Table.Entries[0].Pos {
		t.Error("CRLF changes what is read")
	}
}

func TestReopenedTables(t *testing.T) {
	tab := mustParse(t, "[a.b]\nx=1\n[a]\ny=1\n[[l]]\nk=1\n[l.sub]\nz=1\n[[l]]\nk=2\n")
	want := map[string]any{
		"a": map[string]any{"b": map[string]any{"x": int64(1)}, "y": int64(1)},
		"l": []any{
			map[string]any{"k": int64(1), "sub": map[string]any{"z": int64(1)}},
			map[string]any{"k": int64(2)},
		},
	}
	if got := tab.Plain(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if a, _ := tab.Get("a"); a.Value.Table.Pos.Line != 3 {
		t.Errorf("the place of a table is its own header: %v", a.Value.Table.Pos)
	}
}

// FuzzParse: never a panic, accepted exactly when the library accepts it and
// our own bounds do, with the same values, and every place is in the file.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "a=1", "fs = [\"/a\", # x\n'/b']\n[net]\nhosts={a=[1,{b=2}]}\n", "[[a]]\nb.c=1\n[[a]]\n",
		"a = 2026-12-01T00:00:00Z",
		"a=\"\"\"\nx\\\n  y\"\"\"", "a = [[1,2],[3]]\n\"k\\u0041\" = nan", "a.b=1\n[a]\n", "a={b={c=[]},}",
		"[a]\n[a.b]\n[a]\n",
		"d = 07:32:00.5\ne=1979-05-27", "x = [{a=1},\n{a=2},]", "a = {\n b = 1, # c\n}\n", "a=1979-05-27 07:32Z",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tab, err := Parse("f", data)
		var plain map[string]any
		libErr := toml.Unmarshal(data, &plain)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%T is no *Error: %v", err, err)
			}
			inFile(t, data, e.Pos)
			if libErr == nil && !ours(e.Msg) {
				t.Fatalf("refused what the library accepts: %v", err)
			}
			return
		}
		if libErr != nil {
			t.Fatalf("accepted what the library refuses: %v", libErr)
		}
		places(t, data, tab)
		same(t, "", plain, tab.Plain())
	})
}

func ours(msg string) bool {
	for _, s := range []string{"control character", "nested", "byte order mark", "not UTF-8", "at most"} {
		if strings.Contains(msg, s) {
			return true
		}
	}
	return false
}

func inFile(t *testing.T, data []byte, p Pos) {
	t.Helper()
	lines := strings.Split(string(data), "\n")
	if p.Line == 0 && p.Column == 0 {
		return
	}
	if p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.Column > len([]rune(lines[p.Line-1]))+1 {
		t.Fatalf("the place %v is outside the file", p)
	}
}

func places(t *testing.T, data []byte, tab *Table) {
	inFile(t, data, tab.Pos)
	for i := range tab.Entries {
		inFile(t, data, tab.Entries[i].Pos)
		placesOf(t, data, &tab.Entries[i].Value)
	}
}

func placesOf(t *testing.T, data []byte, v *Value) {
	inFile(t, data, v.Pos)
	if v.Table != nil {
		places(t, data, v.Table)
	}
	line := []rune(strings.Split(string(data), "\n")[v.Pos.Line-1])
	if first := string(line[v.Pos.Column-1:]); v.Kind == String && !strings.HasPrefix(first, `"`) &&
		!strings.HasPrefix(first, "'") {
		t.Fatalf("%v is not where a string begins: %q", v.Pos, first)
	}
	for i := range v.Items {
		placesOf(t, data, &v.Items[i])
	}
}

// same compares what the library decoded with what the tree holds; dates are
// compared by being dates on both sides.
func same(t *testing.T, at string, lib, own any) {
	t.Helper()
	switch l := lib.(type) {
	case map[string]any:
		o, ok := own.(map[string]any)
		if !ok || len(o) != len(l) {
			t.Fatalf("%s: %v and %v", at, lib, own)
		}
		for k := range l {
			same(t, at+"."+k, l[k], o[k])
		}
	case []any:
		o, ok := own.([]any)
		if !ok || len(o) != len(l) {
			t.Fatalf("%s: %v and %v", at, lib, own)
		}
		for i := range l {
			same(t, at+"[]", l[i], o[i])
		}
	case float64:
		o, ok := own.(float64)
		if !ok || (o != l && !(math.IsNaN(o) && math.IsNaN(l))) {
			t.Fatalf("%s: %v and %v", at, lib, own)
		}
	case string, int64, bool:
		if lib != own {
			t.Fatalf("%s: %#v and %#v", at, lib, own)
		}
	default:
		if _, ok := own.(string); !ok {
			t.Fatalf("%s: %T and %T", at, lib, own)
		}
	}
}
