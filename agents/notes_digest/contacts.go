package main

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A sighting is one mention of an address, with the name beside it if any.
type sighting struct{ name, email string }

// appendSightings finds the addresses in a line. A name may stand at the end of
// the line before.
func appendSightings(found []sighting, before, line string) []sighting {
	for i := 0; i < len(line); i++ {
		if line[i] != '@' {
			continue
		}
		start, end, ok := address(line, i)
		if !ok {
			continue
		}
		found = append(found, sighting{
			name:  nameBeside(before, line, start),
			email: strings.ToLower(line[start:end]),
		})
		i = end
	}
	return found
}

// address finds the bounds of the mail address around the '@' at line[at].
func address(line string, at int) (start, end int, ok bool) {
	start, end = at, at+1
	for start > 0 && (alphanumeric(line[start-1]) || strings.IndexByte("._%+-", line[start-1]) >= 0) {
		start--
	}
	for end < len(line) && (alphanumeric(line[end]) || line[end] == '.' || line[end] == '-') {
		end++
	}
	for end > at+1 && !alphanumeric(line[end-1]) {
		end-- // the full stop of a sentence
	}
	local, domain := line[start:at], line[at+1:end]
	dot := strings.LastIndexByte(domain, '.')
	ok = local != "" && dot > 0 && !strings.Contains(line[start:end], "..") &&
		local[0] != '.' && local[len(local)-1] != '.' && domain[0] != '-' && topLevel(domain[dot+1:])
	return start, end, ok && len(line[start:end]) <= 254
}

func topLevel(s string) bool {
	for i := range len(s) {
		if s[i] >= '0' && s[i] <= '9' || s[i] == '-' {
			return false
		}
	}
	return len(s) >= 2
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// nameBeside finds whose the address at line[start] is: the text of its link,
// the first cell of its table row, or the capitalized words before it.
func nameBeside(before, line string, start int) string {
	left := strings.TrimSuffix(tail(line[:start]), "mailto:")
	if head, ok := strings.CutSuffix(left, "]("); ok {
		if i := strings.LastIndexByte(head, '['); i >= 0 {
			return trailingName(head[i+1:])
		}
	}
	if row, ok := strings.CutPrefix(strings.TrimSpace(line), "|"); ok {
		cell, _, _ := strings.Cut(row[:min(len(row), context)], "|")
		if name := trailingName(cell); name != "" {
			return name
		}
	}
	left = strings.TrimRight(left, nameGap)
	if left == "" {
		left = strings.TrimRight(tail(before), " \t\r,(<:")
	}
	return trailingName(left)
}

// context is how many bytes beside an address or a date are looked at. A bound
// keeps a line of a megabyte from costing its length again for each of them.
const context = 160

// tail returns the end of s that is looked at.
func tail(s string) string { return s[max(0, len(s)-context):] }

// nameGap is what may stand between a name and its address.
const nameGap = " \t<(,:|\"'`[–—-"

// trailingName returns the longest run of up to five words at the end of s that
// reads as a name: capitalized, or in a script without capitals, with particles
// between them.
func trailingName(s string) string {
	words := strings.Fields(s)
	first := len(words)
	for i := len(words) - 1; i >= 0 && i >= len(words)-5; i-- {
		word := strings.Trim(words[i], "*_\"'`")
		if particle(word) && first < len(words) {
			continue // part of the name only if a capitalized word precedes it
		}
		if !nameWord(word) {
			break
		}
		first, words[i] = i, word
	}
	return clean(strings.Join(words[first:], " "))
}

func nameWord(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	if !unicode.IsUpper(r) && !unicode.Is(unicode.Lo, r) {
		return false
	}
	for _, r := range word {
		if !unicode.IsLetter(r) && !unicode.IsMark(r) && !strings.ContainsRune("-'’.", r) {
			return false
		}
	}
	if strings.HasSuffix(word, ".") && utf8.RuneCountInString(word) != 2 {
		return false // the end of a sentence, or a title; "J." is an initial
	}
	switch strings.ToLower(word) {
	case "ask", "call", "tell", "mail", "email", "write", "meet", "see", "contact", "thank", "thanks",
		"from", "by", "to", "cc", "with", "and", "the", "via", "or", "for", "frage", "mit", "von", "an":
		return false
	}
	return true
}

func particle(word string) bool {
	switch word {
	case "van", "der", "den", "de", "da", "do", "dos", "di", "du", "la", "le", "von", "zu", "bin", "al", "el", "y":
		return true
	}
	return false
}
