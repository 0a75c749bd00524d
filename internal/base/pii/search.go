package pii

import (
	"bytes"
)

// document looks at a whole value.
func (s *search) document(b []byte, depth int) {
	s.source, s.isClosed = b, true
	s.spans, s.said = s.few[:0], s.fewer[:0]
	s.from, s.to = 0, len(b)
	if bytes.IndexByte(b, 0) >= 0 {
		if v, ok := utf16View(b); ok {
			s.text(v, depth+1)
		}
	}
	s.text(view{b: b}, depth)
	if len(s.said) > 0 {
		s.repeats(b)
	}
}

func (s *search) text(v view, depth int) {
	if depth > maxDepth {
		s.gaveUp = true
		return
	}
	if c := firstByte(v.b); c == '{' || c == '[' || c == '"' || nextObject(v.b, 0) >= 0 {
		if s.json(v, depth) {
			return
		}
	}
	s.plain(v, classes(v.b), depth)
}

// plain looks at a text that is none; flags are the classes of its bytes.
func (s *search) plain(v view, flags uint8, depth int) {
	if !s.spend(len(v.b)) {
		return
	}
	if flags&cLetter != 0 && !maySpell(v.b) {
		flags &^= cLetter
	}
	if flags&(cAt|cDigit|cLetter|cLabel) != 0 {
		s.find(v, flags, depth)
	}
	if flags&cWord != 0 && len(v.b) >= minToken {
		s.tokens(v, depth)
	}
	if flags&cEscape != 0 {
		if d, ok := v.decode(); ok && s.spend(len(d.b)) {
			d.isDeeper = true
			s.text(d, depth+1)
		}
	}
}

// maySpell reports whether words may stand for the marks of an address in b:
// few texts have what that takes, and then each a need not be looked at.
func maySpell(b []byte) bool {
	for _, c := range [...]byte{'(', '[', '{', '<'} {
		if bytes.IndexByte(b, c) >= 0 {
			return true
		}
	}
	for _, word := range [...]string{"dot", "DOT", "Dot"} {
		if bytes.Contains(b, []byte(word)) {
			return true
		}
	}
	return false
}

// find looks for what the rules know; flags are the classes of bytes of which
// there are any.
func (s *search) find(v view, flags uint8, depth int) {
	b, begins := v.b, flags&(cAt|cDigit|cLetter|cLabel)
	s.edge, s.hasAt = 0, flags&cAt != 0
	for i := 0; i < len(b); i++ {
		c := class[b[i]] & begins
		if c == 0 {
			continue
		}
		switch {
		case c&cDigit != 0:
			i = s.number(v, i, depth) - 1
		case c&cLabel != 0:
			if end := s.labelled(v, i, depth); end > 0 {
				i = end - 1
			}
		case c&cAt != 0:
			if a, ok := addressAt(b, i); ok && (flags&cNul == 0 || a.end-a.start > 8) {
				s.add(&v, a.start, a.end, depth, s.mark(Email, a.normal(b)))
				i = a.end - 1
			}
		case i+1 < len(b) && b[i+1]|0x20 == 't':
			if a, ok := spelledAt(b, i); ok {
				s.add(&v, a.start, a.end, depth, s.mark(Email, a.normal(b)))
				i = a.end - 1
			}
		}
	}
}
