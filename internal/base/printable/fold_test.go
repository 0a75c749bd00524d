package printable_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"runloop.dev/rlp/internal/base/printable"
)

// Lines are broken between words alone, and lose nothing of the text.
func TestFold(t *testing.T) {
	path := "/" + strings.Repeat("long/", 10) + "name"
	for text, want := range map[string]string{
		"one two three":       "one two\n  three",
		"one two thre":        "one two\n  thre",
		"éé éé éé":            "éé éé éé",
		"one":                 "one",
		"  a b":               "  a b",
		path:                  path,
		"see " + path + " so": "see\n  " + path + "\n  so",
		"a b\nc d":            "a b\nc d",
		"    " + path:         "    " + path,
	} {
		if got := printable.Fold(text, 9, "  "); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	text := strings.Repeat("some words of a message ", 50)
	folded := printable.Fold(text, 100, "     ")
	for _, line := range strings.Split(folded, "\n") {
		if utf8.RuneCountInString(line) > 100 {
			t.Errorf("too wide: %s", line)
		}
	}
	if strings.Join(strings.Fields(folded), " ") != strings.TrimSpace(text) {
		t.Error("words are lost")
	}
}
