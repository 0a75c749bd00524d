package secrets

import (
	"strings"
	"unicode/utf8"
)

// longestEscape bounds an escape: no writing fills its numbers up to more.
const longestEscape = 16

func isEscaped(b byte) bool {
	switch b {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't', '\'', '0', 'a', 'v', 'e':
		return true
	}
	return false
}

func unescape(b byte) byte {
	switch b {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case '0':
		return 0
	case 'a':
		return '\a'
	case 'v':
		return '\v'
	case 'e':
		return 0x1b
	}
	return b
}

// entities are the names that HTML and XML write characters by, of those that have to
// be written so.
var entities = [...]struct {
	name string
	is   rune
}{{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}

// unitOfEntity says what text, which begins with "&", is: an entity, the beginning
// of one, or neither.
func unitOfEntity(text []byte) unitState {
	if text[1] != '#' {
		for _, e := range entities {
			switch {
			case !strings.HasPrefix(e.name, string(text)):
			case len(e.name) == len(text):
				return unitDone
			default:
				return unitOpen
			}
		}
		return unitNone
	}
	digits, is := text[2:], func(b byte) bool { return b >= '0' && b <= '9' }
	if len(digits) > 0 && digits[0]|0x20 == 'x' {
		digits, is = digits[1:], func(b byte) bool { return classes[b]&isHex != 0 }
	}
	n := len(digits)
	switch {
	case n > 1 && digits[n-1] == ';':
		return unitDone
	case n > 0 && !is(digits[n-1]), len(text) == longestEscape:
		return unitNone
	}
	return unitOpen
}

// runeOfEntity is the character that a whole entity stands for.
func runeOfEntity(text []byte) rune {
	if text[1] != '#' {
		for _, e := range entities {
			if e.name == string(text) {
				return e.is
			}
		}
	}
	base, r := rune(10), rune(0)
	for _, b := range text[2 : len(text)-1] {
		if b|0x20 == 'x' {
			base = 16
			continue
		}
		if r = r*base + rune(unhex(b)); r > utf8.MaxRune {
			return utf8.RuneError
		}
	}
	return r
}
