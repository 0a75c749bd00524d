package web

import (
	"strings"
	"testing"
)

// A header's name is a token as RFC 9110 has it, its value has no control
// characters but tabs.
func TestWhatAHeaderIsMadeOf(t *testing.T) {
	const token = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	for c := rune(0); c < 0x180; c++ {
		if got, want := isTokenChar(c), strings.ContainsRune(token, c); got != want {
			t.Errorf("%q in a name: %v, want %v", c, got, want)
		}
		want := c == '\t' || c >= ' ' && c != 0x7f
		for _, v := range []string{string(c), "a" + string(c), string(c) + "a"} {
			if got := IsHeaderValue(v); got != want {
				t.Errorf("%q as a value: %v, want %v", v, got, want)
			}
		}
	}
}
