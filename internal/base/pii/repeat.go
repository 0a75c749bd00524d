package pii

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"
)

const (
	leastSaid = 5  // bytes; what is shorter is found in too many words
	mostSaid  = 24 // data of a value
)

// repeats masks what fields have said where the texts of the document b say it
// again.
func (s *search) repeats(b []byte) {
	slices.SortFunc(s.spans, inOrder)
	known := s.spans
	for _, d := range s.said {
		for from := 0; ; {
			i := bytes.Index(b[from:], d.text)
			if i < 0 {
				break
			}
			start, end := from+i, from+i+len(d.text)
			from = end
			if isCovered(known, start) || isInWord(b, start, end) {
				continue
			}
			if !s.spend(start) {
				return
			}
			if isInText(b[:start]) {
				s.spans = append(s.spans, span{start, end, 0, d.with})
				s.isClosed = false
			}
		}
	}
}

// isCovered reports whether one of the spans, which are in order, takes the
// place of what stands at i. Where spans lie in one another the outermost may be
// missed; then a mask is put in twice, as one.
func isCovered(spans []span, i int) bool {
	n, _ := slices.BinarySearchFunc(spans, i+1, func(s span, i int) int { return cmp.Compare(s.start, i) })
	return n > 0 && i < spans[n-1].end
}

// isInWord reports whether b[start:end] goes on to a side.
func isInWord(b []byte, start, end int) bool {
	before, _ := utf8.DecodeLastRune(b[:start])
	after, _ := utf8.DecodeRune(b[end:])
	first, _ := utf8.DecodeRune(b[start:])
	last, _ := utf8.DecodeLastRune(b[:end])
	return isLetter(before) && isLetter(first) || isLetter(after) && isLetter(last)
}

// isInText reports whether the JSON before a place leaves a text open.
func isInText(before []byte) bool {
	isOpen := false
	for i := 0; i < len(before); i++ {
		switch {
		case before[i] == '"':
			isOpen = !isOpen
		case before[i] == '\\' && isOpen:
			i++
		}
	}
	return isOpen
}
