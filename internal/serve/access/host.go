package access

import (
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// hosts are the names by which the service may be called. A page of another
// site that has its name lead here ("DNS rebinding") says its own name.
type hosts struct {
	names map[string]bool // "agents.example:8443", or without a port
	port  uint16          // that which is listened on, where a connection does not say
	proxy bool            // a proxy in front speaks TLS
}

// A place is a host and a port, as a browser would compare them.
type place struct {
	host string // lower case; an address in its one form
	addr netip.Addr
	port uint16
}

// parsePlace reads "host", "host:port" or "[address]:port". A zone and an IPv4
// address in the clothes of IPv6 are refused: no browser needs them.
func parsePlace(s string, standard uint16) (p place, ok bool) {
	host, port := s, ""
	if rest, found := strings.CutPrefix(s, "["); found {
		host, port, found = strings.Cut(rest, "]")
		a, _ := netip.ParseAddr(host) // what is none is not of IPv6 either
		if !found || !a.Is6() || a.Is4In6() || a.Zone() != "" || port != "" && port[0] != ':' {
			return place{}, false
		}
		p.addr, p.host = a, a.String()
		port, found = strings.CutPrefix(port, ":")
		if found && port == "" {
			return place{}, false
		}
	} else {
		found := false
		if host, port, found = strings.Cut(s, ":"); found && port == "" || !isHostName(host) {
			return place{}, false
		}
		p.host = strings.ToLower(host)
		p.addr, _ = netip.ParseAddr(p.host) // none of a name
	}
	p.port = standard
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || port[0] == '0' {
			return place{}, false
		}
		p.port = uint16(n)
	}
	return p, true
}

// isHostName reports whether s has nothing but labels. The last one is no
// number, unless all of it is an IPv4 address: 127.1 and 2130706433 are not.
func isHostName(s string) bool {
	if len(s) > 253 {
		return false
	}
	label := ""
	for label = range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || strings.Trim(strings.ToLower(label),
			"abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	if label[0] >= '0' && label[0] <= '9' {
		a, _ := netip.ParseAddr(s)
		return a.Is4()
	}
	return true
}

// standardPort is the port of a URL that names none.
func (h *hosts) standardPort(tls bool) uint16 {
	if tls || h.proxy {
		return 443
	}
	return 80
}

// has reports whether the service may be called by what a Host header says.
// here is the address and port at which the request arrived, if it is known.
func (h *hosts) has(host string, tls bool, here netip.AddrPort) bool {
	p, ok := parsePlace(host, h.standardPort(tls))
	if !ok {
		return false
	}
	port := h.port
	if here.IsValid() {
		port = here.Port()
	}
	if p.port == port && (p.host == "localhost" || p.addr.IsLoopback() || p.addr.IsValid() && p.addr == here.Addr()) {
		return true
	}
	if h.names[p.host+":"+strconv.Itoa(int(p.port))] {
		return true
	}
	return h.names[p.host] && (p.port == port || p.port == h.standardPort(tls))
}

// sameOrigin reports whether an Origin header names the very place which the
// Host header does, by the scheme that is spoken.
func (h *hosts) sameOrigin(origin, host string, tls bool) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme+"://"+u.Host != origin {
		return false
	}
	standard := uint16(80)
	switch u.Scheme {
	case "https":
		if standard = 443; !tls && !h.proxy {
			return false
		}
	case "http":
		if tls {
			return false
		}
	default:
		return false
	}
	from, _ := parsePlace(u.Host, standard)
	to, ok := parsePlace(host, standard)
	return ok && from == to
}

// guard refuses requests that another site made a browser send, before anybody
// asks whose they are. nil means that there is nothing against it.
func (a *Access) guard(r *http.Request) *Denied {
	p := peerOf(r.Context())
	isLocal := p != nil && p.local // no browser connects to a Unix socket
	here := netip.AddrPort{}
	if p != nil {
		here = addrPort(p.conn.LocalAddr())
	}
	second := r.Header["Host"] // what HTTP/2 may say beside :authority
	if len(second) > 1 || len(second) == 1 && second[0] != r.Host {
		return denied(http.StatusBadRequest, "bad_host", "the request names two hosts")
	}
	if !isLocal && !a.hosts.has(r.Host, r.TLS != nil, here) {
		return denied(http.StatusMisdirectedRequest, "bad_host",
			"the service is not called by this name; use its address and port, or add the name to serve.hosts in config.toml")
	}
	if r.Method == http.MethodConnect || r.Method == http.MethodTrace {
		return denied(http.StatusMethodNotAllowed, "bad_method", "the service knows no "+r.Method)
	}
	if a.isCross(r) || a.csrf.Check(r) != nil {
		return denied(http.StatusForbidden, "cross_origin",
			"a page of another site may ask nothing of the service; open its own console instead")
	}
	if host, _, _ := strings.Cut(r.Host, ":"); !isLocal && r.TLS == nil && !a.o.BehindProxy &&
		strings.EqualFold(host, "localhost") && isBrowser(r) {
		d := denied(http.StatusForbidden, "use_address",
			"localhost is two addresses, and another user of this machine may have the other one; open 127.0.0.1 with the "+
				"same port")
		if here.IsValid() && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
			d.location = "http://" + here.String() + r.URL.RequestURI()
		}
		return d
	}
	return nil
}

// isBrowser reports whether a browser sent r.
func isBrowser(r *http.Request) bool {
	return len(r.Header["Sec-Fetch-Site"]) > 0 || len(r.Header["Origin"]) > 0
}

// isCross reports whether a page of somewhere else sent r. A browser says so of
// every method; what says nothing is no browser.
func (a *Access) isCross(r *http.Request) bool {
	for _, origin := range r.Header["Origin"] {
		if !a.hosts.sameOrigin(origin, r.Host, r.TLS != nil) {
			return true
		}
	}
	if len(r.Header["Origin"]) > 1 || len(r.Header["Sec-Fetch-Site"]) > 1 {
		return true
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	// "same-site" is another port of this host. A link may lead here from
	// anywhere: to a page of its own, and to nothing that acts.
	isLink := (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Upgrade") == "" &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return !isLink
}
