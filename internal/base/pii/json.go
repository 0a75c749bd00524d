package pii

import "bytes"

// A frame is an object or array that is open.
type frame struct {
	isObject bool
	field    field // what the name of the frame says of all in it
	isPerson bool  // a field of it says so
	names    int   // how many plain names were held before it
}

// A held name is masked when it turns out to be a person's.
type held struct {
	start, end int
	with       string
}

// A parser walks JSON. What it takes for nothing but JSON every reader reads as
// it did.
type parser struct {
	*search
	v     view
	b     []byte
	i     int
	depth int
	held  []held
	quote string // a quotation mark as the source writes it
	// isLoose: not all is as JSON has it, though some readers take it.
	isLoose bool
}

// json masks the JSON in v, wherever it stands, and reports whether v is nothing
// else: one value, or several. What was found before it turned out to be
// something else stays found, and what comes behind that is looked at again.
func (s *search) json(v view, depth int) bool {
	if !s.spend(len(v.b)) {
		return true
	}
	p := parser{search: s, v: v, b: v.b, depth: depth}
	var frames [8]frame
	stack := frames[:0]
	for {
		p.space()
		if p.i == len(p.b) {
			return !p.isLoose
		}
		var ok bool
		if stack, ok = p.value(stack[:0]); ok {
			continue
		}
		for p.isLoose = true; len(stack) > 0; {
			stack = p.close(stack)
		}
		if p.i = nextObject(p.b, p.i); p.i < 0 {
			return false
		}
	}
}

// nextObject is where the next object of JSON may begin in b[i:], -1 for none.
func nextObject(b []byte, i int) int {
	for {
		n := bytes.IndexByte(b[i:], '{')
		if n < 0 {
			return -1
		}
		i += n + 1
		if firstByte(b[i:]) == '"' {
			return i - 1
		}
	}
}

func (p *parser) space() {
	for p.i < len(p.b) && (p.b[p.i] == ' ' || p.b[p.i] == '\n' || p.b[p.i] == '\r' || p.b[p.i] == '\t') {
		p.i++
	}
}

func (p *parser) take(c byte) bool {
	p.space()
	if p.i < len(p.b) && p.b[p.i] == c {
		p.i++
		return true
	}
	return false
}

// value walks one value with all that is in it.
func (p *parser) value(stack []frame) ([]frame, bool) {
	f := field{}
	for {
		p.space()
		if p.i == len(p.b) {
			return stack, false
		}
		switch c := p.b[p.i]; c {
		case '{', '[':
			p.i++
			stack = append(stack, frame{isObject: c == '{', field: inherited(f, c == '{'), names: len(p.held)})
			if !p.take(c + 2) { // the bracket that closes is two further
				var ok bool
				if f, ok = p.next(&stack[len(stack)-1]); !ok {
					return stack, false
				}
				continue
			}
			stack = p.close(stack)
		default:
			if !p.scalar(f, stack) {
				return stack, false
			}
		}
		for len(stack) > 0 && !p.take(',') {
			top := stack[len(stack)-1]
			if top.isObject && !p.take('}') || !top.isObject && !p.take(']') {
				return stack, false
			}
			stack = p.close(stack)
		}
		if len(stack) == 0 {
			return stack, true
		}
		var ok bool
		if f, ok = p.next(&stack[len(stack)-1]); !ok {
			return stack, false
		}
	}
}

// inherited is what a field says of what is in its value: for an object, of all
// in it that looks like it.
func inherited(f field, isObject bool) field {
	if isObject && (f.kind == Email || f.kind == Phone) {
		f.isWeak = true
	}
	return f
}

func (p *parser) close(stack []frame) []frame {
	top := stack[len(stack)-1]
	if top.field.isPlain && len(stack) > 1 {
		return stack[:len(stack)-1] // a name in parts: whose, the frame around it says
	}
	if top.isPerson {
		for _, h := range p.held[top.names:] {
			p.add(&p.v, h.start, h.end, p.depth, h.with)
			v := p.v.part(h.start, h.end)
			p.say(&v, h.with)
			p.isClosed = false
		}
	}
	p.held = p.held[:top.names]
	return stack[:len(stack)-1]
}

// next is what the frame says of its next element; it reads the name of a member.
func (p *parser) next(top *frame) (field, bool) {
	if !top.isObject {
		return top.field, true
	}
	p.space()
	if p.i == len(p.b) || p.b[p.i] != '"' {
		return field{}, false
	}
	open := p.i
	start, end, flags, ok := p.string()
	if !ok || !p.take(':') {
		return field{}, false
	}
	p.quote = string(p.source[p.v.place(open):p.v.place(open+1)])
	p.body(start, end, flags)
	f := p.nameOf(start, end, flags)
	top.isPerson = top.isPerson || f.isPerson
	if f.kind == none {
		f = top.field
	}
	return f, true
}

func (p *parser) nameOf(start, end int, flags uint8) field {
	name := p.b[start:end]
	if flags&cEscape != 0 {
		part := p.v.part(start, end)
		name = part.decoded()
	}
	return fieldOf(name)
}

// decoded is v with every escape undone.
func (v *view) decoded() []byte {
	last := *v
	for range maxDepth {
		next, changed := last.decode()
		if !changed {
			break
		}
		last = next
	}
	return last.b
}

// scalar walks a text, a number or a literal under the field f.
func (p *parser) scalar(f field, stack []frame) bool {
	if p.b[p.i] == '"' {
		start, end, flags, ok := p.string()
		if !ok {
			return false
		}
		if f.kind == none || !p.whole(f, start, end, flags, stack) {
			p.body(start, end, flags)
		}
		return true
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if n := p.i + len(word); n <= len(p.b) && string(p.b[p.i:n]) == word {
			p.i = n
			return true
		}
	}
	start := p.i
	if !p.number() {
		return false
	}
	p.masksNumber(f, start, p.i)
	return true
}

// masksNumber masks a number that its field, or its own form, says is personal.
func (p *parser) masksNumber(f field, start, end int) {
	text := p.b[start:end]
	k := none
	switch {
	case end-start >= 14 && end-start <= 19 && isDigits(text) && isCard(text):
		k = Card
	case f.kind == none || f.isPlain || f.kind == Email:
		return
	case end-start >= 5 || f.kind == Birth || f.kind == Address && end-start >= 3 || f.kind == Card && end-start >= 3:
		k = f.kind
	}
	if k == none {
		return
	}
	quote := p.quote
	if quote == "" {
		quote = `"`
	}
	p.spans = append(p.spans, span{p.v.place(start), p.v.place(end), p.depth, quote +
		p.v.widen(p.mark(k, normal(k, text))) + quote})
}

func isDigits(b []byte) bool {
	for _, c := range b {
		if !isDigit(c) {
			return false
		}
	}
	return true
}

func (p *parser) number() bool {
	if p.i < len(p.b) && p.b[p.i] == '-' {
		p.i++
	}
	switch {
	case p.i == len(p.b) || !isDigit(p.b[p.i]):
		return false
	case p.b[p.i] == '0':
		p.i++
	default:
		p.digits()
	}
	if p.i < len(p.b) && p.b[p.i] == '.' {
		p.i++
		if !p.digits() {
			return false
		}
	}
	if p.i < len(p.b) && p.b[p.i]|0x20 == 'e' {
		p.i++
		if p.i < len(p.b) && (p.b[p.i] == '+' || p.b[p.i] == '-') {
			p.i++
		}
		return p.digits()
	}
	return true
}

func (p *parser) digits() bool {
	start := p.i
	for p.i < len(p.b) && isDigit(p.b[p.i]) {
		p.i++
	}
	return p.i > start
}

// string moves past a text and returns where it stands between its quotes, and
// the classes of its bytes.
func (p *parser) string() (start, end int, flags uint8, ok bool) {
	b := p.b
	start = p.i + 1
	for i := start; i < len(b); i++ {
		c := class[b[i]]
		if c&cStop == 0 {
			flags |= c
			continue
		}
		if b[i] == '"' {
			p.i = i + 1
			return start, i, flags, true
		}
		flags |= c
		if b[i] != '\\' {
			p.isLoose = true
			continue
		}
		p.isLoose = p.isLoose || !isJSONEscape(b, i)
		i++
	}
	return 0, 0, 0, false
}

// isJSONEscape reports whether JSON knows the escape at b[i].
func isJSONEscape(b []byte, i int) bool {
	if i+1 >= len(b) {
		return false
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		if i+6 <= len(b) {
			_, ok := hexRune(b[i+2 : i+6])
			return ok
		}
	}
	return false
}

func (p *parser) body(start, end int, flags uint8) {
	if flags&^cWord == 0 && end-start < minToken || end-start < 6 {
		return
	}
	v := p.v.part(start, end)
	from, to := p.from, p.to
	p.from, p.to = v.place(0), v.place(len(v.b))
	c := firstByte(v.b)
	switch {
	case flags&cStop != 0: // a backslash
		d, _ := v.decodeBy(jsonEscape)
		if p.spend(len(d.b)) {
			p.text(d, p.depth+1)
		}
	case c == '{' || c == '[':
		p.text(v, p.depth+1)
	default:
		p.plain(v, flags, p.depth)
	}
	p.from, p.to = from, to
}
