package words

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	snippetBytes  = 200 // of text, before and behind which an ellipsis may stand
	snippetBefore = 60  // of them before the word
)

// Snippet shows the first of the words where it stands in the texts, in one
// line: what is no printable sign is a blank, and several blanks are one.
func Snippet(texts []string, words map[string]bool) string {
	for _, text := range texts {
		at := -1
		Each(text, func(word []byte, from, _ int) bool {
			if words[string(word)] {
				at = from
			}
			return at < 0
		})
		if at >= 0 {
			return around(text, at)
		}
	}
	return ""
}

// around cuts a piece of text at the borders of signs.
func around(text string, at int) string {
	from := max(at-snippetBefore, 0)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from++
	}
	to := min(from+snippetBytes, len(text))
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to--
	}
	piece := strings.Join(strings.FieldsFunc(text[from:to], func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if from > 0 {
		piece = "…" + piece
	}
	if to < len(text) {
		piece += "…"
	}
	return piece
}
