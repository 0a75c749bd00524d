package caps

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"unicode/utf8"
)

// A Route lets a program send a request with a secret that it never sees: what it
// asks of http://HOST.rlp goes to https://HOST, and the value stands in a header.
// A base has routes, and no layer opens one: a route grants nothing by itself, and
// is open as far as a set holds what [Set.Route] asks for.
type Route struct {
	Host    string  // a name of two labels or more; port 443 is meant
	Methods ModeSet // over https
	Path    string  // one path, or "/prefix/*", which is everything below
	Header  string  // in its canonical spelling
	// Before and After stand around the value in the header, such as "Bearer ".
	Before, After string
	Secret        string // its id
	Pos           Pos
}

// Requests are what a request by mode on the route asks for: to reach the host,
// and to put the secret into what is sent there.
func (r *Route) Requests(m Mode) [2]Request {
	return [2]Request{
		{Family: Net, Mode: m, Name: r.hostPort()},
		{Family: Secrets, Mode: Use, Name: r.Secret + "@" + r.hostPort()},
	}
}

func (r *Route) hostPort() string { return joinHost(r.Host, 443) }

// Takes reports whether the route is of requests by mode for path, which
// [RoutePath] has given.
func (r *Route) Takes(m Mode, path string) bool {
	if !r.Methods.Has(m) {
		return false
	}
	if below, wild := strings.CutSuffix(r.Path, "*"); wild {
		return strings.HasPrefix(path, below)
	}
	return path == r.Path
}

// Same reports whether r and o are of the same place, and of a method together.
func (r *Route) Same(o *Route) bool {
	return r.Host == o.Host && r.Path == o.Path && r.Methods&o.Methods != 0
}

// String is the route as it is listed: methods, place, header and secret.
func (r *Route) String() string {
	var words []string
	for i, w := range methodWords {
		if r.Methods.Has(Mode(i)) {
			words = append(words, strings.ToUpper(w))
		}
	}
	return fmt.Sprintf("%s http://%s.rlp%s (%s: %s{%s}%s)", strings.Join(words, ","), r.Host, r.Path, r.Header,
		r.Before, r.Secret, r.After)
}

// OwnSuffix ends the names by which programs reach routes and services of rlp's own.
// They lead to nothing outside, and no resolver is asked for them.
const OwnSuffix = ".rlp"

// IsOwnName reports whether host, in its canonical form, is such a name.
func IsOwnName(host string) bool { return strings.HasSuffix(host, OwnSuffix) }

// RouteOf is the route of list that takes requests by mode for path at host, the
// one of the longest path if there are several; nil if none does.
func RouteOf(list []Route, host string, m Mode, path string) *Route {
	var best *Route
	for i := range list {
		r := &list[i]
		if r.Host == host && r.Takes(m, path) && (best == nil || len(r.Path) > len(best.Path)) {
			best = r
		}
	}
	return best
}

// Route is the decision on a request by mode over a route: the first denial of
// what it asks for. It is a conjunction of decisions of s, so that what closes
// either closes the route, and nothing that narrows s opens it.
func (s Set) Route(r *Route, m Mode) Decision {
	var d Decision
	for _, q := range r.Requests(m) {
		if d = s.Check(q); !d.Allow {
			break
		}
	}
	return d
}

// MaxRoutePath bounds the path of a request on a route, in bytes.
const MaxRoutePath = 4 << 10

// RoutePath is the path of a request's target in the one spelling by which routes
// are matched, and in which it is sent: escapes of letters, digits, "-", ".", "_"
// and "~" are undone, the others are in capitals. It refuses whatever servers read
// differently from each other: empty and dot segments, with or without parameters
// behind them, escaped or not, escapes of "/", "\", "%", of control characters and of
// what is no UTF-8, characters that belong escaped. What stays is one path to all of them.
func RoutePath(raw string) (string, error) {
	if len(raw) > MaxRoutePath {
		return "", fmt.Errorf("a path of a route is at most %d bytes", MaxRoutePath)
	}
	if raw == "" || raw[0] != '/' {
		return "", errors.New("a path begins with /")
	}
	b := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case c == '%':
			if i+2 >= len(raw) || !isHex(raw[i+1]) || !isHex(raw[i+2]) {
				return "", errors.New("a % in a path is followed by two hexadecimal digits")
			}
			c = unhex(raw[i+1])<<4 | unhex(raw[i+2])
			switch {
			case c < ' ', c == 0x7f, strings.IndexByte(`/\%`, c) >= 0:
				return "", fmt.Errorf("servers disagree about %s in a path", raw[i:i+3])
			case unreserved(c):
				b = append(b, c)
			default:
				b = append(b, '%', hexDigits[c>>4], hexDigits[c&15])
			}
			i += 2
		case unreserved(c), strings.IndexByte("/!$&'()*+,;=:@", c) >= 0:
			b = append(b, c)
		default:
			return "", fmt.Errorf("%q has no place in a path as it is", rune(c))
		}
	}
	if decoded, err := url.PathUnescape(string(b)); err != nil || !utf8.ValidString(decoded) {
		return "", errors.New("escapes in a path are of UTF-8")
	}
	return string(b), segments(string(b))
}

// segments refuses a path of which a segment is empty, but the last, or leads
// upwards: to servers, too, that drop what stands behind a ; or take an escape for the
// beginning of a query, and to those that drop blanks and dots at its end.
func segments(path string) error {
	rest := path[1:]
	for more := true; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		name := segment
		for _, end := range []string{";", "%3B", "%3F", "%23"} {
			name, _, _ = strings.Cut(name, end)
		}
		name = strings.ReplaceAll(name, "%20", "")
		switch {
		case name == "" && (more || segment != ""):
			return errors.New("a path has no empty segments")
		case name != "" && strings.Trim(name, ".") == "":
			return errors.New("a path has no segment of dots alone, as . and .. are")
		}
	}
	return nil
}

const hexDigits = "0123456789ABCDEF"

func unreserved(c byte) bool { return alnum(c) || strings.IndexByte("-._~", c) >= 0 }

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// RoutePattern reads the path of a route: one path, or one that ends in "/*".
func RoutePattern(s string) error {
	path := strings.TrimSuffix(s, "*")
	if path != s && !strings.HasSuffix(path, "/") {
		return errors.New(`* stands for everything below a folder: write "/prefix/*"`)
	}
	clean, err := RoutePath(path)
	switch {
	case err != nil:
		return err
	case clean != path:
		return fmt.Errorf("write %q, the spelling by which it is matched", clean)
	case strings.Contains(path, "*"):
		return errors.New(`* stands at the end alone: write "/prefix/*"`)
	}
	return nil
}

// RouteHost reads the host of a route.
func RouteHost(s string) (string, error) {
	host, port, err := ParseHost(s)
	_, noAddress := netip.ParseAddr(host)
	switch {
	case err != nil:
		return "", err
	case port != 0:
		return "", errors.New("a route leads to port 443: leave the port out")
	case !strings.Contains(host, ".") || noAddress == nil || IsOwnName(host):
		return "", errors.New(`the host of a route is a name of two labels or more, such as "api.example.com"`)
	}
	return host, nil
}
