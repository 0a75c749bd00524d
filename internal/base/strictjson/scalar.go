package strictjson

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

func (r *Reader) space() {
	for r.at < len(r.text) && (r.text[r.at] == ' ' || r.text[r.at] == '\n' || r.text[r.at] == '\r' ||
		r.text[r.at] == '\t') {
		r.at++
	}
}

func (r *Reader) eat(c byte) bool {
	r.space()
	if r.at == len(r.text) || r.text[r.at] != c {
		return false
	}
	r.at++
	return true
}

// Text reads a text and copies it.
func (r *Reader) Text() (string, error) {
	s, escaped, err := r.quoted(true)
	if !escaped {
		s = strings.Clone(s)
	}
	return s, err
}

// Texts reads a text or a list of texts, which is not empty, and copies them.
func (r *Reader) Texts() (list []string, err error) {
	switch r.Kind() {
	case '"':
		s, err := r.Text()
		return []string{s}, err
	case '[':
		err = r.Items(func(r *Reader, _ int) error {
			s, err := r.Text()
			list = append(list, s)
			return err
		})
		if err != nil || len(list) > 0 {
			return list, err
		}
	}
	return nil, r.wanted("a text or a list of texts is wanted")
}

const control = "not JSON: a control character in a text; write it as an escape, such as \\u0009"

// quoted reads a text. It is a part of the document unless it has escapes; keep
// tells whether the text of one that has is wanted.
func (r *Reader) quoted(keep bool) (text string, escaped bool, err error) {
	if !r.eat('"') {
		return "", false, r.wanted("a text is wanted")
	}
	from := r.at
	for i := from; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == '"':
			r.at = i + 1
			return r.text[from:i], false, nil
		case c == '\\':
			text, err = r.unescaped(i, keep)
			return text, true, err
		case c < ' ':
			return "", false, r.wrongAt(i, control)
		}
	}
	r.at = len(r.text)
	return "", false, r.syntax("")
}

// unescaped is the rest of quoted: the text's first escape stands at i.
func (r *Reader) unescaped(i int, keep bool) (string, error) {
	var b []byte
	plain := r.at // where what needs nothing begins
	for i < len(r.text) {
		c := r.text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		if keep {
			b = append(b, r.text[plain:i]...)
		}
		switch {
		case c == '"':
			r.at = i + 1
			return string(b), nil
		case c < ' ':
			return "", r.wrongAt(i, control)
		}
		char, n, problem := escape(r.text[i:])
		if problem != "" {
			return "", r.wrongAt(i, problem)
		}
		if keep {
			b = utf8.AppendRune(b, char)
		}
		i += n
		plain = i
	}
	r.at = len(r.text)
	return "", r.syntax("")
}

// escape reads the escape that s begins with, which has n bytes.
func escape(s string) (char rune, n int, problem string) {
	if len(s) < 2 {
		return 0, 0, "not JSON: it ends too early"
	}
	if s[1] != 'u' {
		if i := strings.IndexByte(`"\/bfnrt`, s[1]); i >= 0 {
			return rune("\"\\/\b\f\n\r\t"[i]), 2, ""
		}
		return 0, 0, "not JSON: no escape of a text"
	}
	first := unit(s)
	switch {
	case first < 0:
		return 0, 0, "not JSON: \\u is followed by four hexadecimal digits"
	case !utf16.IsSurrogate(first):
		return first, 6, ""
	}
	if char = utf16.DecodeRune(first, unit(s[6:])); char == utf8.RuneError {
		return 0, 0, "half of a character (\\ud800 to \\udfff without its other half), which not every reader takes"
	}
	return char, 12, ""
}

func unit(s string) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	n := rune(0)
	for _, c := range []byte(s[2:6]) {
		digit := strings.IndexByte("0123456789abcdef", c|0x20)
		if digit < 0 || c < '0' {
			return -1
		}
		n = n<<4 | rune(digit)
	}
	return n
}

// Number reads a number and returns it as it stands there.
func (r *Reader) Number() (string, error) {
	from := r.Offset()
	i := from
	digits := func() bool {
		first := i
		for i < len(r.text) && '0' <= r.text[i] && r.text[i] <= '9' {
			i++
		}
		return i > first
	}
	if i < len(r.text) && r.text[i] == '-' {
		i++
	}
	zero := i
	good := digits() && (r.text[zero] != '0' || i == zero+1)
	if good && i < len(r.text) && r.text[i] == '.' {
		i++
		good = digits()
	}
	exponent := good && i < len(r.text) && r.text[i]|0x20 == 'e'
	if exponent {
		if i++; i < len(r.text) && (r.text[i] == '+' || r.text[i] == '-') {
			i++
		}
		good = digits()
	}
	if !good {
		return "", r.wanted("a number is wanted")
	}
	if i-from > MaxNumber {
		return "", r.wrong("a number of " + strconv.Itoa(i-from) + " characters, and not every reader takes more than " +
			strconv.Itoa(MaxNumber) + "; write it as a text")
	}
	if exponent { // without one, so few characters are always finite
		if _, err := strconv.ParseFloat(r.text[from:i], 64); err != nil {
			return "", r.wrong("a number beyond 64 bits of floating point; write it as a text")
		}
	}
	r.at = i
	return r.text[from:i], nil
}

// Whole reads a whole number of at most 63 bits.
func (r *Reader) Whole() (uint64, error) {
	from := r.Offset()
	end := from
	for end < len(r.text) && r.text[end] >= '0' && r.text[end] <= '9' {
		end++
	}
	digits := r.text[from:end]
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || digits != "0" && digits[0] == '0' || end < len(r.text) && strings.IndexByte(".eE", r.text[end]) >= 0 {
		return 0, r.wanted("a whole number is wanted")
	}
	r.at = end
	return n, nil
}

// Bool reads true or false.
func (r *Reader) Bool() (bool, error) {
	switch {
	case r.word("true"):
		return true, nil
	case r.word("false"):
		return false, nil
	}
	return false, r.wanted("true or false is wanted")
}

// Null passes over null, if it comes next.
func (r *Reader) Null() bool { return r.word("null") }

func (r *Reader) word(w string) bool {
	r.space()
	if !strings.HasPrefix(r.text[r.at:], w) {
		return false
	}
	r.at += len(w)
	return true
}
