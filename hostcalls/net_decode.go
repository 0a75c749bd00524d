package hostcalls

import (
	"errors"
	"fmt"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/effect/web"
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
	if r.URL == nil {
		return r, errors.New("url: missing")
	}
	mode, ok := caps.NetMode(r.Scheme, r.method)
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
			r.Place, err = web.Parse(raw)
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
		if err := web.CheckHeader(name, values); err != nil {
			return err
		}
		if web.Dashed(name) != acceptEncoding { // the host's own
			r.header = append(r.header, httpField{name, values})
		}
		return nil
	})
}

// An httpReq is one request as the gate judges it and the component sends it.
type httpReq struct {
	web.Place
	method  string
	mode    caps.Mode
	header  []httpField
	timeout time.Duration
	body    string // a view, valid for the call
	text    string // the request as it came: a view as well

	op *gate.Op // of the attached tool that asks; nil: net_http
}

// An httpField is one header of a request, by its canonical name.
type httpField struct {
	name   string
	values []string
}

// size is what the request counts for net_bytes: all that the guest chose.
func (r *httpReq) size() int64 {
	n := len(r.method) + r.Place.Size() + len(r.body)
	for _, f := range r.header {
		for _, v := range f.values {
			n += len(f.name) + len(v)
		}
	}
	return int64(n)
}

// isForm reports whether the body is a form, whose values may be handles.
func (r *httpReq) isForm() bool {
	for _, f := range r.header {
		if f.name == contentType {
			return len(f.values) == 1 && isForm(f.values)
		}
	}
	return false
}

// isForm reports whether a Content-Type among these is a form's.
func isForm(contentTypes []string) bool {
	return slices.ContainsFunc(contentTypes, func(v string) bool {
		kind, _, _ := strings.Cut(v, ";")
		return strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded")
	})
}

const contentType = "Content-Type"
