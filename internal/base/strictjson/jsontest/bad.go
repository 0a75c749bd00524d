// Package jsontest has the JSON that no reader of the program takes, for the tests of
// each place where JSON of others comes in.
package jsontest

import (
	"fmt"
	"strings"
)

// Documents are those of [Values], each at the place that around has for one by %s,
// and those of [Broken]. Good is one that is taken.
func Documents(around string) (bad map[string]string, good string) {
	good = fmt.Sprintf(around, `{"a":["\ud83d\ude00",-1.5e3]}`)
	bad = Broken(good)
	for name, value := range Values() {
		bad[name] = fmt.Sprintf(around, value)
	}
	return bad, good
}

// Values are values that encoding/json takes, and some other reader takes for
// something else or not at all. A document with one anywhere in it is refused.
func Values() map[string]string {
	return map[string]string{
		"a key twice":                       `{"a":1,"a":2}`,
		"a key twice, one of them escaped":  `{"a":1,"\u0061":2}`,
		"a key twice, far below":            `[{"a":[{"b":{},"c":{"b":1,"b":2}}]}]`,
		"a key twice among many":            `{"x":0` + many(100) + `,"k7":0}`,
		"the first half of a character":     `"\ud800"`,
		"the second half of a character":    `"\udc00"`,
		"halves the wrong way round":        `"\udc00\ud800"`,
		"half of a character, and a letter": `"\ud83d\u0041"`,
		"half of a character in a key":      `{"\ud800":1}`,
		"U+0000 in a key":                   `{"a\u0000b":1}`,
		"a number beyond 64 bits":           `1e999`,
		"a negative number beyond 64 bits":  `-1E+400`,
		"a number of too many characters":   strings.Repeat("7", 129),
		"a fraction of too many characters": "0." + strings.Repeat("0", 127),
		"an exponent of too many":           "1e-" + strings.Repeat("0", 126),
		"too deep a list":                   strings.Repeat("[", 81) + strings.Repeat("]", 81),
		"too deep an object":                strings.Repeat(`{"a":`, 81) + "1" + strings.Repeat("}", 81),
		"bytes that are no UTF-8":           "\"\xff\"",
		"half of a character as bytes":      "\"\xed\xa0\x80\"",
	}
}

// Broken is what is made of good, which is a document, when it is not that alone.
func Broken(good string) map[string]string {
	return map[string]string{
		"nothing":                      "",
		"a byte order mark before it":  "\ufeff" + good,
		"another document behind it":   good + good,
		"a word behind it":             good + " x",
		"a NUL behind it":              good + "\x00",
		"all but its last byte":        good[:len(good)-1],
		"a comma behind it":            good + ",",
		"a comment before it":          "/* */" + good,
		"a list of it that has no end": "[" + good,
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`,"k` + string(rune('0'+i/10)) + string(rune('0'+i%10)) + `":0`)
	}
	return strings.ReplaceAll(b.String(), `"k07"`, `"k7"`)
}
