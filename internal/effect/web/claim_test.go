package web

import (
	"strings"
	"testing"
)

// The names by which a method is overridden are known in any case, with - and _,
// whatever value they have.
func TestNamesThatOverride(t *testing.T) {
	for _, word := range []string{
		"_method", "_METHOD", "X-Verb", "x_verb", "methodoverride", "Method-Override",
		"X-HTTP-METHOD-OVERRIDE",
	} {
		if got := methodWord("a=1&" + word + "=abc"); got != word {
			t.Errorf("%s: found %q", word, got)
		}
	}
	for _, text := range []string{
		"method=DELETE", "http.method[]=put", "method\r\nX: y; z\r\n\r\npatch",
		"\\u006dethod=PUT", "me%54hod=PUT", "me\\thod=PUT",
	} {
		if methodWord(text) == "" || methodWord(text+"x") != "" {
			t.Errorf("%q: %q, and with another value %q", text, methodWord(text), methodWord(text+"x"))
		}
	}
	for c := range 256 {
		const chars = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		if got, want := isWordChar(byte(c)), strings.IndexByte(chars+"_-.", byte(c)) >= 0; got != want {
			t.Errorf("%q in a word: %v", rune(c), got)
		}
		want := ""
		if c < 0x80 && strings.IndexByte(chars, byte(c)) >= 0 {
			want = strings.ToLower(string(rune(c)))
		}
		if got := letters(string(rune(c))); got != want {
			t.Errorf("the letters of %q are %q", rune(c), got)
		}
	}
}
