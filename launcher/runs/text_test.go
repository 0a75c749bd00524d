package runs

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What is printed of a denial keeps its beginning and its end, and its width.
//
//rlp:holds D6
func TestADenialFitsItsLine(t *testing.T) {
	long := "/data/" + strings.Repeat("folder/", 40) + "end"
	d := Denial{Cap: "fs.write", Target: long, Reason: "path_not_permitted", Count: 12}
	for _, width := range []int{60, 100} {
		text := d.Text(width)
		if n := utf8.RuneCountInString(text); n > width {
			t.Errorf("%d characters of %d: %s", n, width, text)
		}
	}
	if got, want := Middle("abcdefghij", 5), "ab…ij"; got != want {
		t.Errorf("Middle = %q, want %q", got, want)
	}
	if got, want := End("abcdefghij", 5), "abcd…"; got != want {
		t.Errorf("End = %q, want %q", got, want)
	}
	d = Denial{Request: "fs:write:/a b/it's"}
	if got, want := (Asked{"x", FlagsOf("", "default")}).Explain("0198d2c4-7f1e-7000-8000-6d0c3f0a1b2c", &d),
		`rlp caps explain x 'fs:write:/a b/it'\''s' --run 3f0a1b2c`; got != want {
		t.Errorf("Explain = %s, want %s", got, want)
	}
	if got, want := FlagsOf("/a b", "acme"), " --home '/a b' --tenant acme"; got != want {
		t.Errorf("FlagsOf = %s, want %s", got, want)
	}
}
