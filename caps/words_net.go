package caps

import (
	"fmt"
	"slices"
	"strings"
)

// The modes of Net are scheme and method together, or (https, GET) and
// (http, POST) would add up to (http, GET): mode = 8*scheme + method class. Behind
// them is one more, for bytes of any protocol over TCP.
const (
	HTTPS       ModeSet = 0x00ff // every method over https
	HTTP        ModeSet = 0xff00 // every method over http
	TCP         ModeSet = 1 << Bytes
	Bytes       Mode    = 2 * numMethods
	numMethods          = 8
	numNetModes         = 2*numMethods + 1

	readMethods ModeSet = 0x03 // GET, HEAD
)

// methodWords are the method classes in the order of their bits, as capability
// strings spell them; the last one stands for every other method.
var methodWords = [numMethods]string{"get", "head", "post", "put", "patch", "delete", "options", "other"}

var schemes = [2]string{"https", "http"}

// NetMode is the mode of a request by method over scheme ("https" or "http").
// Methods are told apart by case, as HTTP does: "get" is not GET but some other
// method. It is false for other schemes and for what is no method at all.
func NetMode(scheme, method string) (Mode, bool) {
	s := slices.Index(schemes[:], scheme)
	if s < 0 || !isWord(method, 32, func(c byte) bool { return alnum(c) || c == '-' || c == '_' }) {
		return 0, false
	}
	for i, w := range methodWords {
		if len(w) == len(method) && strings.ToUpper(w) == method {
			return Mode(numMethods*s + i), true
		}
	}
	return Mode(numMethods*s + numMethods - 1), true
}

// NetModes is the modes of methods over scheme; no methods at all mean every
// one. A policy writes the methods in capitals.
func NetModes(scheme string, methods ...string) (ModeSet, error) {
	var set ModeSet
	for _, m := range methods {
		mode, ok := NetMode(scheme, m)
		if !ok || strings.ToUpper(m) != m {
			return 0, fmt.Errorf("%q over %q: write methods in capitals, such as \"GET\", over https or http", m, scheme)
		}
		set |= 1 << mode
	}
	if len(methods) > 0 {
		return set, nil
	}
	switch scheme {
	case "https":
		return HTTPS, nil
	case "http":
		return HTTP, nil
	}
	return 0, fmt.Errorf("the scheme %q is neither https nor http", scheme)
}

// netWords prints a grant of Net: a string for each scheme, and one for bytes.
func netWords(g Grant) []string {
	var out []string
	for i, scheme := range schemes {
		methods := g.Modes >> (numMethods * i) & 0xff
		if methods != 0 {
			out = append(out, "network:"+scheme+":"+netScope(scheme, methods, g.Scope))
		}
	}
	if g.Modes.Has(Bytes) {
		out = append(out, "network:tcp:"+g.Scope)
	}
	return out
}

func netScope(scheme string, methods ModeSet, scope string) string {
	host := strings.TrimSuffix(scope, fmt.Sprintf(":%d", defaultPort(scheme)))
	var words []string
	for i, w := range methodWords {
		if methods.Has(Mode(i)) {
			words = append(words, w)
		}
	}
	switch {
	case len(words) == 1 && host == "*":
		return words[0]
	case len(words) < numMethods:
		return strings.Join(words, ",") + "@" + host
	case slices.Contains(methodWords[:], host):
		return scope // a host that is called like a method keeps its port
	}
	return host
}

// parseNet reads the action and scope of a network capability.
func parseNet(action, scope string, k kind) ([]Grant, error) {
	switch action {
	case "https", "http":
		methods, host, err := cutMethods(scope)
		if err != nil {
			return nil, err
		}
		return netGrants([]string{action}, methods, host)
	case "tcp":
		g, err := bytesTo(scope)
		if err != nil {
			return nil, err
		}
		return []Grant{g}, nil
	case "read", "write":
		methods := readMethods
		if action == "write" {
			methods = 0xff &^ readMethods
		}
		return parseReadWrite(methods, scope, k)
	case "*":
		if k == deny {
			methods, host, err := cutMethods(scope)
			if err != nil {
				return nil, err
			}
			list, err := netGrants(schemes[:], methods, host)
			if methods == 0xff {
				list = withBytes(list)
			}
			return list, err
		}
	}
	return nil, fmt.Errorf("network has no action %q: write https, http, tcp, read or write", action)
}

// bytesTo is the grant of bytes to a place, which has a port. A policy names one
// place; in a layer's set it may be a wildcard's.
func bytesTo(place string) (Grant, error) {
	g := Grant{Family: Net, Modes: TCP, Scope: "*"}
	if place == "*" {
		return g, nil
	}
	_, port, err := ParseHost(strings.TrimPrefix(place, "*."))
	if err == nil && port == 0 {
		err = fmt.Errorf("%q has no port: write it behind the host, as in db.example.com:5432", place)
	}
	if err != nil {
		return g, err
	}
	g.Scope, err = WildcardPort("https", place)
	return g, err
}

// withBytes is list as a deny list means it that takes a host as a whole: bytes go
// as well, for they can be anything.
func withBytes(list []Grant) []Grant {
	for i := range list {
		list[i].Modes |= TCP
	}
	return list
}

// cutMethods splits "get,head@host", "get" and "host".
func cutMethods(scope string) (methods ModeSet, host string, err error) {
	words, host, both := strings.Cut(scope, "@")
	for w := range strings.SplitSeq(words, ",") {
		i := slices.Index(methodWords[:], w)
		if i < 0 {
			if method, host, _ := strings.Cut(w, ":"); !both && slices.Contains(methodWords[:], method) &&
				strings.Trim(host, "0123456789") != "" {
				return 0, "", fmt.Errorf("%q is a method, behind which the host stands after @: write %s", method,
					strings.TrimSuffix(method+"@"+host, "@*"))
			}
			if !both && methods == 0 {
				return 0xff, scope, nil
			}
			return 0, "", fmt.Errorf("%q is no method: write %s, then @ and the host", w, strings.Join(methodWords[:], ", "))
		}
		methods |= 1 << i
	}
	if !both {
		host = "*"
	}
	return methods, host, nil
}

// parseReadWrite reads the scope of network:read and network:write: a host, or
// a URL, which says the scheme as well. Without one a grant means https, and a
// deny both.
func parseReadWrite(methods ModeSet, scope string, k kind) ([]Grant, error) {
	over := schemes[:1]
	if k == deny {
		over = schemes[:]
	}
	scheme, rest, isURL := strings.Cut(scope, "://")
	if isURL {
		host, path, _ := strings.Cut(rest, "/")
		if path != "" && k != request {
			return nil, fmt.Errorf("a network capability ends with host and port: leave out the path %q", "/"+path)
		}
		over, scope = []string{scheme}, host
	}
	list, err := netGrants(over, methods, scope)
	if k == deny && !isURL {
		list = withBytes(list)
	}
	return list, err
}

// netGrants makes the grants of methods on host over each scheme; they differ
// in scope where the port is the scheme's own.
func netGrants(over []string, methods ModeSet, host string) ([]Grant, error) {
	var out []Grant
	for _, scheme := range over {
		s := slices.Index(schemes[:], scheme)
		if s < 0 {
			return nil, fmt.Errorf("the scheme %q is neither https nor http", scheme)
		}
		scope := "*"
		if host != "*" {
			var err error
			if scope, err = WildcardPort(scheme, host); err != nil {
				return nil, err
			}
		}
		modes := methods << (numMethods * s)
		if n := len(out); n > 0 && out[n-1].Scope == scope {
			out[n-1].Modes |= modes
			continue
		}
		out = append(out, Grant{Family: Net, Modes: modes, Scope: scope})
	}
	return out, nil
}
