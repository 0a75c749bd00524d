package schema

import (
	"reflect"
	"strings"
	"testing"
)

// What stands at the top of a document is told apart as it stands there, and all
// that is wrong with it by its place.
func TestScan(t *testing.T) {
	text := func(list ...string) (raw [][]byte) {
		for _, s := range list {
			raw = append(raw, []byte(s))
		}
		return raw
	}
	for doc, want := range map[string]Document{
		` {"a":[1, {"b":2}],"c" : "\"}"}`: {Members: []Member{{"a", []byte(`[1, {"b":2}]`)}, {"c", []byte(`"\"}"`)}}},
		`[{"a":1},[2] , "x",-1.5e3]`:      {Elements: text(`{"a":1}`, `[2]`, `"x"`, `-1.5e3`)},
		`{}`:                              {}, `[]`: {}, `7`: {},
		strings.Repeat("[", MaxScanDepth) + strings.Repeat("]", MaxScanDepth): {Elements: text(strings.Repeat("[", MaxScanDepth-1) + strings.Repeat("]", MaxScanDepth-1))},
	} {
		want.Raw = []byte(strings.TrimSpace(doc))
		if got, problems := Scan([]byte(doc)); problems != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%.60s: %+v %v", doc, got, problems)
		}
	}
	for doc, want := range map[string]Problem{
		``:                              {"", "ends too early"},
		`{"a":1}{}`:                     {"", "behind its end (line 1, column 8)"},
		"\xff":                          {"", "UTF-8"},
		`[{"a":1,"\u0061":2}]`:          {"[0].a", "twice"},
		`{"a":{"b c":[{"d":1,"d":1}]}}`: {`a."b c"[0].d`, "twice"},
		strings.Repeat("[", 200) + strings.Repeat("]", 200): {strings.Repeat("[0]", MaxScanDepth), "deeper"},
		"[" + strings.Repeat("0,", 1<<20) + "0]":            {"[1048575]", "values"},
	} {
		if _, problems := Scan([]byte(doc)); len(problems) != 1 || problems[0].Path != want.Path || !strings.Contains(problems[0].Why, want.Why) {
			t.Errorf("%.60q: %v, want %v", doc, problems, want)
		}
	}
}
