package printable

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Drawn is the capital letter of A to Z, or the low line, that r is drawn like, in
// whatever frame, size, style and with whatever marks; r itself if it is drawn like
// none. Small letters of their own shape are none.
//
// What Unicode says to be a form of another character (enclosed, wide, mathematical
// and raised letters, letters with marks) is that one. The rest are the alphabets
// that it takes for signs, and letters of other scripts that have the same shape.
func Drawn(r rune) rune {
	if r < utf8.RuneSelf {
		return r
	}
	for _, first := range alphabets {
		if first <= r && r < first+26 {
			return 'A' + r - first
		}
	}
	if c := lookalike(r); c != 0 {
		return c
	}
	base := bare(r)
	if c := lookalike(base); c != 0 {
		return c
	}
	if 'A' <= base && base <= 'Z' || base == '_' {
		return base
	}
	return r
}

// bare is what r is a form of, without frame and marks, if that is one character;
// else r.
func bare(r rune) rune {
	found, n := r, 0
	for _, c := range norm.NFKD.String(string(r)) {
		if unicode.IsLetter(c) || c == '_' {
			found, n = c, n+1
		}
	}
	if n != 1 {
		return r
	}
	return found
}

// alphabets are where A is of those that have no other form: circled and squared in
// negative, and of flags.
var alphabets = []rune{'\U0001f150', '\U0001f170', '\U0001f1e6'}

// lookalike is the character of the marker's word that r is drawn like without being
// a form of it: small capitals, strokes through it, and other scripts. 0: none.
func lookalike(r rune) rune {
	if unicode.Is(unicode.Cherokee, r) { // whose small letters are small capitals
		r = unicode.ToUpper(r)
	}
	switch {
	case strings.ContainsRune("ʀʁᴙᴚƦᎡᏒᖇꓣ𖼵𐒴ɌⱤ®℞℟ꞦꝚ", r):
		return 'R'
	case strings.ContainsRune("ʟᴌᏞᒪꓡⳐŁȽⱠⱢꝈ𐐛𐔦𖼖𑢣𑢲𝈪", r):
		return 'L'
	case strings.ContainsRune("ᴘᴩРΡᏢᑭꓑⲢ𐊕ƤⱣꝐꝒꝔ℗₱₽", r):
		return 'P'
	case strings.ContainsRune("ˍ‗▁⎯⎽﹍﹎﹏ꟷ⸏", r):
		return '_'
	}
	return 0
}
