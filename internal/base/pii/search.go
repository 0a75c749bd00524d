package pii

import (
	"bytes"
	"cmp"
	"slices"
)

// A span is what a mask takes the place of. Where spans overlap, the one that
// was found behind more encodings knows better what the datum is.
type span struct {
	start, end int
	depth      int
	with       string
}

// A search is one look at one text and at all that is encoded in it.
type search struct {
	*work
	source []byte
	spans  []span
	few    [8]span // so that few cost nothing
	said   []said
	fewer  [6]said
	// from and to are the text of a JSON document that is being looked at, in
	// the source; isClosed, that each span so far is all of such a text, so that
	// nothing stands beside a mask.
	from, to int
	isClosed bool
	// edge is where the last datum ends in the text that is being looked at;
	// hasAt, that there may be mail addresses in it.
	edge  int
	hasAt bool
}

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

func (s *search) add(v *view, start, end, depth int, with string) {
	s.edge = end
	sp := span{v.place(start), v.place(end), depth, v.widen(with)}
	if sp.start != s.from || sp.end != s.to {
		s.isClosed = false
	}
	s.spans = append(s.spans, sp)
}

// inOrder is the order of spans in the source, the longer first.
func inOrder(x, y span) int { return cmp.Or(cmp.Compare(x.start, y.start), cmp.Compare(y.end, x.end)) }

func (s *search) splice(b []byte) []byte {
	slices.SortFunc(s.spans, inOrder)
	out := make([]byte, 0, len(b)+len(s.spans)*maxMark)
	done := 0
	for i := 0; i < len(s.spans); {
		sp := s.spans[i]
		for i++; i < len(s.spans) && s.spans[i].start < sp.end; i++ {
			next := s.spans[i]
			if next.depth > sp.depth {
				sp.depth, sp.with = next.depth, next.with
			}
			sp.end = max(sp.end, next.end)
		}
		out = append(append(out, b[done:sp.start]...), sp.with...)
		done = sp.end
	}
	return append(out, b[done:]...)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlnum(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' }
