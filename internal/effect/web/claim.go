package web

import (
	"strconv"
	"strings"
)

// A Claim is all of a request by which it can ask a server to take it for
// one of another method than its own.
type Claim struct {
	Place
	Method  string
	Headers []string
	Body    string // whatever its type is said to be
	Tool    bool   // whose method is the bundle's word
}

// Other says what of c names another method; "" nothing.
func (c *Claim) Other() string {
	for _, name := range c.Headers {
		if namesMethod(name) {
			return "the header " + name + " asks the server for another method"
		}
		if c.Body != "" && Dashed(name) == "Content-Encoding" {
			return "a body that is encoded (Content-Encoding) is not looked into, and may ask the server for another method"
		}
	}
	if c.Body != "" && Bodiless(c.Method) {
		return "a " + c.Method + " with a body is taken for another request by some servers"
	}
	if word := methodWord(c.URL.RawQuery); word != "" {
		return "the word " + word + " in the query asks the server for another method"
	}
	if word := methodWord(c.Body); word != "" {
		return "the word " + word + " in the body asks the server for another method"
	}
	return ""
}

// Bodiless reports whether a request by method has no body as servers expect it.
func Bodiless(method string) bool {
	return method == "GET" || method == "HEAD" || method == "OPTIONS"
}

// namesMethod reports whether a name speaks of a method, as all headers do by
// which servers are asked for another one: X-HTTP-Method-Override, X-HTTP-Override,
// X-Tunnel-Method, X-Verb. Whether one is known does not count, nor how it is
// written: gateways make - and _ one.
func namesMethod(name string) bool {
	name = strings.ReplaceAll(letters(name), "verbos", "")
	return strings.Contains(name, "method") || strings.Contains(name, "verb") || strings.Contains(name, "override")
}

// isOverride reports whether a word, wherever in a query or body it stands, is a
// name by which frameworks override the method: _method, or that of a header.
// Other names that speak of one are ordinary, such as payment_method.
func isOverride(word string) bool {
	word = strings.ToLower(strings.ReplaceAll(word, "-", "_"))
	return namesMethod(word) && (word[0] == '_' || strings.HasPrefix(word, "x_") || strings.Contains(word, "override"))
}

// maxMethodWord is more than any name of a method, or that speaks of one, is long.
const maxMethodWord = 64

// methodWord is the first word of a query, or of a body of whatever syntax, that
// asks for another method; "" if there is none. It is a name that overrides; or
// one that speaks of a method with a method as its value, as forms and the parts of
// a multipart body give one. Escapes of URLs and of texts are taken for what they
// mean, and NUL, which text in UTF-16 has between its letters, for nothing.
func methodWord(text string) string {
	var word [maxMethodWord]byte
	n := 0 // of word
	var f methodName
	for at := 0; at <= len(text); {
		c, size := byte('\n'), 1
		if at < len(text) {
			c, size = meant(text[at:])
		}
		at += size
		if c == 0 {
			continue
		}
		if isWordChar(c) {
			if n < len(word) {
				word[n] = c
				n++
			}
			continue
		}
		if n > 0 {
			w := string(word[:n])
			if n == len(word) {
				w = "" // longer than any that counts
			}
			if found := f.word(w); found != "" {
				return found
			}
		}
		n = 0
		f.behind(c)
	}
	return ""
}

// A methodName is the last name that speaks of a method, and what stands behind it.
type methodName struct {
	name  string
	last  byte // behind the name, 'w' for a word; 0: nothing yet
	gives bool // the next word is its value
}

// word looks at the next word; what it gives is the name by which a method is asked
// for.
func (f *methodName) word(w string) string {
	switch {
	case f.gives && isMethod(strings.ToUpper(w)):
		return f.name
	case f.gives:
		*f = methodName{}
	}
	f.last = 'w'
	if namesMethod(w) {
		*f = methodName{name: w}
		if isOverride(w) {
			return w
		}
	}
	return ""
}

// behind looks at what is no word: whether it gives the name a value, in a form
// (name=value, name[]=value) or in the part of a multipart body, whose head ends
// with an empty line. A JSON member that is called method is no override.
func (f *methodName) behind(c byte) {
	if f.name == "" || c == '\r' {
		return
	}
	f.gives = f.gives || c == '=' && (f.last == 0 || f.last == ']') || c == '\n' && f.last == '\n'
	f.last = c
}

// meant is the first character of text, where it is one of ASCII, and how many
// bytes it is written in.
func meant(text string) (c byte, size int) {
	digits, most := "", 0
	switch {
	case len(text) > 2 && text[0] == '%':
		digits, most = text[1:3], 3
	case len(text) > 5 && text[0] == '\\' && text[1] == 'u':
		digits, most = text[2:6], 6
	case len(text) > 1 && text[0] == '\\':
		return text[1], 2
	}
	if digits == "" { // as of nearly all
		return text[0], 1
	}
	if n, err := strconv.ParseUint(digits, 16, 16); err == nil {
		return byte(min(n, 0xff)), most
	}
	return text[0], 1
}

func isWordChar(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.'
}

// isMethod reports whether a value is one of HTTP's methods, WebDAV's or those of
// caches: an ordinary parameter that speaks of a method has other values.
func isMethod(value string) bool {
	switch value {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "MERGE", "PURGE", "BAN", "LINK",
		"UNLINK",
		"PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "REPORT", "QUERY", "SEARCH", "ACL", "BIND",
		"UNBIND", "REBIND",
		"BASELINE-CONTROL", "CHECKIN", "CHECKOUT", "UNCHECKOUT", "LABEL", "MKACTIVITY", "MKCALENDAR", "MKREDIRECTREF",
		"MKWORKSPACE",
		"ORDERPATCH", "UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL":
		return true
	}
	return false
}

// letters are the letters and digits of s, in lower case.
func letters(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			return c
		case 'A' <= c && c <= 'Z':
			return c | 0x20
		}
		return -1
	}, s)
}
