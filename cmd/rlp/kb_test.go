package main

import (
	"testing"
)

// A DOMAIN and a KEY are one argument or two; only the first slash parts them.
func TestPlaces(t *testing.T) {
	for want, args := range map[[2]string][]string{
		{"notes", "a"}: {"notes", "a"}, {"notes", "a/b"}: {"notes/a/b"}, {"notes", "x/y"}: {"notes", "x/y"},
		{"notes", ""}: {"notes/"},
	} {
		if domain, key := place(args); domain != want[0] || key != want[1] {
			t.Errorf("%q: %q and %q", args, domain, key)
		}
	}
}
