package pii

import (
	"unicode/utf16"
	"unicode/utf8"
)

// A view is a text and where each of its bytes comes from: a decoded text whose
// places can be found again in what was decoded. Views are made of views.
type view struct {
	b  []byte
	at []int32 // where b[i] begins in the source, one more for the end; nil: at base+i
	// base is where b begins in the source when at is nil.
	base int
	wide byte // the source is UTF-16: 'l' little endian, 'b' big endian
	// isDeeper: what it was decoded from has been searched as well.
	isDeeper bool
}

func (v *view) place(i int) int {
	if v.at == nil {
		return v.base + i
	}
	return int(v.at[i])
}

func (v *view) part(i, j int) view {
	if v.at == nil {
		return view{b: v.b[i:j], base: v.base + i, wide: v.wide, isDeeper: v.isDeeper}
	}
	return view{b: v.b[i:j], at: v.at[i : j+1], wide: v.wide, isDeeper: v.isDeeper}
}

func (v *view) isChanged(i, j int) bool { return v.place(j)-v.place(i) != j-i }

// A unit decodes what begins at b[i]: how many bytes it takes, and the rune
// (a byte where isByte) that it stands for; n is 0 when it stands for itself,
// r is -1 when it stands for nothing.
type unit struct {
	n      int
	r      rune
	isByte bool
}

// decode undoes one level of every escape that texts use: percent, HTML,
// backslash and quoted-printable, and folds full-width letters. It reports
// false when nothing was to be undone.
func (v *view) decode() (view, bool) {
	if joined, ok := v.decodeBy(softBreak); ok {
		return joined, true // first: it may stand within any other escape
	}
	return v.decodeBy(anyEscape)
}

func (v *view) decodeBy(next func(b []byte, i int) unit) (view, bool) {
	i := 0
	for i < len(v.b) && (class[v.b[i]]&cEscape == 0 || next(v.b, i).n == 0) {
		i++
	}
	if i == len(v.b) {
		return *v, false
	}
	out := view{b: make([]byte, 0, len(v.b)), at: make([]int32, 0, len(v.b)+1), wide: v.wide, isDeeper: v.isDeeper}
	for j := range i {
		out.at = append(out.at, int32(v.place(j)))
	}
	out.b = append(out.b, v.b[:i]...)
	for i < len(v.b) {
		u := unit{}
		if class[v.b[i]]&cEscape != 0 {
			u = next(v.b, i)
		}
		from, before := int32(v.place(i)), len(out.b)
		switch {
		case u.n == 0:
			u.n = 1
			out.b = append(out.b, v.b[i])
		case u.isByte:
			out.b = append(out.b, byte(u.r))
		case u.r >= 0:
			out.b = utf8.AppendRune(out.b, u.r)
		}
		for range len(out.b) - before {
			out.at = append(out.at, from)
		}
		i += u.n
	}
	out.at = append(out.at, int32(v.place(len(v.b))))
	return out, true
}

// anyEscape is the escape of any kind at b[i].
func anyEscape(b []byte, i int) unit {
	switch b[i] {
	case '%':
		return percent(b, i)
	case '&':
		return entity(b, i)
	case '\\':
		return backslash(b, i)
	case '=':
		return quotedPrintable(b, i)
	}
	return folded(b, i)
}

func percent(b []byte, i int) unit {
	if i+5 < len(b) && (b[i+1] == 'u' || b[i+1] == 'U') {
		if r, ok := hexRune(b[i+2 : i+6]); ok {
			return unit{6, r, false}
		}
	}
	if i+2 < len(b) {
		if r, ok := hexRune(b[i+1 : i+3]); ok {
			return unit{3, r, true}
		}
	}
	return unit{}
}

// softBreak is the break at b[i] of a line that is too long to be
// quoted-printable.
func softBreak(b []byte, i int) unit {
	switch {
	case b[i] != '=':
	case i+2 < len(b) && b[i+1] == '\r' && b[i+2] == '\n':
		return unit{3, -1, false}
	case i+1 < len(b) && b[i+1] == '\n':
		return unit{2, -1, false}
	}
	return unit{}
}

func quotedPrintable(b []byte, i int) unit {
	if i+2 < len(b) {
		if r, ok := hexRune(b[i+1 : i+3]); ok {
			return unit{3, r, true}
		}
	}
	return unit{}
}

func jsonEscape(b []byte, i int) unit {
	if b[i] != '\\' {
		return unit{}
	}
	return backslash(b, i)
}

func backslash(b []byte, i int) unit {
	if i+1 >= len(b) {
		return unit{}
	}
	switch c := b[i+1]; c {
	case '"', '\\', '/', '\'':
		return unit{2, rune(c), false}
	case 'n':
		return unit{2, '\n', false}
	case 't':
		return unit{2, '\t', false}
	case 'r':
		return unit{2, '\r', false}
	case 'b':
		return unit{2, '\b', false}
	case 'f':
		return unit{2, '\f', false}
	case 'x':
		if i+3 < len(b) {
			if r, ok := hexRune(b[i+2 : i+4]); ok {
				return unit{4, r, true}
			}
		}
	case 'u':
		return unicodeEscape(b, i)
	case 'U':
		if i+9 < len(b) && b[i+2] == '0' && b[i+3] == '0' {
			if r, ok := hexRune(b[i+4 : i+10]); ok {
				return unit{10, r, false}
			}
		}
	}
	return octal(b, i)
}

func octal(b []byte, i int) unit {
	r, n := rune(0), 1
	for n < 4 && i+n < len(b) && b[i+n] >= '0' && b[i+n] <= '7' && r < 0o40 {
		r = r<<3 | rune(b[i+n]-'0')
		n++
	}
	if n == 1 {
		return unit{}
	}
	return unit{n, r, true}
}

func unicodeEscape(b []byte, i int) unit {
	if i+2 < len(b) && b[i+2] == '{' {
		for j := i + 3; j < len(b) && j < i+10; j++ {
			if b[j] == '}' {
				if r, ok := hexRune(b[i+3 : j]); ok {
					return unit{j + 1 - i, r, false}
				}
			}
		}
		return unit{}
	}
	if i+5 >= len(b) {
		return unit{}
	}
	r, ok := hexRune(b[i+2 : i+6])
	if !ok {
		return unit{}
	}
	if utf16.IsSurrogate(r) && i+11 < len(b) && b[i+6] == '\\' && b[i+7] == 'u' {
		if low, ok := hexRune(b[i+8 : i+12]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return unit{12, pair, false}
			}
		}
	}
	return unit{6, r, false}
}

func hexRune(b []byte) (rune, bool) {
	if len(b) == 0 || len(b) > 6 {
		return 0, false
	}
	r := rune(0)
	for _, c := range b {
		d := hexDigit(c)
		if d < 0 {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// entity is the HTML entity at b[i]: a number, or one of the names that can
// hide what the rules look for.
func entity(b []byte, i int) unit {
	end := i + 1
	for end < len(b) && end < i+12 && (isAlnum(b[end]) || b[end] == '#' && end == i+1) {
		end++
	}
	body := b[i+1 : end]
	if end < len(b) && b[end] == ';' {
		end++
	}
	if len(body) > 1 && body[0] == '#' {
		r, ok := entityNumber(body[1:])
		if !ok {
			return unit{}
		}
		return unit{end - i, r, false}
	}
	if r := entityName(string(body)); r != 0 {
		return unit{end - i, r, false}
	}
	return unit{}
}

func entityNumber(b []byte) (rune, bool) {
	if b[0] == 'x' || b[0] == 'X' {
		return hexRune(b[1:])
	}
	r := rune(0)
	for _, c := range b {
		if c < '0' || c > '9' || r > utf8.MaxRune {
			return 0, false
		}
		r = r*10 + rune(c-'0')
	}
	return r, true
}

func entityName(name string) rune {
	switch name {
	case "amp":
		return '&'
	case "lt":
		return '<'
	case "gt":
		return '>'
	case "quot":
		return '"'
	case "apos":
		return '\''
	case "commat":
		return '@'
	case "period":
		return '.'
	case "plus":
		return '+'
	case "nbsp":
		return ' '
	case "shy", "zwnj", "zwj":
		return -1
	case "lowbar":
		return '_'
	case "hyphen", "dash":
		return '-'
	case "sol":
		return '/'
	case "bsol":
		return '\\'
	case "percnt":
		return '%'
	case "equals":
		return '='
	}
	return 0
}

// folded undoes full-width forms and takes out what does not show.
func folded(b []byte, i int) unit {
	r, n := utf8.DecodeRune(b[i:])
	switch {
	case r >= 0xff01 && r <= 0xff5e:
		return unit{n, r - 0xff01 + '!', false}
	case r == 0x3002 || r == 0xff61:
		return unit{n, '.', false}
	case r == 0xfe6b:
		return unit{n, '@', false}
	case r == 0xa0 || r == 0x202f || r == 0x2007 || r == 0x3000:
		return unit{n, ' ', false}
	case r == 0x2010 || r == 0x2011 || r == 0x2012 || r == 0x2212:
		return unit{n, '-', false}
	case r == 0xad || r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2060 && r <= 0x2064 ||
		r == 0xfeff:
		return unit{n, -1, false}
	}
	return unit{}
}

// utf16View is b decoded as UTF-16 where half of it is zeros in the places that
// western text has them.
func utf16View(b []byte) (view, bool) {
	even, odd := 0, 0
	for i, c := range b {
		if c == 0 && i&1 == 0 {
			even++
		} else if c == 0 {
			odd++
		}
	}
	high := 1
	out := view{wide: 'l'}
	switch {
	case odd >= 4 && odd > len(b)/4 && odd > 4*even:
	case even >= 4 && even > len(b)/4 && even > 4*odd:
		high, out.wide = 0, 'b'
	default:
		return out, false
	}
	for i := 0; i+1 < len(b); i += 2 {
		before := len(out.b)
		out.b = utf8.AppendRune(out.b, rune(b[i+high])<<8|rune(b[i+1-high]))
		for range len(out.b) - before {
			out.at = append(out.at, int32(i))
		}
	}
	out.at = append(out.at, int32(len(b)&^1))
	return out, true
}

// widen is an ASCII text as the source writes it.
func (v *view) widen(s string) string {
	if v.wide == 0 {
		return s
	}
	b := make([]byte, 0, 2*len(s))
	for i := range len(s) {
		if v.wide == 'l' {
			b = append(b, s[i], 0)
		} else {
			b = append(b, 0, s[i])
		}
	}
	return string(b)
}
