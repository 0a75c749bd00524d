package pii

import (
	"bytes"
	"encoding/hex"
	"slices"
)

// A dump is hexadecimal that is written in words, such as 61:6c:69 and 616c 6963.
type dump struct {
	start, end int
	text       []byte
	size       int    // of its first word
	gap        [2]int // where its first gap is
}

const (
	leastDump  = 6 // bytes
	maxDumpGap = 3
)

// The classes of bytes in a dump.
const (
	dHex = 1 << iota
	dGap
)

var dumpClass = [256]uint8{
	'0': dHex, '1': dHex, '2': dHex, '3': dHex, '4': dHex, '5': dHex, '6': dHex, '7': dHex, '8': dHex, '9': dHex,
	'a': dHex, 'b': dHex, 'c': dHex, 'd': dHex, 'e': dHex, 'f': dHex, 'A': dHex, 'B': dHex, 'C': dHex, 'D': dHex,
	'E': dHex, 'F': dHex,
	' ': dGap, '+': dGap, ':': dGap, '-': dGap, ',': dGap, '\n': dGap, '\r': dGap, '\t': dGap,
}

func isDumpGap(c byte) bool { return dumpClass[c]&dGap != 0 }

// mayDump reports whether a gap of a dump may be around b[p]: at most places of
// a text none is. It decides without a branch, which texts would mislead.
func mayDump(b []byte, p int) bool {
	if p < 2 || p+1 >= len(b) {
		return false
	}
	far, near, next := dumpClass[b[p-2]], dumpClass[b[p-1]], dumpClass[b[p+1]]
	return far&(near|near>>1)&(next|next>>1)&(dumpClass[b[p]]>>1) != 0
}

// gapAt is where the gap of a dump around b[p] begins, -1 when there is none
// between two bytes in hexadecimal.
func gapAt(b []byte, p int) int {
	if p >= len(b) || !isDumpGap(b[p]) {
		return -1
	}
	for n := 0; p > 0 && isDumpGap(b[p-1]) && n < maxDumpGap; n++ {
		p--
	}
	if p < 2 || hexDigit(b[p-1]) < 0 || hexDigit(b[p-2]) < 0 {
		return -1
	}
	if n := behindGap(b, p); dumpWord(b, n) == n {
		return -1
	}
	return p
}

// behindGap is where what stands behind the gap at b[p] begins.
func behindGap(b []byte, p int) int {
	n := p
	for n < len(b) && n-p < maxDumpGap && isDumpGap(b[n]) {
		n++
	}
	return n
}

// dumpWord is where the word of a dump that begins at b[i] ends, i when there is
// none: whole bytes of a text.
func dumpWord(b []byte, i int) int {
	end := i
	for end+1 < len(b) && hexDigit(b[end]) >= 0 && hexDigit(b[end+1]) >= 0 {
		if !isTextByte(byte(hexDigit(b[end])<<4 | hexDigit(b[end+1]))) {
			return i
		}
		end += 2
	}
	if end < len(b) && isAlnum(b[end]) {
		return i
	}
	return end
}

// dumpAround reads the dump with the gap at b[p], which begins at floor or later.
func dumpAround(b []byte, p, floor int) (dump, bool) {
	d := dump{start: p}
	for end := p; ; {
		start := end
		for start > floor && hexDigit(b[start-1]) >= 0 {
			start--
		}
		if start == end || start > 0 && isAlnum(b[start-1]) || dumpWord(b, start) != end {
			break
		}
		d.start = start
		end = start
		for end > floor && start-end < maxDumpGap && isDumpGap(b[end-1]) {
			end--
		}
		if end == start {
			break
		}
	}
	if d.start == p {
		return d, false
	}
	words := 0
	for i := d.start; ; words++ {
		end := dumpWord(b, i)
		if end == i {
			break
		}
		if words == 1 {
			d.size, d.gap = d.end-d.start, [2]int{d.end, i}
		}
		d.end = end
		i = behindGap(b, end)
		if i == end {
			words++
			break
		}
	}
	return d, words > 1 && d.end-d.start >= 2*leastDump
}

// read decodes the dump in b; it returns where each byte of the text is.
func (d *dump) read(b []byte) (at []int) {
	for i := d.start; i < d.end; {
		if hexDigit(b[i]) < 0 {
			i++
			continue
		}
		d.text = append(d.text, byte(hexDigit(b[i])<<4|hexDigit(b[i+1])))
		at = append(at, i)
		i += 2
	}
	return at
}

// encode writes a text as the dump does, with this between words.
func (d *dump) encode(text, gap []byte) string {
	digits := hex.AppendEncode(nil, text)
	var out []byte
	for ; len(digits) > d.size; digits = digits[d.size:] {
		out = append(append(out, digits[:d.size]...), gap...)
	}
	return string(append(out, digits...))
}

// dumped masks what the dump around v.b[p] encodes, and returns where it ends,
// 0 when there is none, or nothing to mask. It looks at what is behind floor.
func (s *search) dumped(v *view, p int, floor *int, depth int) int {
	if p < *floor {
		return 0
	}
	p = gapAt(v.b, p)
	if p < *floor {
		return 0
	}
	d, ok := dumpAround(v.b, p, *floor)
	*floor = max(p+1, d.end)
	if !ok || !s.spend(d.end-d.start) {
		return 0
	}
	at := d.read(v.b)
	switch {
	case len(d.text) < leastDump:
		return 0
	case s.isKnown(v, d.start, d.end):
		s.keepMarks(v, d, at)
		return 0
	case depth+1 > maxDepth:
		s.gaveUp = true
		return 0
	}
	masked := s.settle(d.text, depth+1)
	if s.gaveUp || bytes.Equal(masked, d.text) {
		s.keepMarks(v, d, at)
		return 0
	}
	gap := v.b[d.gap[0]:d.gap[1]]
	if v.at != nil && v.wide == 0 {
		gap = s.source[v.place(d.gap[0]):v.place(d.gap[1])]
	}
	s.add(v, d.start, d.end, depth+1, d.encode(masked, gap))
	s.isClosed = false
	return d.end
}

// keepMarks takes back what was found in the masks of a dump: some letters of
// theirs are digits there, and may look like a number.
func (s *search) keepMarks(v *view, d dump, at []int) {
	if bytes.IndexByte(d.text, '<') < 0 || len(s.spans) == 0 {
		return
	}
	for i := range d.text {
		end := markEnd(d.text, i)
		if end == 0 {
			continue
		}
		from, to := v.place(at[i]), v.place(at[end-1])
		s.spans = slices.DeleteFunc(s.spans, func(sp span) bool { return sp.start >= from && sp.end <= to })
	}
}

// dumpIn is dumped for the first dump that has a gap in the word v.b[start:end],
// or behind it.
func (s *search) dumpIn(v *view, start, end int, floor *int, depth int) int {
	if bytes.IndexByte(v.b[start:end], '-') < 0 && bytes.IndexByte(v.b[start:end], '+') < 0 {
		start = end
	}
	for p := start; p <= end; p++ {
		if p < end && v.b[p] != '-' && v.b[p] != '+' {
			continue
		}
		if end := s.dumped(v, p, floor, depth); end > 0 {
			return end
		}
	}
	return 0
}
