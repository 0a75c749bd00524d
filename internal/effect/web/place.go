// Package web reads what an HTTP request says: the one spelling of its URL, its
// headers, and whether it asks the server to take it for another method than its own.
package web

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"unicode/utf8"

	"runloop.dev/rlp/caps"
)

// MaxURL bounds a URL, in bytes, as it comes and as it is sent.
const MaxURL = 8 << 10

// A Place is a URL in its one spelling: what the gate judges is what is
// connected to.
type Place struct {
	URL    *url.URL // scheme, host, path and query, nothing else
	Scheme string   // "https" or "http"
	Host   string   // host:port, as the gate knows it
	Shown  string   // for records: no query
}

// Size is how long the URL is, in bytes.
func (p *Place) Size() int { return len(p.Shown) + len(p.URL.RawQuery) }

var (
	// ErrURL says that a text is no URL that is asked for anything.
	ErrURL      = errors.New("not an absolute URL of https or http")
	errLong     = errors.New("not an absolute URL of at most 8192 bytes, counted as it is sent")
	errUserInfo = errors.New("user information does not belong in a URL; use a header")
	errChars    = errors.New("a URL has no blanks, control characters or backslashes")
	errDisguise = errors.New("an address is written as four decimal parts, or in brackets")
)

// Parse reads an absolute URL. It refuses what programs read differently
// from each other: user info, opaque forms, backslashes, numbers in disguise.
func Parse(raw string) (Place, error) {
	if err := CheckURL(raw); err != nil {
		return Place{}, err
	}
	u, err := url.Parse(raw)
	if err != nil {
		return Place{}, ErrURL
	}
	return Canonical(u)
}

// CheckURL refuses what is too long for a URL, or has characters that none has.
func CheckURL(raw string) error {
	switch {
	case len(raw) > MaxURL:
		return errLong
	case !utf8.ValidString(raw):
		return ErrURL
	}
	if strings.ContainsFunc(raw, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '\\' }) {
		return errChars
	}
	return nil
}

// Canonical makes u canonical; it is the caller's no more.
func Canonical(u *url.URL) (Place, error) {
	switch {
	case u.User != nil:
		return Place{}, errUserInfo
	case u.Scheme != "https" && u.Scheme != "http", u.Host == "":
		return Place{}, ErrURL
	}
	host, err := hostPort(u)
	if err != nil {
		return Place{}, err
	}
	authority := strings.TrimSuffix(host, standardPort(u.Scheme))
	u.Host, u.RawPath, u.RawQuery = authority, escape(u.RawPath), escape(u.RawQuery)
	u.Fragment, u.RawFragment = "", ""
	if u.Path == "" {
		u.Path = "/"
	}
	shown := u.Scheme + "://" + authority + u.EscapedPath()
	if len(shown)+len("?")+len(u.RawQuery) > MaxURL {
		return Place{}, errLong
	}
	return Place{u, u.Scheme, host, shown}, nil
}

func standardPort(scheme string) string {
	if scheme == "http" {
		return ":80"
	}
	return ":443"
}

// hostPort is the canonical host:port of u. Most are written so, and need not be
// made so; a label with "--" in it may be one of another alphabet.
func hostPort(u *url.URL) (string, error) {
	if !strings.Contains(u.Host, "--") {
		host := u.Host
		if u.Port() == "" {
			host += standardPort(u.Scheme)
		}
		if caps.IsHostPort(host) {
			return host, nil
		}
	}
	written := unmap(u.Host)
	host, err := caps.HostPort(u.Scheme, written)
	if err != nil {
		return "", err
	}
	name := host[:strings.LastIndexByte(host, ':')]
	if _, err := netip.ParseAddr(name); err == nil && !strings.HasPrefix(written, name) {
		return "", errDisguise // full-width digits, for one
	}
	return host, nil
}

// unmap writes the authority [::ffff:192.0.2.1]:80 as 192.0.2.1:80: it is the
// same address.
func unmap(authority string) string {
	inside, rest, ok := strings.Cut(strings.TrimPrefix(authority, "["), "]")
	if a, _ := netip.ParseAddr(inside); ok && a.Is4In6() && a.Zone() == "" {
		return a.Unmap().String() + rest
	}
	return authority
}

// escape escapes what has no place in a path or query as it is; what is escaped
// already stays.
func escape(q string) string {
	plain := func(c byte) bool { return c > ' ' && c < 0x7f && !strings.ContainsRune("\"<>`{}|^", rune(c)) }
	n := 0
	for i := range len(q) {
		if !plain(q[i]) {
			n++
		}
	}
	if n == 0 {
		return q
	}
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(q)+2*n)
	for i := range len(q) {
		if c := q[i]; plain(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}
