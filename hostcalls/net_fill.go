package hostcalls

import (
	"net/http"
	"net/url"
	"strings"

	"runloop.dev/rlp/internal/effect/web"
)

// userAgent is what a request calls itself when the guest gives it no name.
const userAgent = "rlp"

// fill makes the headers and the body that are sent: those of the request, with
// the values of secrets in the place of handles.
func (x *exchange) fill(r *httpReq) error {
	if len(r.header) == 0 && r.method != http.MethodHead { // nobody writes to what is sent
		if x.h.net.plain == nil {
			x.h.net.plain = http.Header{"User-Agent": {userAgent}, acceptEncoding: {"gzip"}}
		}
		x.header = x.h.net.plain
		return nil
	}
	dst := Destination{Host: x.Host}
	x.header = make(http.Header, len(r.header)+2)
	for _, f := range r.header {
		values := make([]string, len(f.values))
		for i, v := range f.values {
			full, err := x.h.cfg.fill(x.op, v, dst)
			switch {
			case err != nil:
				return err
			case !web.IsHeaderValue(full):
				return &Fail{Errno: Inval, Hint: "the secret for the header " + f.name +
					" has a line break or a control character in it"}
			case full != v:
				x.filled, x.longer = append(x.filled, f.name), x.longer+len(full)-len(v)
			}
			values[i] = full
		}
		x.header[f.name] = values
	}
	if _, given := x.header["User-Agent"]; !given {
		x.header["User-Agent"] = []string{userAgent}
	}
	// A part of a compressed answer cannot be decompressed, and HEAD has none. A
	// request that says nothing takes everything.
	x.header[acceptEncoding] = []string{"gzip"}
	if _, part := x.header["Range"]; part || r.method == http.MethodHead {
		x.header[acceptEncoding] = []string{"identity"}
	}
	if r.isForm() {
		return x.fillForm(dst)
	}
	return nil
}

// fillForm puts secrets into the values of a form. What holds no handle is sent
// as it was written.
func (x *exchange) fillForm(dst Destination) error {
	if x.h.cfg.Secrets == nil || len(x.h.cfg.Secrets.Named(x.body)) == 0 {
		return nil
	}
	pairs := strings.Split(x.body, "&")
	for i, pair := range pairs {
		key, raw, _ := strings.Cut(pair, "=")
		value, _ := url.QueryUnescape(raw) // "" where it is none: sent as the guest wrote it, and no value goes there
		full, err := x.h.cfg.fill(x.op, value, dst)
		if err != nil {
			return err
		}
		if full != value {
			pairs[i], x.secret = key+"="+url.QueryEscape(full), true
		}
	}
	body := strings.Join(pairs, "&")
	x.body, x.extra = body, len(body)-len(x.body)
	return nil
}
