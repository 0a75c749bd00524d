package hostcalls

import (
	"net/url"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
)

// A methodClaim is all of a request by which it can ask a server to take it for
// one of another method than its own.
type methodClaim struct {
	place
	method  string
	headers []string
	body    string
	form    bool
	tool    bool // whose method is the bundle's word
}

// resolveHTTP refuses a request by which the server is asked for another method
// than the one that is judged.
func resolveHTTP(h *Host, r *httpReq) (caps.Code, string) {
	return caps.MethodNotPermitted, h.disguised(r.claim())
}

func (r *httpReq) claim() *methodClaim {
	c := &methodClaim{place: r.place, method: r.method, body: r.body, tool: r.op != nil}
	for _, f := range r.header {
		c.headers = append(c.headers, f.name)
		c.form = c.form || f.name == contentType && isForm(f.values)
	}
	return c
}

// disguised says how c asks for another method, where it matters: methods are
// limited, a person is asked by method, or a bundle wrote the method. "" is not,
// or where every method is granted anyway.
func (h *Host) disguised(c *methodClaim) string {
	by := c.other()
	switch {
	case by == "":
		return ""
	case c.tool:
		return by + ", and the method of an attached tool is the one that its bundle says"
	case h.cfg.ConfirmExternal:
		return by + ", which whoever confirms the request is not asked about; send it by the method that is meant"
	case h.methodsMatter(c.scheme, c.host):
		return by + ", which the policy's methods are not asked about; send it by the method that is meant"
	}
	return ""
}

// methodsMatter reports whether the run may send some requests over scheme to
// host, and others not or only so often.
func (h *Host) methodsMatter(scheme, host string) bool {
	set := h.cfg.Gate.Set()
	all, err := caps.NetModes(scheme)
	if err != nil {
		return true
	}
	for mode := caps.Mode(0); all>>mode != 0; mode++ {
		if all.Has(mode) && !set.Check(caps.Request{Family: caps.Net, Mode: mode, Name: host}).Allow {
			return true
		}
	}
	return slices.ContainsFunc(set.Leases(), func(l caps.Lease) bool {
		return l.Grant.Family == caps.Net && l.Grant.Modes&all != all && l.Grant.Modes&all != 0
	})
}

// other says what of c names another method; "" nothing.
func (c *methodClaim) other() string {
	for _, name := range c.headers {
		if isMethodHeader(name) {
			return "the header " + name + " asks the server for another method"
		}
	}
	if c.body != "" && bodiless(c.method) {
		return "a " + c.method + " with a body is taken for another request by some servers"
	}
	if key := methodField(c.url.RawQuery); key != "" {
		return "the parameter " + printable(key) + " of the query asks the server for another method"
	}
	if c.form {
		if key := methodField(c.body); key != "" {
			return "the field " + printable(key) + " of the form asks the server for another method"
		}
	}
	return ""
}

// bodiless reports whether a request by method has no body as servers expect it.
func bodiless(method string) bool {
	return method == "GET" || method == "HEAD" || method == "OPTIONS"
}

// isMethodHeader reports whether servers know a header as one that overrides the
// method, such as X-HTTP-Method-Override. Gateways make - and _ one.
func isMethodHeader(name string) bool {
	switch letters(name) {
	case "method", "xmethod", "httpmethod", "xhttpmethod", "xoriginalmethod", "xforwardedmethod", "xrewritemethod", "requestmethod", "xrequestmethod", "xhttpverb":
		return true
	}
	return strings.Contains(letters(name), "methodoverride") || strings.Contains(letters(name), "overridemethod")
}

// methodField is the first field of a query or form by which frameworks override
// the method, "" if there is none: _method in any of the spellings that are one
// to them, and method itself where its value is one.
func methodField(fields string) string {
	for len(fields) > 0 {
		field := fields
		if i := strings.IndexAny(fields, "&;"); i >= 0 {
			field, fields = fields[:i], fields[i+1:]
		} else {
			fields = ""
		}
		key, value, _ := strings.Cut(field, "=")
		if key = unescaped(key); !isMethodHeader(key) {
			continue
		}
		ordinary := strings.EqualFold(key, "method") || strings.EqualFold(key, "httpMethod")
		if !ordinary || isMethod(strings.ToUpper(unescaped(value))) {
			return key
		}
	}
	return ""
}

// isMethod reports whether a value is one of HTTP's methods, WebDAV's or those of
// caches: an ordinary parameter with the name method has other values.
func isMethod(value string) bool {
	switch value {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "MERGE", "PURGE", "BAN", "LINK", "UNLINK",
		"PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "REPORT", "QUERY", "SEARCH":
		return true
	}
	return false
}

// unescaped is a part of a query as a server reads it; one that is malformed is
// read as it stands.
func unescaped(s string) string {
	if out, err := url.QueryUnescape(s); err == nil {
		return out
	}
	return s
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
