package pii

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"unicode/utf8"
)

// minToken is how long a word has to be to hold an address in base64.
const minToken = 8

// tokens looks into the words of v that are base64 or hexadecimal.
func (s *search) tokens(v view, depth int) {
	b, floor := v.b, 0
	for i := 0; i+minToken <= len(b); {
		// A word that is long enough and begins here or later has its end behind
		// last; most words are short, and most bytes need no look.
		last := i + minToken - 1
		if class[b[last]]&cWord == 0 {
			i = last + 1
			if mayDump(b, last) {
				i = max(i, s.dumped(&v, last, &floor, depth))
			}
			continue
		}
		start := last
		for start > i && class[b[start-1]]&cWord != 0 {
			start--
		}
		if start > i {
			i = start // whatever stood before it was shorter
			if mayDump(b, start-1) {
				i = max(i, s.dumped(&v, start-1, &floor, depth))
			}
			continue
		}
		for i = last; i < len(b) && class[b[i]]&cWord != 0; {
			i++
		}
		if end := s.dumpIn(&v, start, i, &floor, depth); end > 0 {
			i = end
			continue
		}
		i = wrapped(b, start, i)
		for n := 0; n < 2 && i < len(b) && b[i] == '='; n++ {
			i++
		}
		if !s.isKnown(&v, start, i) {
			s.token(v, start, i, depth)
		}
	}
}

// isKnown reports whether the word v.b[start:end] stood as a word in what v was
// decoded from, where it has been looked into.
func (s *search) isKnown(v *view, start, end int) bool {
	if !v.isDeeper || v.isChanged(start, end) {
		return false
	}
	from, to := v.place(start), v.place(end)
	return (from == 0 || class[s.source[from-1]]&cWord == 0) && (to == len(s.source) || class[s.source[to]]&cWord == 0)
}

// wrapped is where a word ends that goes on in the next line, as mail breaks
// base64.
func wrapped(b []byte, start, end int) int {
	for end-start >= 56 {
		next := end
		if next < len(b) && b[next] == '\r' {
			next++
		}
		if next >= len(b) || b[next] != '\n' {
			break
		}
		stop := next + 1
		for stop < len(b) && class[b[stop]]&cWord != 0 {
			stop++
		}
		if stop == next+1 {
			break
		}
		start, end = next+1, stop
	}
	return end
}

// token looks into the word v.b[start:end]. A word may be several that a mark
// of the alphabet joins, such as a path: few parts are tried in every way, many
// one by one.
func (s *search) token(v view, start, end, depth int) {
	if s.encoded(v, start, end, depth) {
		return
	}
	word := v.b[start:end]
	var starts [maxJoints + 2]int // of parts
	from := starts[:1]
	last := 0
	for i, c := range word {
		if isAlnum(c) || c == '=' || c == '\r' || c == '\n' {
			continue
		}
		if i-last >= minToken && len(from) > maxJoints {
			s.encoded(v, start+last, start+i, depth)
		}
		last = i + 1
		if len(from) <= maxJoints {
			from = append(from, last)
		}
	}
	switch {
	case len(from) > maxJoints:
		s.encoded(v, start+last, end, depth)
	case len(from) > 1:
		s.joined(v, start, append(from, len(word)+1), depth)
	}
}

const maxJoints = 12

// joined tries each part of a word with those behind it, the longest first.
func (s *search) joined(v view, start int, from []int, depth int) {
	for i := 0; i+1 < len(from); i++ {
		for j := len(from) - 1; j > i; j-- {
			begin, end := start+from[i], start+from[j]-1
			if i == 0 && j == len(from)-1 || end-begin < minToken || !startsAsText(v.b[begin:end]) &&
				!isHexText(v.b[begin:end]) {
				continue
			}
			if !s.spend(end - begin) {
				return
			}
			if s.encoded(v, begin, end, depth) {
				i = j - 1
				break
			}
		}
	}
}

// encoded masks what v.b[start:end] encodes and reports whether there was
// anything to mask.
func (s *search) encoded(v view, start, end, depth int) bool {
	text, encode := decodeHex(v.b[start:end])
	if text == nil {
		text, encode = decodeBase64(v.b[start:end])
	}
	switch {
	case text == nil:
		return false
	case depth+1 > maxDepth:
		s.gaveUp = true
		return true
	}
	masked := s.settle(text, depth+1)
	if s.gaveUp || string(masked) == string(text) {
		return s.gaveUp
	}
	s.add(&v, start, end, depth+1, encode(masked))
	s.isClosed = false // what encodes a mask may look like a number
	return true
}

// decodeHex decodes a word that is hexadecimal for bytes that show, and says
// how to encode them again; text is nil when it is none.
func decodeHex(word []byte) (text []byte, encode func([]byte) string) {
	if !isHexText(word) {
		return nil, nil
	}
	text = make([]byte, hex.DecodedLen(len(word)))
	if _, err := hex.Decode(text, word); err != nil {
		return nil, nil
	}
	return text, hex.EncodeToString
}

// isHexText reports whether b is hexadecimal for bytes that show.
func isHexText(b []byte) bool {
	if len(b) < 2*6 || len(b)%2 != 0 {
		return false
	}
	for i := 0; i < len(b); i += 2 {
		high, low := hexDigit(b[i]), hexDigit(b[i+1])
		if high < 0 || low < 0 || !isTextByte(byte(high<<4|low)) {
			return false
		}
	}
	return true
}

func isTextByte(c byte) bool { return c >= ' ' && c != 0x7f || c == '\n' || c == '\r' || c == '\t' }

// startsAsText reports whether the first three bytes that b encodes may begin a
// text: most words of a language do not.
func startsAsText(b []byte) bool {
	if len(b) < minToken {
		return false
	}
	var n uint32
	for _, c := range b[:4] {
		d := sixBits(c)
		if d < 0 {
			return false
		}
		n = n<<6 | uint32(d)
	}
	x, y, z := byte(n>>16), byte(n>>8), byte(n)
	if y == 0 || x == 0 { // UTF-16
		return isTextByte(x) || isTextByte(y)
	}
	return isTextByte(x) && isTextByte(y) && isTextByte(z) && follows(0, x) && follows(x, y) && follows(y, z)
}

// follows reports whether y can follow x in UTF-8, as far as two bytes tell.
func follows(x, y byte) bool {
	switch {
	case x >= 0xc2:
		return y >= 0x80 && y < 0xc0
	case x >= 0x80:
		return true
	}
	return y < 0x80 || y >= 0xc2
}

func sixBits(c byte) int {
	switch {
	case c >= 'A' && c <= 'Z':
		return int(c - 'A')
	case c >= 'a' && c <= 'z':
		return int(c-'a') + 26
	case isDigit(c):
		return int(c-'0') + 52
	case c == '+' || c == '-':
		return 62
	case c == '/' || c == '_':
		return 63
	}
	return -1
}

// decodeBase64 decodes a word of either alphabet, with or without padding, and
// says how to encode it again. Text is nil when the word is none, or none that
// people read.
func decodeBase64(word []byte) (text []byte, encode func([]byte) string) {
	if !startsAsText(word) {
		return nil, nil
	}
	isURL, isPadded := false, false
	for _, c := range word {
		isURL = isURL || c == '-' || c == '_'
		isPadded = isPadded || c == '='
	}
	enc := base64.StdEncoding
	if isURL {
		enc = base64.URLEncoding
	}
	if !isPadded {
		enc = enc.WithPadding(base64.NoPadding)
	}
	rest := ""
	if chars := len(word) - bytes.Count(word, []byte("\n")) - bytes.Count(word, []byte("\r")); !isPadded && chars%4 == 1 {
		rest = string(word[len(word)-1:]) // it encodes nothing
		word = word[:len(word)-1]
	}
	text = make([]byte, enc.DecodedLen(len(word)))
	n, err := enc.Decode(text, word)
	if err != nil || !isReadable(text[:n]) {
		return nil, nil
	}
	return text[:n], func(b []byte) string { return enc.EncodeToString(b) + rest }
}

// isReadable reports whether b is a text: few bytes of it do not show. Zeros are
// those of UTF-16.
func isReadable(b []byte) bool {
	odd := 0
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 || r != 0 && r < utf8.RuneSelf && !isTextByte(byte(r)) {
			odd++
		}
		i += n
	}
	return len(b) > 0 && odd*8 <= len(b)
}
