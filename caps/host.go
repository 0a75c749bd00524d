package caps

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// ParseHost reads "host", "host:port", "1.2.3.4:port" or "[v6]:port" as a
// policy or a URL names it. The host comes back canonical: lower-case ASCII,
// one trailing dot stripped, internationalized names as A-labels, IPv6 without
// brackets and compressed. port is 0 when none is written. It refuses user
// info, schemes, paths, blanks, wildcards, ports outside 1..65535 or with
// leading zeros, and numbers in disguise such as 127.1, 0x7f.1, 2130706433 and
// 0177.0.0.1, which some resolvers take for addresses.
func ParseHost(s string) (host string, port int, err error) {
	if s == "" {
		return "", 0, errors.New("the host is empty: write a host such as \"api.example.com\"")
	}
	if !utf8.ValidString(s) {
		return "", 0, fmt.Errorf("the host %q is not UTF-8", s)
	}
	if i := strings.IndexFunc(s, func(r rune) bool {
		return r <= ' ' || strings.ContainsRune("/@\\*%?#\"<>^`{|}\x7f",
			r)
	}); i >= 0 {
		return "", 0, fmt.Errorf("the host %q has %q in it: write only host or host:port", s, s[i:i+1])
	}
	if s[0] == '[' {
		return parseV6(s)
	}
	name, digits, hasPort := strings.Cut(s, ":")
	if strings.Contains(digits, ":") {
		return "", 0, fmt.Errorf("the host %q has more than one colon: write an IPv6 address in brackets, [::1]:443", s)
	}
	if hasPort {
		if port, err = parsePort(s, digits); err != nil {
			return "", 0, err
		}
	}
	host, err = canonicalName(s, name)
	return host, port, err
}

func parseV6(s string) (string, int, error) {
	addr, rest, ok := strings.Cut(s[1:], "]")
	ip, _ := netip.ParseAddr(addr) // the zero Addr is no IPv6 address, and a zone has a %
	if !ok || !ip.Is6() {
		return "", 0, fmt.Errorf("the host %q is not an IPv6 address in brackets, such as [::1]:443", s)
	}
	if ip.Is4In6() {
		return "", 0, fmt.Errorf("the host %q is an IPv4 address in IPv6 form: write %s", s, ip.Unmap())
	}
	if rest == "" {
		return ip.String(), 0, nil
	}
	if rest[0] != ':' {
		return "", 0, fmt.Errorf("the host %q has %q after the address", s, rest)
	}
	port, err := parsePort(s, rest[1:])
	if err != nil {
		return "", 0, err
	}
	return ip.String(), port, nil
}

func parsePort(s, digits string) (int, error) {
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || digits[0] == '0' {
		return 0, fmt.Errorf("the port of %q is not a number from 1 to 65535", s)
	}
	return int(n), nil
}

func canonicalName(whole, name string) (string, error) {
	// Lookup maps full-width forms first, so that what it gives is judged, not
	// what was written.
	ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(name, "."))
	// What it gives must be what it takes, or two spellings would be two hosts.
	_, again := idna.Lookup.ToASCII(ascii)
	if err = cmp.Or(err, again); err != nil {
		return "", fmt.Errorf("the host %q is no host name: %w", whole, err)
	}
	if !isHostName(ascii) {
		if numeric(ascii) {
			return "", fmt.Errorf("the host %q is a number in disguise: write an IPv4 address as four decimal parts", whole)
		}
		return "", fmt.Errorf("the host %q is no host name", whole)
	}
	return ascii, nil
}

// HostPort is the canonical "host:port" of the authority of a URL, or of a
// policy's entry, under scheme: the port is the scheme's own when none is
// written. It is the scope and the name of Net requests.
func HostPort(scheme, authority string) (string, error) {
	host, port, err := ParseHost(authority)
	if err != nil {
		return "", err
	}
	if port == 0 {
		port = defaultPort(scheme)
	}
	if port == 0 {
		return "", fmt.Errorf("the scheme %q is neither https nor http", scheme)
	}
	return joinHost(host, port), nil
}

// WildcardPort is [HostPort] for an entry that may be "*.example.org", which
// holds every name of one label more, and nothing deeper.
func WildcardPort(scheme, authority string) (string, error) {
	rest, wild := strings.CutPrefix(authority, "*.")
	if !wild {
		return HostPort(scheme, authority)
	}
	scope, err := HostPort(scheme, rest)
	if err != nil {
		return "", err
	}
	if scope[0] == '[' || isIPv4(scope[:strings.LastIndexByte(scope, ':')]) {
		return "", fmt.Errorf("the host %q is a wildcard below an address", authority)
	}
	return "*." + scope, nil
}

func joinHost(host string, port int) string {
	if strings.IndexByte(host, ':') >= 0 {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(port)
}

func defaultPort(scheme string) int {
	switch scheme {
	case "https":
		return 443
	case "http":
		return 80
	}
	return 0
}

// IsHostPort reports whether s is a canonical "host:port", as [HostPort] makes
// it, but for labels of other alphabets, "xn--...", which it does not decode.
func IsHostPort(s string) bool { return isHostPort(s) }

// isHostPort reports whether s is a canonical "host:port". It is what every
// request passes through, and allocates nothing for what is canonical.
func isHostPort(s string) bool {
	colon := strings.LastIndexByte(s, ':')
	if colon == -1 || !isPort(s[colon+1:]) {
		return false
	}
	if s[0] == '[' {
		return isV6(s[:colon])
	}
	return isHostName(s[:colon])
}

func isPort(s string) bool {
	if s == "" || len(s) > 5 || s[0] == '0' {
		return false
	}
	n := 0
	for i := range len(s) {
		if !digit(s[i]) {
			return false
		}
		n = 10*n + int(s[i]-'0')
	}
	return n <= 65535
}

func isV6(s string) bool {
	if s[len(s)-1] != ']' {
		return false
	}
	in := s[1 : len(s)-1]
	ip, _ := netip.ParseAddr(in) // the zero Addr is no IPv6 address
	if !ip.Is6() || ip.Zone() != "" || ip.Is4In6() {
		return false
	}
	var buf [64]byte
	return string(ip.AppendTo(buf[:0])) == in
}

// isHostName reports whether s is a canonical name or IPv4 address.
func isHostName(s string) bool {
	if len(s) > 253 {
		return false
	}
	label := 0 // where the present label begins
	for i := 0; i <= len(s); i++ {
		if i < len(s) && s[i] != '.' {
			if c := s[i]; !lower(c) && !digit(c) && c != '-' {
				return false
			}
			continue
		}
		if n := i - label; n == 0 || n > 63 || s[label] == '-' || s[i-1] == '-' {
			return false
		}
		label = i + 1
	}
	return !numeric(s) || isIPv4(s)
}

// numeric reports whether the last label of s could be read as a number, which
// makes the whole an address to some resolvers.
func numeric(s string) bool {
	last := s[strings.LastIndexByte(s, '.')+1:]
	if last == "" {
		return false
	}
	if strings.HasPrefix(last, "0x") {
		return true
	}
	for i := range len(last) {
		if !digit(last[i]) {
			return false
		}
	}
	return true
}

func isIPv4(s string) bool {
	for part := 1; ; part++ {
		n, i := 0, 0
		for i < len(s) && i < 4 && digit(s[i]) {
			n, i = 10*n+int(s[i]-'0'), i+1
		}
		if i == 0 || n > 255 || i > 1 && s[0] == '0' {
			return false
		}
		if i == len(s) || s[i] != '.' {
			return part == 4 && i == len(s)
		}
		s = s[i+1:]
	}
}
