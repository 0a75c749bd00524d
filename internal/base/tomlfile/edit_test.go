package tomlfile

import (
	"strings"
	"testing"
)

// An edit changes one value, and nothing else of the text.
func TestEdit(t *testing.T) {
	for name, c := range map[string]struct{ text, path, literal, want string }{
		"nothing there":   {"", "a.b", "1", "[a]\nb = 1\n"},
		"of the root":     {"", "b", "1", "b = 1\n"},
		"in its place":    {"[a]\nb = 2 # two\nc = 3\n", "a.b", "1", "[a]\nb = 1 # two\nc = 3\n"},
		"several lines":   {"[a]\nb = [\n  2, # two\n]\nc = 3\n", "a.b", "1", "[a]\nb = 1\nc = 3\n"},
		"a string":        {"a = { b = '#}' } # x\n", "a.b", "1", "a = { b = 1 } # x\n"},
		"dotted":          {"a.b = 2\n", "a.b", "1", "a.b = 1\n"},
		"a new key":       {"# head\n[a] # of a\nc = 3\n[d]\n", "a.b", "1", "# head\n[a] # of a\nb = 1\nc = 3\n[d]\n"},
		"no end of line":  {"[a]", "a.b", "1", "[a]\nb = 1\n"},
		"a new table":     {"[a]\nc = 3", "d.b", "1", "[a]\nc = 3\n\n[d]\nb = 1\n"},
		"below a table":   {"[a]\nc = 3\n", "a.d.b", "1", "[a]\nc = 3\n\n[a.d]\nb = 1\n"},
		"above a table":   {"[a.d]\nc = 3\n", "a.b", "1", "[a.d]\nc = 3\n\n[a]\nb = 1\n"},
		"quoted":          {"", "a.x/y", "1", "[a]\n\"x/y\" = 1\n"},
		"letters of two":  {"[a]\n\"ä\" = \"öö\"\nb = \"ü\"\n", "a.b", "1", "[a]\n\"ä\" = \"öö\"\nb = 1\n"},
		"refused: inline": {"a = { c = 3 }\n", "a.b", "1", ""},
		"refused: dotted": {"a.c = 3\n", "a.b", "1", ""},
		"refused: tables": {"[[a]]\nc = 3\n", "a.b", "1", ""},
		"refused: value":  {"a = 3\n", "a.b", "1", ""},
	} {
		got, err := Edit("f", []byte(c.text), strings.Split(c.path, "."), c.literal, Value{Kind: Integer, Int: 1})
		if string(got) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

// What is written for a string is read as that string.
func TestLiteral(t *testing.T) {
	for _, s := range []string{"", "a", `"\`, "\x00\x1f\x7f\u0085\u2028", "<&>", "é\U0001f600"} {
		table, err := Parse("f", []byte("a = "+Literal(s)))
		if err != nil {
			if s == "" || s[0] != 0 {
				t.Errorf("%q: %v", s, err)
			}
			continue // control characters are refused in values
		}
		if table.Entries[0].Value.Str != s {
			t.Errorf("%q became %q", s, table.Entries[0].Value.Str)
		}
	}
}
