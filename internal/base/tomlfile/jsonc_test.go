package tomlfile

import (
	"strings"
	"testing"
)

// Comments, and commas behind the last, are no JSON: they are read over, and all
// else stands where it stood.
func TestJSONWithComments(t *testing.T) {
	const text = "// settings\n{\n  \"a\": \"x // no comment\", /* , } */\n  \"b\": [1, 2, // two\n  ],\n  \"c\": {\"d\\\"//\": true,},\n}\n"
	root, err := ParseJSONC("f", []byte(text), 1<<10)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`"x // no comment"`, "[1, 2, // two\n  ]", `{"d\"//": true,}`} {
		e := &root.Entries[i]
		start, end := e.Value.Span()
		if text[start:end] != want || !strings.HasPrefix(text[e.Start():], `"`+e.Key+`"`) {
			t.Errorf("%s: %q, its key %.4q", e.Key, text[start:end], text[e.Start():])
		}
	}
	if got := string(Plain([]byte(text))); len(got) != len(text) || strings.Contains(got, "settings") {
		t.Errorf("%q", got)
	}
	for text, place := range map[string]string{
		`{"a": 1 /* }`:     "f:1:9:",
		"{\n\"a\": ,\n}":   "f:2:",
		"{\"a\": 1,, }":    "f:1:",
		"{\"a\": \"x\n\"}": "f:1:",
		"{,}":              "f:1:",
	} {
		if _, err := ParseJSONC("f", []byte(text), 1<<10); err == nil || !strings.HasPrefix(err.Error(), place) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
