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

// A said datum is one that a field names: no rule would know it elsewhere.
type said struct {
	text []byte
	with string
}

// say remembers what stands in a field.
func (s *search) say(v *view, with string) {
	text := bytes.TrimSpace(v.b)
	if v.at != nil || v.wide != 0 || len(text) < leastSaid || len(s.said) == mostSaid {
		return
	}
	for _, d := range s.said {
		if bytes.Equal(d.text, text) {
			return
		}
	}
	s.said = append(s.said, said{text, with})
}
