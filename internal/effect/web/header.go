package web

import (
	"errors"
	"net/textproto"
	"strings"
)

// CheckHeader refuses what would end one header and begin another, and the
// headers by which a message is framed and routed: they are the host's.
func CheckHeader(name string, values []string) error {
	if name == "" || strings.ContainsFunc(name, func(c rune) bool { return !isTokenChar(c) }) {
		return errors.New("a header's name is letters, digits and -")
	}
	switch name = Dashed(name); name {
	case "Host", "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Content-Length", "Expect", "Http2-Settings", "Via", "Alt-Svc":
		return errors.New("set by the host alone")
	}
	if name == "Proxy" || strings.HasPrefix(name, "Proxy-") {
		return errors.New("for a proxy, and there is none")
	}
	for _, v := range values {
		if !IsHeaderValue(v) {
			return errors.New("a header's value has no line breaks and no control characters")
		}
	}
	return nil
}

// Dashed is a header's name as servers read it for which _ is - (CGI and its
// heirs): Content_Length is Content-Length to them.
func Dashed(name string) string {
	return textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
}

func isTokenChar(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~",
		c)
}

// IsHeaderValue reports whether v has nothing that ends a header.
func IsHeaderValue(v string) bool {
	return strings.IndexFunc(v, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) < 0
}
