package secrets

import "slices"

// A scanner looks for the values of a matcher in a text that comes in pieces.
type scanner struct {
	m        *matcher
	text     reading
	decoders []*decoder
	awake    int    // how many decoders are
	at       int64  // the position of the next byte
	spans    []span // what was found, in order, apart from each other
	hit      []bool // by owner
}

// A span is where a value stands.
type span struct {
	from, to int64
	owner    int32
}

func newScanner(m *matcher) *scanner {
	s := &scanner{m: m, text: *newReading(m), hit: make([]bool, len(m.ids))}
	kinds := []decoderKind{percent, escaped, entity}
	if m.space {
		kinds = append(kinds, form)
	}
	for _, k := range kinds {
		s.decoders = append(s.decoders, &decoder{reading: newReading(m), kind: k})
	}
	return s
}

func (s *scanner) restart(at int64) {
	s.text.reset()
	for _, d := range s.decoders {
		d.awake = false
	}
	s.awake, s.at, s.spans = 0, at, s.spans[:0]
}

func (s *scanner) scan(p []byte) {
	for i := 0; i < len(p); i++ {
		if n := s.skip(p[i:]); n > 0 {
			s.at += int64(n)
			if i += n; i == len(p) {
				return
			}
		}
		b := p[i]
		if s.awake > 0 || classes[b]&isOpener != 0 {
			for _, d := range s.decoders {
				if d.awake || d.wakes(p[i:]) {
					s.read(d, b, s.at)
				}
			}
		}
		s.feed(&s.text, b, s.at, s.at+1)
		s.at++
	}
}

// skip is how many bytes of p, at rest, change nothing: no value begins with
// them, they open no escape, and too few of hex or base64 stand in a row, as
// they do in words. Such a row is over before p is, and does not end with an
// escape, which might go on with it.
func (s *scanner) skip(p []byte) int {
	t := &s.text
	if s.awake > 0 || t.plain.state != 0 || t.chars > 0 || t.nibbles > 0 {
		s.lookAhead(p, classes[p[0]], s.at)
		return 0
	}
	for i, b := range p {
		class, at := classes[b], s.at+int64(i)
		if s.m.first[b] || class&isOpener != 0 {
			s.lookAhead(p[i:], class, at)
			return i
		}
		if class&isBase64 != 0 && at >= t.noBase64 || class&isHex != 0 && at >= t.noHex {
			s.lookAhead(p[i:], class, at)
			if class&isBase64 != 0 && at >= t.noBase64 || class&isHex != 0 && at >= t.noHex {
				return i
			}
		}
	}
	return len(p)
}

// lookAhead notes where the characters in a row that p begins with are too few.
func (s *scanner) lookAhead(p []byte, class uint8, at int64) {
	t := &s.text
	if class&isBase64 != 0 && t.chars == 0 && at >= t.noBase64 {
		if n, short := row(p, isBase64, isLineEnd, s.m.least*8/6); short {
			t.noBase64 = at + int64(n)
		}
	}
	if class&isHex != 0 && t.nibbles == 0 && at >= t.noHex {
		if n, short := row(p, isHex, isHexGap, s.m.least*2); short {
			t.noHex = at + int64(n)
		}
	}
}

// row is how long the row is that p begins with, and whether it ends in p with
// fewer than enough characters of the class.
func row(p []byte, class, gap uint8, enough int) (n int, short bool) {
	count := 0
	for i, b := range p {
		switch {
		case classes[b]&class != 0:
			if count++; count == enough {
				return 0, false
			}
		case classes[b]&gap == 0:
			return i, classes[b]&isOpener == 0 || b == '+'
		}
	}
	return 0, false
}

func (s *scanner) finish() {
	for _, d := range s.decoders {
		if d.awake {
			s.unheld(d)
		}
	}
}

// found notes a value; what overlaps is one.
func (s *scanner) found(from, to int64, owner int32) {
	s.hit[owner] = true
	for n := len(s.spans); n > 0 && s.spans[n-1].to > from; n = len(s.spans) {
		last := s.spans[n-1]
		if last.from <= from {
			from, owner = last.from, last.owner
		}
		to = max(to, last.to)
		s.spans = s.spans[:n-1]
	}
	s.spans = append(s.spans, span{from, to, owner})
}

func (s *scanner) settled() int64 {
	end := s.since(&s.text, s.at)
	for _, d := range s.decoders {
		if !d.awake {
			continue
		}
		end = s.since(d.reading, end)
		if d.n > 0 {
			end = min(end, d.heldAt)
		}
		if d.high != 0 {
			end = min(end, d.highAt)
		}
	}
	return end
}

func (s *scanner) scrub(p []byte) []byte {
	s.restart(0)
	s.scan(p)
	s.finish()
	if len(s.spans) == 0 {
		return p
	}
	out := make([]byte, 0, len(p)+64)
	done := int64(0)
	for _, sp := range s.spans {
		out = append(out, p[done:sp.from]...)
		out = append(out, s.m.marks[sp.owner]...)
		done = sp.to
	}
	return append(out, p[done:]...)
}

// owners are the secrets that were found since it was last asked.
func (s *scanner) owners() []string {
	var ids []string
	for i, hit := range s.hit {
		if hit {
			ids = append(ids, s.m.ids[i])
		}
	}
	clear(s.hit)
	return ids
}

// A stream is a text that is passed on as it comes, less the values in it. It
// holds back only what may yet become one.
type stream struct {
	s      *scanner
	held   []byte // the text from base to s.at
	base   int64  // everything before it was passed on
	marked int64  // everything before it that was not is covered by a mark
}

// write returns what can be passed on; end says that nothing follows.
func (t *stream) write(p []byte, end bool) []byte {
	s := t.s
	t.held = append(t.held, p...)
	s.scan(p)
	safe := s.at
	if end {
		s.finish()
	} else {
		safe = s.settled()
	}
	var out []byte
	used := 0
	for _, sp := range s.spans {
		if sp.from >= safe {
			break
		}
		out = t.pass(out, sp.from)
		if sp.from >= t.marked {
			out = append(out, s.m.marks[sp.owner]...)
		}
		t.drop(sp.to)
		t.marked = max(t.marked, sp.to)
		used++
	}
	s.spans = slices.Delete(s.spans, 0, used)
	return t.pass(out, safe)
}

// pass moves what is held before position to onto out.
func (t *stream) pass(out []byte, to int64) []byte {
	if to <= t.base {
		return out
	}
	out = append(out, t.held[:to-t.base]...)
	t.drop(to)
	return out
}

func (t *stream) drop(to int64) {
	if to > t.base {
		t.held = t.held[:copy(t.held, t.held[to-t.base:])]
		t.base = to
	}
}
