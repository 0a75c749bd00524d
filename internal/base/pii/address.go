package pii

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// An address is where a mail address stands in a text, and its two halves.
type address struct {
	start, end     int
	local          [2]int
	domain         [2]int
	isSpelled      bool // its dots may be words
	isQuoted, isIP bool
}

const (
	maxLocal  = 256
	maxDomain = 320
)

// addressAt finds the address around the @ at b[at]; one blank may stand on
// each side of it.
func addressAt(b []byte, at int) (address, bool) {
	end, start := at, at+1
	if at > 1 && b[at-1] == ' ' && at+1 < len(b) && b[at+1] == ' ' {
		end, start = at-1, at+2
	}
	a := address{}
	if !a.readLocal(b, end) || !a.readDomain(b, start) {
		return a, false
	}
	return a, true
}

// readLocal reads what ends at b[end] as the part before the @.
func (a *address) readLocal(b []byte, end int) bool {
	low := max(0, end-maxLocal)
	if end > 1 && b[end-1] == '"' {
		for i := end - 2; i >= low && b[i] != '\n'; i-- {
			if b[i] == '"' {
				a.start, a.local, a.isQuoted = i, [2]int{i + 1, end - 1}, true
				return end-1 > i+1
			}
		}
		return false
	}
	i := end
	for i > low {
		c := b[i-1]
		if c < utf8.RuneSelf {
			if !isLocal(c) {
				break
			}
			i--
			continue
		}
		r, n := utf8.DecodeLastRune(b[:i])
		isJoined := i < end && b[i] < utf8.RuneSelf && r >= 0x250 // another script before a latin word
		if isJoined || !isLetter(r) {
			break
		}
		i -= n
	}
	for i < end && isOrnament(b[i]) {
		i++
	}
	a.start, a.local = i, [2]int{i, end}
	return i < end
}

// isLocal reports whether c may stand before the @. What separates in URLs and
// lists does not, though the standard allows some of it.
func isLocal(c byte) bool {
	if isAlnum(c) {
		return true
	}
	switch c {
	case '.', '_', '%', '+', '-', '\'', '!', '$', '*', '^', '`', '{', '|', '}', '~':
		return true
	}
	return false
}

// isOrnament reports whether c before an address is a mark of the text.
func isOrnament(c byte) bool {
	return c < utf8.RuneSelf && !isAlnum(c) && c != '_' && c != '+'
}

// readDomain reads what begins at b[start] as the part behind the @.
func (a *address) readDomain(b []byte, start int) bool {
	if start < len(b) && b[start] == '[' {
		return a.readLiteral(b, start)
	}
	end, label, labels := start, start, 0
	high := min(len(b), start+maxDomain)
	i := start
	for i < high {
		n, more := domainRune(b, i, label)
		if n == 0 {
			break
		}
		if b[i] == '.' {
			if i == label {
				break
			}
			label, labels, i = i+1, labels+1, i+1
			continue
		}
		i += n
		end = i
		if !more {
			break
		}
	}
	if label > end { // a dot that ends a sentence
		labels--
		label = start + bytes.LastIndexByte(b[start:end], '.') + 1
	}
	for end > label && (b[end-1] == '-' || b[end-1] == '_') {
		end--
	}
	a.end, a.domain = end, [2]int{start, end}
	return labels > 0 && isTop(b[label:end])
}

// domainRune reads one letter, digit, hyphen or dot of a domain; more is false
// at the end of a latin label that another script follows.
func domainRune(b []byte, i, label int) (n int, more bool) {
	c := b[i]
	if c < utf8.RuneSelf {
		if !isAlnum(c) && c != '-' && c != '_' && c != '.' {
			return 0, false
		}
		return 1, true
	}
	r, n := utf8.DecodeRune(b[i:])
	if !isLetter(r) || i > label && b[i-1] < utf8.RuneSelf && r >= 0x250 {
		return 0, false
	}
	return n, true
}

func isTop(b []byte) bool {
	letters := 0
	for _, c := range b {
		if c >= utf8.RuneSelf || !isDigit(c) && c != '-' && c != '_' {
			letters++
		}
	}
	return len(b) >= 2 && letters >= 2
}

// readLiteral reads an address of a machine in brackets.
func (a *address) readLiteral(b []byte, start int) bool {
	for i := start + 1; i < len(b) && i < start+48; i++ {
		c := b[i]
		if c == ']' {
			a.end, a.domain, a.isIP = i+1, [2]int{start, i + 1}, true
			return i > start+3
		}
		if !isAlnum(c) && c != '.' && c != ':' {
			break
		}
	}
	return false
}

// normal is the address as every spelling of it is written: lower case, no
// quotes, dots for words, the domain in ASCII.
func (a *address) normal(b []byte) []byte {
	out := make([]byte, 0, 64)
	for _, c := range b[a.local[0]:a.local[1]] {
		if !(a.isQuoted && c == '\\') {
			out = append(out, c)
		}
	}
	out = append(lower(out), '@')
	domain := b[a.domain[0]:a.domain[1]]
	if a.isSpelled {
		domain = joinLabels(domain)
	}
	return append(out, toASCII(string(lower(domain)))...)
}

// toASCII is a lower-case domain as DNS has it. A label that has no such form
// keeps its own.
func toASCII(domain string) string {
	labels := strings.Split(domain, ".")
	for i, label := range labels {
		if ascii, err := idna.Punycode.ToASCII(label); err == nil {
			labels[i] = ascii
		}
	}
	return strings.Join(labels, ".")
}

// lower is b in lower case; b itself may be changed only where it is new.
func lower(b []byte) []byte {
	out := make([]byte, 0, len(b)+8)
	for i := 0; i < len(b); {
		c := b[i]
		if c < utf8.RuneSelf {
			if c >= 'A' && c <= 'Z' {
				c |= 0x20
			}
			out = append(out, c)
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		out = utf8.AppendRune(out, unicode.ToLower(r))
		i += n
	}
	return out
}

// spelledAt finds the address around the word at in b[i:i+2], as people write
// it who do not want it found: "a (at) b.org", "a at b dot org".
func spelledAt(b []byte, i int) (address, bool) {
	left, isBracketed := opening(b, i)
	right, closed := closing(b, i+2)
	if left == i || right == i+2 || isBracketed != closed {
		return address{}, false
	}
	a := address{isSpelled: true}
	if !a.readLocal(b, left) || a.isQuoted {
		return a, false
	}
	return a, a.readSpelled(b, right, isBracketed)
}

// opening is where what stands before the word at b[i] ends: before blanks, and
// a bracket if there is one.
func opening(b []byte, i int) (end int, isBracketed bool) {
	for end = i; end > 0 && i-end < 4; end-- {
		switch b[end-1] {
		case ' ', '-', '_', '*':
		case '(', '[', '{', '<':
			isBracketed = true
		default:
			return end, isBracketed
		}
	}
	return end, isBracketed
}

// closing is where what stands behind a word that ends at b[i] begins.
func closing(b []byte, i int) (start int, isBracketed bool) { return skip(b, i, ")]}>") }

// skip moves past up to four blanks and brackets.
func skip(b []byte, i int, brackets string) (start int, isBracketed bool) {
	for start = i; start < len(b) && start-i < 4; start++ {
		switch c := b[start]; {
		case c == ' ', c == '-', c == '_', c == '*':
		case strings.IndexByte(brackets, c) >= 0:
			isBracketed = true
		default:
			return start, isBracketed
		}
	}
	return start, isBracketed
}

// readSpelled reads labels between dots or words for dots.
func (a *address) readSpelled(b []byte, start int, isBracketed bool) bool {
	end, words, labels, top := start, 0, 0, start
	for {
		label := end
		for end < len(b) && end-label < 64 && (isAlnum(b[end]) || b[end] == '-' || b[end] >= utf8.RuneSelf) {
			end++
		}
		if end == label {
			return false
		}
		labels, top = labels+1, label
		next, isWord := dot(b, end)
		if next == end || next >= len(b) || !isAlnum(b[next]) && b[next] < utf8.RuneSelf {
			break
		}
		if isWord {
			words++
		}
		if labels > 8 {
			return false
		}
		end = next
	}
	a.domain, a.end = [2]int{start, end}, end
	if labels < 2 || !isTop(b[top:end]) {
		return false
	}
	return isBracketed || words > 0 && isCommonTop(string(lower(b[top:end])))
}

// dot reads a dot, or a word for one, between two labels.
func dot(b []byte, i int) (next int, isWord bool) {
	if i < len(b) && b[i] == '.' {
		return i + 1, false
	}
	start, isBracketed := skip(b, i, "([{<")
	if start == i || start+3 > len(b) || string(lower(b[start:start+3])) != "dot" {
		return i, false
	}
	end, closed := closing(b, start+3)
	if end == start+3 || isBracketed != closed {
		return i, false
	}
	return end, true
}

// joinLabels puts dots for what stands between labels.
func joinLabels(b []byte) []byte {
	var out []byte
	for i := 0; i < len(b); {
		if next, _ := dot(b, i); next > i {
			out = append(out, '.')
			i = next
			continue
		}
		out = append(out, b[i])
		i++
	}
	return out
}

// isCommonTop keeps "look at the dot product" from being an address.
func isCommonTop(s string) bool {
	switch s {
	case "com", "org", "net", "edu", "gov", "mil", "int", "info", "biz", "io", "dev", "app", "me", "co", "ai", "example",
		"test", "invalid",
		"de", "at", "ch", "uk", "fr", "it", "es", "nl", "be", "eu", "pl", "se", "no", "dk", "fi", "pt", "cz", "ru", "us",
		"ca", "au", "nz",
		"jp", "cn", "in", "br", "mx", "za", "ie", "tech", "online", "xyz", "site", "cloud", "name", "mail", "email":
		return true
	}
	return false
}
