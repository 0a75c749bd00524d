package secrets

import "unicode/utf8"

// A view follows the automaton over the bytes that one reading of a text gives,
// and remembers where in the text each of them began.
type view struct {
	state int32
	n     int     // bytes read
	begun []int64 // where they began: a ring
}

// reading is a text read as it stands, as hex and as base64, each at every
// alignment; what feeds it may have decoded it from something else.
type reading struct {
	plain  view
	hex    [2]view
	base64 [4]view

	nibbles int // hex digits in a row, separators aside
	nibble  byte
	digitAt int64 // where the last of them was
	chars   int   // base64 characters in a row, line ends aside
	bits    uint32
	charAt  int64 // where the last of them was

	noHex, noBase64 int64 // before these positions there are too few in a row
}

func newReading(m *matcher) *reading {
	r := &reading{}
	for _, v := range r.views() {
		v.begun = make([]int64, m.ring)
	}
	return r
}

func (r *reading) views() [7]*view {
	return [7]*view{&r.plain, &r.hex[0], &r.hex[1], &r.base64[0], &r.base64[1], &r.base64[2], &r.base64[3]}
}

func (r *reading) copyFrom(o *reading) {
	mine, others := r.views(), o.views()
	var rings [7][]int64
	for i := range mine {
		rings[i] = mine[i].begun
	}
	*r = *o
	r.noHex, r.noBase64 = 0, 0 // escapes may join what stands apart
	for i, v := range r.views() {
		copy(rings[i], others[i].begun)
		v.begun = rings[i]
	}
}

func (r *reading) reset() {
	for _, v := range r.views() {
		v.state = 0
	}
	r.nibbles, r.chars, r.noHex, r.noBase64 = 0, 0, 0, 0
}

// feed reads one byte, which stands at [from, to) in the text.
func (s *scanner) feed(r *reading, b byte, from, to int64) {
	s.step(&r.plain, b, from, to)
	class := classes[b]
	if from >= r.noHex {
		s.feedHex(r, b, class, from, to)
	}
	if from < r.noBase64 {
		return
	}
	if class&isBase64 == 0 {
		if r.chars > 0 && class&isLineEnd == 0 {
			r.chars = 0
			for i := range r.base64 {
				r.base64[i].state = 0
			}
		}
		return
	}
	r.bits = r.bits<<6 | uint32(sextet(b))
	for i := 1; i <= 3 && i <= r.chars; i++ { // this is number i of a group of 0 to 3
		s.step(&r.base64[(r.chars-i)&3], byte(r.bits>>(6-2*i)), r.charAt, to)
	}
	r.charAt = from
	r.chars++
}

func (s *scanner) feedHex(r *reading, b byte, class uint8, from, to int64) {
	if class&isHex == 0 {
		if r.nibbles > 0 && class&isHexGap == 0 {
			r.nibbles = 0
			r.hex[0].state, r.hex[1].state = 0, 0
		}
		return
	}
	d := unhex(b)
	if r.nibbles > 0 {
		s.step(&r.hex[r.nibbles&1], r.nibble<<4|d, r.digitAt, to)
	}
	r.nibble, r.digitAt = d, from
	r.nibbles++
}

// step moves a view on by one byte, and notes the value that ends with it.
func (s *scanner) step(v *view, b byte, from, to int64) {
	m := s.m
	next := m.step(v.state, b)
	v.state = next
	if next == 0 {
		return
	}
	v.begun[v.n&(m.ring-1)] = from
	v.n++
	if n := m.out[next]; n > 0 {
		s.found(v.begun[(v.n-int(n))&(m.ring-1)], to, m.owner[next])
	}
}

// since is where what may become a value began, at most end. Less than the
// first byte of one, such as a lone hex digit, is not waited for: the last
// letter of every line would be.
func (s *scanner) since(r *reading, end int64) int64 {
	for _, v := range r.views() {
		if d := int(s.m.depth[v.state]); d > 0 {
			end = min(end, v.begun[(v.n-d)&(s.m.ring-1)])
		}
	}
	return end
}

// Classes of bytes in encodings.
const (
	isHex uint8 = 1 << iota
	isHexGap
	isBase64
	isLineEnd
	isOpener // of an escape
)

var classes = [256]uint8{
	'\n': isLineEnd | isHexGap, '\r': isLineEnd | isHexGap, ' ': isHexGap, ':': isHexGap, '-': isBase64 | isHexGap,
	'+': isBase64 | isOpener, '%': isOpener, '\\': isOpener, '&': isOpener, '/': isBase64, '_': isBase64,
	'0': isHex | isBase64, '1': isHex | isBase64, '2': isHex | isBase64, '3': isHex | isBase64, '4': isHex | isBase64,
	'5': isHex | isBase64, '6': isHex | isBase64, '7': isHex | isBase64, '8': isHex | isBase64, '9': isHex | isBase64,
	'a': isHex | isBase64, 'b': isHex | isBase64, 'c': isHex | isBase64, 'd': isHex | isBase64, 'e': isHex | isBase64,
	'f': isHex | isBase64, 'A': isHex | isBase64, 'B': isHex | isBase64, 'C': isHex | isBase64, 'D': isHex | isBase64,
	'E': isHex | isBase64, 'F': isHex | isBase64,
	'g': isBase64, 'h': isBase64, 'i': isBase64, 'j': isBase64, 'k': isBase64, 'l': isBase64, 'm': isBase64, 'n': isBase64,
	'o': isBase64, 'p': isBase64, 'q': isBase64, 'r': isBase64, 's': isBase64, 't': isBase64, 'u': isBase64, 'v': isBase64,
	'w': isBase64, 'x': isBase64, 'y': isBase64, 'z': isBase64,
	'G': isBase64, 'H': isBase64, 'I': isBase64, 'J': isBase64, 'K': isBase64, 'L': isBase64, 'M': isBase64, 'N': isBase64,
	'O': isBase64, 'P': isBase64, 'Q': isBase64, 'R': isBase64, 'S': isBase64, 'T': isBase64, 'U': isBase64, 'V': isBase64,
	'W': isBase64, 'X': isBase64, 'Y': isBase64, 'Z': isBase64,
}

func unhex(b byte) byte {
	if b <= '9' {
		return b - '0'
	}
	return b | 0x20 - 'a' + 10
}

func sextet(b byte) byte {
	switch {
	case b >= 'a':
		return b - 'a' + 26
	case b == '_' || b == '/':
		return 63
	case b >= 'A':
		return b - 'A'
	case b >= '0':
		return b - '0' + 52
	}
	return 62 // + and -
}

// A decoder undoes the escapes of one writing: what it gives is read like the
// text itself. It sleeps, and costs nothing, where there are no escapes.
type decoder struct {
	*reading
	kind    decoderKind
	awake   bool
	quiet   int                 // bytes since the last escape
	held    [longestEscape]byte // of an escape that is not over, the text of its unit
	n       int
	heldAt  int64
	high    rune // a surrogate that waits for its other half
	highAt  int64
	highEnd int64
}

type decoderKind uint8

const (
	percent decoderKind = iota // %41
	form                       // %41, and + for a space
	escaped                    // \n, \", A, \x41
	entity                     // &#65;, &#x41;, &amp;
)

func (d *decoder) opens(b byte) bool {
	switch d.kind {
	case escaped:
		return b == '\\'
	case form:
		return b == '%' || b == '+'
	case entity:
		return b == '&'
	}
	return b == '%'
}

// wakes reports whether p begins with an escape, as far as p tells.
func (d *decoder) wakes(p []byte) bool {
	if !d.opens(p[0]) {
		return false
	}
	if p[0] == '+' || len(p) < 3 {
		return true
	}
	switch d.kind {
	case escaped:
		return isEscaped(p[1]) || p[1] == 'u' || p[1] == 'x'
	case entity:
		return unitOfEntity(p[:2]) != unitNone
	}
	return classes[p[1]]&classes[p[2]]&isHex != 0
}

func (s *scanner) read(d *decoder, b byte, at int64) {
	if !d.awake {
		d.copyFrom(&s.text) // which has not read b yet
		d.awake, d.quiet, d.n, d.high = true, 0, 0, 0
		s.awake++
	}
	for !s.take(d, b, at) {
	}
	if d.quiet++; d.quiet > 2*s.m.ring+longestEscape { // longer than any escape
		s.awake--
		d.awake = false // it has read what the text itself has, for long enough
	}
}

// take reports whether b was used; when not, what was held is text, and b comes
// once more.
func (s *scanner) take(d *decoder, b byte, at int64) bool {
	if d.n == 0 {
		if d.opens(b) && b != '+' {
			d.held[0], d.n, d.heldAt, d.quiet = b, 1, at, 0
			return true
		}
		s.surrogate(d)
		if b == '+' && d.kind == form {
			b, d.quiet = ' ', 0
		}
		s.feed(d.reading, b, at, at+1)
		return true
	}
	d.held[d.n] = b
	switch d.unit(d.n + 1) {
	case unitOpen:
		d.n++
		return true
	case unitDone:
		n := d.n + 1
		d.n = 0
		s.unit(d, d.held[:n], at+1)
		return true
	}
	s.unheld(d)
	return false
}

type unitState uint8

const (
	unitNone unitState = iota
	unitOpen
	unitDone
)

// unit says what the first n bytes held are: an escape, the beginning of one,
// or neither.
func (d *decoder) unit(n int) unitState {
	last, want := d.held[n-1], 3
	if d.kind == entity {
		return unitOfEntity(d.held[:n])
	}
	if d.kind == escaped {
		if n == 2 {
			switch {
			case last == 'u', last == 'x':
				return unitOpen
			case isEscaped(last):
				return unitDone
			}
			return unitNone
		}
		want = 4
		if d.held[1] == 'u' {
			want = 6
		}
	}
	switch {
	case classes[last]&isHex == 0:
		return unitNone
	case n == want:
		return unitDone
	}
	return unitOpen
}

func (s *scanner) unit(d *decoder, text []byte, to int64) {
	switch {
	case d.kind == entity:
		s.rune(d, runeOfEntity(text), to)
	case d.kind != escaped, text[1] == 'x':
		s.surrogate(d)
		s.feed(d.reading, unhex(text[len(text)-2])<<4|unhex(text[len(text)-1]), d.heldAt, to)
	case text[1] == 'u':
		s.rune(d, rune(unhex(text[2]))<<12|rune(unhex(text[3]))<<8|rune(unhex(text[4]))<<4|rune(unhex(text[5])), to)
	default:
		s.surrogate(d)
		s.feed(d.reading, unescape(text[1]), d.heldAt, to)
	}
}

// rune reads \uXXXX, which may be half of a character.
func (s *scanner) rune(d *decoder, r rune, to int64) {
	from := d.heldAt
	switch {
	case r >= 0xd800 && r < 0xdc00:
		s.surrogate(d)
		d.high, d.highAt, d.highEnd = r, from, to
		return
	case r >= 0xdc00 && r < 0xe000 && d.high != 0:
		r, from = (d.high-0xd800)<<10|(r-0xdc00)+0x10000, d.highAt
		d.high = 0
	default:
		s.surrogate(d)
	}
	s.feedRune(d, r, from, to)
}

// surrogate reads a half that stayed alone.
func (s *scanner) surrogate(d *decoder) {
	if d.high != 0 {
		d.high = 0
		s.feedRune(d, utf8.RuneError, d.highAt, d.highEnd)
	}
}

func (s *scanner) feedRune(d *decoder, r rune, from, to int64) {
	var buf [4]byte
	for _, b := range buf[:utf8.EncodeRune(buf[:], r)] {
		s.feed(d.reading, b, from, to)
	}
}

// unheld reads as text what looked like an escape and is none.
func (s *scanner) unheld(d *decoder) {
	s.surrogate(d)
	n := d.n
	d.n = 0
	for i, b := range d.held[:n] {
		s.feed(d.reading, b, d.heldAt+int64(i), d.heldAt+int64(i)+1)
	}
}
