package pii

import (
	"unicode"
	"unicode/utf8"
)

// The classes of bytes.
const (
	cAt     = 1 << iota // begins an address
	cDigit              // begins a number
	cLetter             // an a, which may begin the word at
	cLabel              // ends the name of a field
	cEscape             // may begin an escape
	cNul                //
	cStop               // ends or escapes in a JSON text, or may not be in it
	cWord               // may be base64 or hexadecimal
)

// class is what each byte may mean to the rules.
var class = [256]uint8{
	'@': cAt, ':': cLabel, '=': cLabel | cEscape,
	'%': cEscape, '&': cEscape, '\\': cEscape | cStop, '"': cStop, 0xc2: cEscape, 0xe2: cEscape, 0xe3: cEscape,
	0xef: cEscape,
	0:    cNul | cStop, 1: cStop, 2: cStop, 3: cStop, 4: cStop, 5: cStop, 6: cStop, 7: cStop, 8: cStop, 9: cStop,
	10: cStop, 11: cStop,
	12: cStop, 13: cStop, 14: cStop, 15: cStop, 16: cStop, 17: cStop, 18: cStop, 19: cStop, 20: cStop, 21: cStop,
	22: cStop,
	23: cStop, 24: cStop, 25: cStop, 26: cStop, 27: cStop, 28: cStop, 29: cStop, 30: cStop, 31: cStop,
	'0': cDigit | cWord, '1': cDigit | cWord, '2': cDigit | cWord, '3': cDigit | cWord, '4': cDigit | cWord,
	'5': cDigit | cWord, '6': cDigit | cWord, '7': cDigit | cWord, '8': cDigit | cWord, '9': cDigit | cWord,
	'a': cLetter | cWord, 'b': cWord, 'c': cWord, 'd': cWord, 'e': cWord, 'f': cWord, 'g': cWord, 'h': cWord, 'i': cWord,
	'j': cWord,
	'k': cWord, 'l': cWord, 'm': cWord, 'n': cWord, 'o': cWord, 'p': cWord, 'q': cWord, 'r': cWord, 's': cWord, 't': cWord,
	'u': cWord, 'v': cWord, 'w': cWord, 'x': cWord, 'y': cWord, 'z': cWord,
	'A': cLetter | cWord, 'B': cWord, 'C': cWord, 'D': cWord, 'E': cWord, 'F': cWord, 'G': cWord, 'H': cWord, 'I': cWord,
	'J': cWord,
	'K': cWord, 'L': cWord, 'M': cWord, 'N': cWord, 'O': cWord, 'P': cWord, 'Q': cWord, 'R': cWord, 'S': cWord, 'T': cWord,
	'U': cWord, 'V': cWord, 'W': cWord, 'X': cWord, 'Y': cWord, 'Z': cWord,
	'+': cWord, '/': cWord, '-': cWord, '_': cWord,
}

// classes is what the bytes of b may mean, together.
func classes(b []byte) uint8 {
	var c uint8
	for _, x := range b {
		c |= class[x]
	}
	return c
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlnum(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' }

func firstByte(b []byte) byte {
	for _, c := range b {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

func isLetter(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r))
}
