package caps

import "testing"

// A reason is the same when it is read again; one of a later version is unknown.
func TestCodesAreReadAgain(t *testing.T) {
	for c := range NumCodes {
		text, err := c.MarshalText()
		var again Code
		if err != nil || again.UnmarshalText(text) != nil || again != c {
			t.Errorf("%s is read as %s: %v", c, again, err)
		}
	}
	var later Code
	if err := later.UnmarshalText([]byte("of_a_later_version")); err != nil || later.String() != "unknown" {
		t.Errorf("%s, %v", later, err)
	}
}
