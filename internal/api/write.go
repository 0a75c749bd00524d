package api

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// zipFrom is the size from which an answer is worth compressing.
const zipFrom = 8 << 10

// json answers with a document.
func (s *server) json(w http.ResponseWriter, r *http.Request, status int, v any) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // no value here has a part without a form
		status = http.StatusInternalServerError
		buf.Reset()
		buf.WriteString(`{"error":"internal","message":"the answer has no form in JSON"}` + "\n")
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	s.write(w, r, status, buf.Bytes())
}

// write sends an answer whole, compressed where that is asked for.
func (s *server) write(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	_ = http.NewResponseController(w).SetWriteDeadline(s.Now().Add(s.Patience)) // not each writer has one
	if len(body) >= zipFrom && takesGzip(r) && r.Method != http.MethodHead {
		h.Set("Content-Encoding", "gzip")
		body = s.zipped(body)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // who asked is gone
}

// zipped is a body compressed, whole: what is not taken of it is all that it holds.
func (s *server) zipped(body []byte) []byte {
	var out bytes.Buffer
	z, _ := s.zips.Get().(*gzip.Writer)
	z.Reset(&out)
	_, _ = z.Write(body) // into memory
	_ = z.Close()
	s.zips.Put(z)
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
