package hostcalls

import (
	"errors"
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/strictjson"
)

// maxHeaders bounds the headers of a request; their size is bounded by the
// head's.
const maxHeaders = 100

// acceptEncoding is the host's header: it must see what it takes secrets out of.
const acceptEncoding = "Accept-Encoding"

// decodeHTTP reads the two arguments of net_http. It copies what it keeps, but
// for the body and the text.
func decodeHTTP(in []string) (httpReq, error) {
	r := httpReq{method: "GET", timeout: defaultTimeout, text: in[0], body: in[1]}
	if len(in[0]) > MaxRequestHead {
		return r, &Fail{Errno: TooBig, Hint: "the request, without its body, is at most 64 KiB"}
	}
	if len(in[1]) > MaxRequestBody {
		return r, &Fail{Errno: TooBig, Hint: "the body of a request is at most 64 MiB"}
	}
	if err := readObject(in[0], r.field); err != nil {
		return r, err
	}
	if r.url == nil {
		return r, errors.New("url: missing")
	}
	mode, ok := caps.NetMode(r.scheme, r.method)
	if !ok || strings.EqualFold(r.method, "CONNECT") || strings.EqualFold(r.method, "TRACE") {
		return r, errors.New("method: not one that can be sent; GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS are")
	}
	r.mode = mode
	return r, nil
}

// field reads the value of one key of the request.
func (r *httpReq) field(d *strictjson.Reader, key string) (err error) {
	switch key {
	case "method":
		r.method, err = d.Text()
	case "url":
		var raw string
		if raw, err = d.Text(); err == nil {
			r.place, err = parsePlace(raw)
		}
	case "headers":
		err = r.headers(d)
	case "timeout_ms":
		r.timeout, err = timeout(d)
	default:
		err = unknownKey("method, url, headers and timeout_ms")
	}
	return err
}

func (r *httpReq) headers(d *strictjson.Reader) error {
	return d.Members(func(d *strictjson.Reader, key string) error {
		values, err := d.Texts()
		if err != nil {
			return err
		}
		name := textproto.CanonicalMIMEHeaderKey(strings.Clone(key))
		if slices.ContainsFunc(r.header, func(f httpField) bool { return f.name == name }) {
			return errors.New("given twice; write a list for several values")
		}
		if len(r.header) == maxHeaders {
			return fmt.Errorf("one more than the %d headers that are taken", maxHeaders)
		}
		if err := checkHeader(name, values); err != nil {
			return err
		}
		if dashed(name) != acceptEncoding { // the host's own
			r.header = append(r.header, httpField{name, values})
		}
		return nil
	})
}

// checkHeader refuses what would end one header and begin another, and the
// headers by which a message is framed and routed: they are the host's.
func checkHeader(name string, values []string) error {
	if name == "" || strings.ContainsFunc(name, func(c rune) bool { return !isTokenChar(c) }) {
		return errors.New("a header's name is letters, digits and -")
	}
	switch name = dashed(name); name {
	case "Host", "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Content-Length", "Expect", "Http2-Settings", "Via", "Alt-Svc":
		return errors.New("set by the host alone")
	}
	if name == "Proxy" || strings.HasPrefix(name, "Proxy-") {
		return errors.New("for a proxy, and there is none")
	}
	for _, v := range values {
		if !isHeaderValue(v) {
			return errors.New("a header's value has no line breaks and no control characters")
		}
	}
	return nil
}

// dashed is a header's name as servers read it for which _ is - (CGI and its
// heirs): Content_Length is Content-Length to them.
func dashed(name string) string {
	return textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
}

func isTokenChar(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~",
		c)
}

func isHeaderValue(v string) bool {
	return strings.IndexFunc(v, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) < 0
}
