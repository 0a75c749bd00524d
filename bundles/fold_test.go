package bundles

import (
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// folded is fold by the tables of x/text.
func folded(name string) string {
	folder := cases.Fold()
	once := norm.NFKC.String(folder.String(oneCase(norm.NFD.String(name))))
	return norm.NFKC.String(oneCase(folder.String(once)))
}

// Names are one or two exactly where the tables of Unicode's own folding say so:
// of each letter there is, and of letters that meet.
func TestFoldIsUnicodes(t *testing.T) {
	var letters []rune
	for r := rune(utf8.RuneSelf); r <= utf8.MaxRune; r++ {
		if 0x3400 <= r && r < 0xa000 || 0xac00 <= r && r < 0xf900 || 0x20000 <= r {
			continue // ideographs, syllables and what is not assigned: they have no case
		}
		name := string(r)
		want := folded(name)
		if got := fold(name); got != want {
			t.Errorf("%U folds to %+q, want %+q", r, got, want)
		}
		if want != name {
			letters = append(letters, r)
		}
	}
	for range 20_000 {
		var name []rune
		for range 2 + rand.IntN(3) {
			name = append(name, letters[rand.IntN(len(letters))])
		}
		name = append(name, 0x300+rand.Int32N(0x70)) // a mark
		if got, want := fold(string(name)), folded(string(name)); got != want {
			t.Fatalf("%+q folds to %+q, want %+q", string(name), got, want)
		}
	}
}
