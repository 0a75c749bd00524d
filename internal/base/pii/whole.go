package pii

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// whole masks a text that is personal as its field says, and reports whether
// it is.
func (p *parser) whole(f field, start, end int, flags uint8, stack []frame) bool {
	v := p.v.part(start, end)
	text := v.b
	if flags&cEscape != 0 {
		text = v.decoded()
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return true
	}
	if onlyMarks(text) {
		return true
	}
	if !f.fits(text) {
		return false
	}
	if f.isPlain && !p.isContacts {
		if len(stack) > 0 {
			p.held = append(p.held, held{start, end, p.mark(Name, normal(Name, text))})
		}
		return false
	}
	with := p.fieldMark(f.kind, text)
	p.spans = append(p.spans, span{v.place(0), v.place(len(v.b)), p.depth, p.v.widen(with)})
	if f.kind != Email && f.kind != IBAN && f.kind != Card { // rules know these
		p.say(&v, with)
	}
	return true
}

// fieldMark is what takes the place of a text that its field says is personal.
func (s *search) fieldMark(k Kind, text []byte) string {
	with := ""
	switch k {
	case Email:
		with = s.emails(text)
	case Phone:
		with = s.phones(text)
	}
	if with == "" {
		with = s.mark(k, normal(k, text))
	}
	return with
}

// emails are the masks of the addresses in the text of a mail field, "" when
// there is none: a list stays a list, the names beside the addresses go.
func (s *search) emails(text []byte) string {
	with := ""
	for i := 0; i < len(text); i++ {
		if text[i] != '@' {
			continue
		}
		a, ok := addressAt(text, i)
		if !ok {
			continue
		}
		if with != "" {
			with += ", "
		}
		with += s.mark(Email, a.normal(text))
		i = a.end - 1
	}
	return with
}

// normal is a datum as every spelling of it is written.
func normal(k Kind, text []byte) []byte {
	switch k {
	case Phone:
		return normalDigits(text)
	case IBAN, Card, Account, ID:
		return compact(text)
	}
	return words(text)
}

func words(text []byte) []byte {
	out := make([]byte, 0, len(text)+8)
	isGap := false
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f':
			isGap = len(out) > 0
			i++
			continue
		case isGap:
			out = append(out, ' ')
			isGap = false
		}
		if c < utf8.RuneSelf {
			if c >= 'A' && c <= 'Z' {
				c |= 0x20
			}
			out = append(out, c)
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		out = utf8.AppendRune(out, unicode.ToLower(r))
		i += n
	}
	return out
}

// normalDigits is the text of a phone field in the form of [run.phoneDatum].
func normalDigits(text []byte) []byte {
	isAbroad := false
	d := make([]byte, 0, len(text)+2)
	for i, c := range text {
		switch {
		case c == '+' && len(d) == 0:
			isAbroad = true
		case c == '0' && isAbroad && i > 0 && text[i-1] == '(' && i+1 < len(text) && text[i+1] == ')':
		case isAlnum(c), c >= 0x80:
			d = append(d, c)
		}
	}
	if len(d) == 0 || !isDigits(d) {
		return lower(d)
	}
	return normalPhone(d, isAbroad && d[0] != '0')
}

func compact(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, c := range text {
		switch {
		case c >= 'a' && c <= 'z':
			out = append(out, c&^0x20)
		case isAlnum(c), c >= 0x80:
			out = append(out, c)
		}
	}
	return out
}

// labelled masks what stands behind the name of a field and the colon or equals
// sign at v.b[i]: a line of a form, a member of a query.
func (s *search) labelled(v view, i, depth int) int {
	b := v.b
	start := i
	for start > 0 && i-start < 32 && (isAlnum(b[start-1]) || b[start-1] == '_' || b[start-1] == '-' || b[start-1] == ' ' ||
		b[start-1] == '.') {
		start--
	}
	if start == i || start > 0 && !isLabelStart(b[start-1]) {
		return 0
	}
	f := fieldOf(b[start:i])
	if f.kind == none || f.isPlain || f.isWeak || f.kind == Email {
		return 0
	}
	from, to := valueBehind(b, i)
	text := bytes.TrimSpace(b[from:to])
	if len(text) == 0 || len(text) > maxLabelled || onlyMarks(text) || b[from] == '{' || b[from] == '[' {
		return 0
	}
	s.add(&v, from, to, depth, s.fieldMark(f.kind, text))
	return to
}

const maxLabelled = 200

func isLabelStart(c byte) bool {
	switch c {
	case '\n', '\r', '\t', '&', '?', ';', ',', '{', '(', '"', '\'', '*', '|', '#', '>':
		return true
	}
	return false
}

// valueBehind is where the value behind the label that ends at b[i] stands: to
// the end of a line, or of the member of a query.
func valueBehind(b []byte, i int) (from, to int) {
	stop := "\r\n\t|"
	if b[i] == '=' {
		stop = "\r\n\t|& ;#"
	}
	from = i + 1
	for from < len(b) && (b[from] == ' ' || b[from] == '*') {
		from++
	}
	if from < len(b) && (b[from] == '"' || b[from] == '\'') {
		from++
		stop = "\r\n" + string(b[from-1])
	}
	to = from
	for to < len(b) && bytes.IndexByte([]byte(stop), b[to]) < 0 {
		to++
	}
	for to > from && (b[to-1] == ' ' || b[to-1] == '.' || b[to-1] == ',') {
		to--
	}
	return from, to
}
