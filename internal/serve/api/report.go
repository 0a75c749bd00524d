package api

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"runloop.dev/rlp/launcher"
)

// pieceOfText is how much of what an agent printed is encoded at a time: in JSON it
// is up to six times as long, and in nobody's share then ([freePiece]).
const pieceOfText = freePiece / 6

// An out is where one answer goes.
type out struct {
	*responder
	w http.ResponseWriter
	r *http.Request
}

// report answers with a document that has a report in it. What the agent printed is
// encoded as it is sent: of an answer that nobody reads there is the report in
// memory, which is counted, and not its encoding, which may be many times as large.
func (o *out) report(rep *launcher.Report, document func(*launcher.Report) any) {
	w, r := o.w, o.r
	if rep == nil || len(rep.Stdout)+len(rep.Stderr) <= freePiece {
		o.json(w, r, http.StatusOK, document(rep))
		return
	}
	rest := *rep
	rest.Stdout, rest.Stderr = newID(), newID() // no result can have them
	doc, err := encoded(document(&rest))
	before, behind, there := bytes.Cut(doc, []byte(`"`+rest.Stdout+`"`))
	between, after, also := bytes.Cut(behind, []byte(`"`+rest.Stderr+`"`))
	if err != nil || !there || !also {
		o.json(w, r, http.StatusOK, document(rep))
		return
	}
	o.send(func(to io.Writer) {
		for _, p := range []struct {
			raw  []byte
			text string
		}{{before, rep.Stdout}, {between, rep.Stderr}} {
			if _, err := to.Write(p.raw); err != nil {
				return
			}
			if writeText(to, p.text) != nil {
				return
			}
		}
		_, _ = to.Write(after) // who asked is gone
	})
}

// send sends a document piece by piece, or whole where it is to be compressed.
func (o *out) send(pieces func(io.Writer)) {
	w, r := o.w, o.r
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Add("Vary", "Accept-Encoding")
	timed(w, o.opt.Now().Add(o.opt.Patience))
	switch {
	case r.Method == http.MethodHead:
		w.WriteHeader(http.StatusOK)
	case takesGzip(r):
		body := o.zipped(pieces)
		h.Set("Content-Encoding", "gzip")
		h.Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body) // who asked is gone
	default:
		pieces(w)
	}
}

// timed gives an answer its time, all of it.
func timed(w http.ResponseWriter, until time.Time) {
	_ = http.NewResponseController(w).SetWriteDeadline(until) // not each writer has one
}

// writeText writes a string of JSON piece by piece.
func writeText(to io.Writer, text string) error {
	_, err := io.WriteString(to, `"`)
	var piece bytes.Buffer
	enc := encoder(&piece)
	for err == nil && text != "" {
		n := pieceEnd(text)
		piece.Reset()
		if err = enc.Encode(text[:n]); err == nil { // quotes around it, and a line end
			_, err = to.Write(piece.Bytes()[1 : piece.Len()-2])
		}
		text = text[n:]
	}
	if err == nil {
		_, err = io.WriteString(to, `"`)
	}
	return err
}

// pieceEnd is where the first piece of a text ends: within no letter.
func pieceEnd(text string) int {
	if len(text) <= pieceOfText {
		return len(text)
	}
	for n := pieceOfText; n > pieceOfText-utf8.UTFMax; n-- {
		if utf8.RuneStart(text[n]) {
			return n
		}
	}
	return pieceOfText // no text
}
