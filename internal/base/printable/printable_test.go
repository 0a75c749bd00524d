package printable_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"runloop.dev/rlp/internal/base/printable"
)

func TestLine(t *testing.T) {
	for s, want := range map[string]string{
		"":                     "",
		"/home/u/a b.md":       "/home/u/a b.md",
		"Grüße, 漢字 🙂 e\u0301":  "Grüße, 漢字 🙂 e\u0301",
		"a\nb\r\tc":            `a\nb\r\tc`,
		"\x00\x1b[2J\x7f":      `\x00\x1b[2J\x7f`,
		"\u0085\u009b31m":      `\u0085\u009b31m`,
		"\u202egpj.exe":        `\u202egpj.exe`,
		"a\u200bb\u00adc":      `a\u200bb\u00adc`,
		"\u200e\u200f\u061c":   `\u200e\u200f\u061c`,
		"\u2028\u2029\ufeff":   `\u2028\u2029\ufeff`,
		"\U000e0041\U000e007f": `\U000e0041\U000e007f`,
		"\u034f\u115f\u1160\u17b4\u3164\uffa0\u2800": `\u034f\u115f\u1160\u17b4\u3164\uffa0\u2800`,
		"\ufe0f\U000e0100\u180b":                     `\ufe0f\U000e0100\u180b`,
		"\ue000\U00100000\ufffe":                     `\ue000\U00100000\ufffe`,
		"a\xffb\xed\xa0\x80":                         `a\xffb\xed\xa0\x80`,
		"\ufffd":                                     "\ufffd",
	} {
		if got := printable.Line(s); got != want {
			t.Errorf("Line(%q) = %q, want %q", s, got, want)
		}
	}
}

// No character gets through that Unicode says is not drawn, or not as itself.
func TestNothingHiddenIsShown(t *testing.T) {
	for r := range rune(utf8.MaxRune + 1) {
		raw := strings.ContainsRune(printable.Line("a"+string(r)+"b"), r) && r != utf8.RuneError
		notDrawn := unicode.IsControl(r) || !unicode.IsGraphic(r) && unicode.In(r, unicode.C, unicode.Z) ||
			unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
		if raw && notDrawn {
			t.Fatalf("%U is shown as it is", r)
		}
		if unicode.In(r, unicode.L, unicode.N, unicode.P) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) &&
			!raw {
			t.Fatalf("control: %U, a letter, a digit or a sign, is escaped", r)
		}
	}
}
