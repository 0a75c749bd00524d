// Package words finds the words of values, for the index and for searches.
package words

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxTerm  = 48   // bytes of a term; of a longer word only the beginning counts
	MaxTerms = 2048 // different terms of one value; those that come later cannot be found
)

// Texts returns what of a value can be searched: the strings of a JSON
// document but not its names, the whole of another text, nothing of anything
// that is no text.
func Texts(value []byte) []string {
	if IsDocument(value) {
		return leaves(value)
	}
	if len(value) == 0 || !utf8.Valid(value) || bytes.IndexByte(value, 0) >= 0 {
		return nil
	}
	return []string{string(value)}
}

// IsDocument reports whether a value is a JSON document that holds strings.
func IsDocument(value []byte) bool {
	p := bytes.TrimLeft(value, " \t\r\n")
	return len(p) > 0 && (p[0] == '{' || p[0] == '[' || p[0] == '"') && json.Valid(p)
}

// leaves returns the strings of a valid JSON document, in its order.
func leaves(p []byte) []string {
	var list []string
	for i := 0; i < len(p); {
		if p[i] != '"' {
			i++
			continue
		}
		end := i + 1
		for p[end] != '"' {
			if p[end] == '\\' {
				end++
			}
			end++
		}
		text := p[i : end+1]
		i = end + 1
		after := bytes.TrimLeft(p[i:], " \t\r\n")
		if len(after) > 0 && after[0] == ':' {
			continue // a name
		}
		if s := unquote(text); s != "" {
			list = append(list, s)
		}
	}
	return list
}

// unquote is the text of a JSON string.
func unquote(p []byte) string {
	inner := p[1 : len(p)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	var s string
	if err := json.Unmarshal(p, &s); err != nil {
		return ""
	}
	return s
}

// Each calls visit with each term of text, folded, and the bytes of text
// that it stands for, until visit says no. The term is valid during the call.
//
// A term is a run of letters, digits and marks; in scripts that put no space
// between words each sign is one.
func Each(text string, visit func(term []byte, from, to int) bool) {
	var buf [maxTerm]byte
	n, from, full := 0, -1, false
	for i, r := range text {
		word, alone := kindOf(r, from >= 0)
		if from >= 0 && (!word || alone) {
			if !visit(buf[:n], from, i) {
				return
			}
			n, from, full = 0, -1, false
		}
		if !word {
			continue
		}
		if from < 0 {
			from = i
		}
		f := fold(r)
		if full = full || n+utf8.RuneLen(f) > maxTerm; !full {
			n += utf8.EncodeRune(buf[n:], f)
		}
		if alone {
			if !visit(buf[:n], from, i+utf8.RuneLen(r)) {
				return
			}
			n, from, full = 0, -1, false
		}
	}
	if from >= 0 {
		visit(buf[:n], from, len(text))
	}
}

// kindOf says whether r belongs to a word, inside one or at its beginning, and
// whether it is one by itself.
func kindOf(r rune, inside bool) (word, alone bool) {
	switch {
	case r < utf8.RuneSelf:
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9', false
	case r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
		return true, true
	case unicode.IsLetter(r) || unicode.IsDigit(r):
		return true, false
	}
	return inside && unicode.IsMark(r), false
}

// fold gives all cases of a letter one form, which is a letter.
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		if f < least && unicode.IsLetter(f) || !unicode.IsLetter(least) {
			least = f
		}
	}
	return unicode.ToLower(least)
}

// A Term is one word of a text and how often it is there.
type Term struct {
	Text string
	N    int
}

// Terms are the words of a text, sorted.
type Terms struct {
	List   []Term
	Length int // of the text, in words
}

// Of finds the terms of a value.
func Of(value []byte) Terms {
	var t Terms
	seen := map[string]int{}
	for _, text := range Texts(value) {
		Each(text, func(word []byte, _, _ int) bool {
			t.Length++
			if at, ok := seen[string(word)]; ok {
				t.List[at].N++
			} else if len(t.List) < MaxTerms {
				text := string(word)
				seen[text] = len(t.List)
				t.List = append(t.List, Term{text, 1})
			}
			return true
		})
	}
	slices.SortFunc(t.List, func(a, b Term) int { return strings.Compare(a.Text, b.Text) })
	return t
}

// Distinct are the first most different words of a text, sorted.
func Distinct(text string, most int) []string {
	var list []string
	Each(text, func(word []byte, _, _ int) bool {
		if w := string(word); !slices.Contains(list, w) {
			list = append(list, w)
		}
		return len(list) < most
	})
	slices.Sort(list)
	return list
}
