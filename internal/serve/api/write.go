package api

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// zipFrom is the size from which an answer is worth compressing.
const zipFrom = 8 << 10

// json answers with a document.
func (a *responder) json(w http.ResponseWriter, r *http.Request, status int, v any) {
	doc, err := encoded(v)
	if err != nil { // no value here has a part without a form
		status, doc = http.StatusInternalServerError,
			[]byte(`{"error":"internal","message":"the answer has no form in JSON"}`+"\n")
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	a.write(w, r, status, doc)
}

func encoder(to io.Writer) *json.Encoder {
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	return enc
}

// encoded is a document as it is sent.
func encoded(v any) ([]byte, error) {
	var buf bytes.Buffer
	err := encoder(&buf).Encode(v)
	return buf.Bytes(), err
}

// write sends an answer whole, compressed where that is asked for.
func (a *responder) write(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	timed(w, a.opt.Now().Add(a.opt.Patience))
	if len(body) >= zipFrom && takesGzip(r) && r.Method != http.MethodHead {
		h.Set("Content-Encoding", "gzip")
		body = a.zipped(func(to io.Writer) { _, _ = to.Write(body) }) // into memory
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // who asked is gone
}

// zipped is a body compressed, whole: what is not taken of it is all that it holds.
func (a *responder) zipped(body func(io.Writer)) []byte {
	var out bytes.Buffer
	z, _ := a.zips.Get().(*gzip.Writer)
	z.Reset(&out)
	body(z)
	_ = z.Close()
	a.zips.Put(z)
	return out.Bytes()
}

// takesGzip reports whether gzip is accepted, and not by a q of nothing.
func takesGzip(r *http.Request) bool {
	for _, list := range r.Header["Accept-Encoding"] {
		for _, one := range strings.Split(list, ",") {
			name, q, _ := strings.Cut(strings.TrimSpace(one), ";")
			if strings.TrimSpace(name) == "gzip" {
				q = strings.TrimPrefix(strings.TrimSpace(q), "q=")
				return q == "" || strings.Trim(q, "0.") != ""
			}
		}
	}
	return false
}
