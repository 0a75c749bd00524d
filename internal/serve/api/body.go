package api

import (
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"runloop.dev/rlp/internal/serve/service"
)

// read reads the body of a request, which is JSON of a bounded size that comes in
// bounded time. What it holds of the bounds on bodies is given back by done.
func (i *intake) read(w http.ResponseWriter, r *http.Request, most int64) (body []byte, done func(), err error) {
	if err := isJSON(r); err != nil {
		return nil, nil, err
	}
	if r.ContentLength > most {
		return nil, nil, &http.MaxBytesError{Limit: most}
	}
	room := r.ContentLength
	if room < 0 || room > smallBody {
		room = smallBody // what is beyond it needs a place of its own
	}
	done, err = i.bodies.Take(callerKey(service.CallerOf(r.Context())), room)
	if err != nil {
		return nil, nil, errBodies
	}
	in := http.MaxBytesReader(w, r.Body, most)
	body, err = io.ReadAll(io.LimitReader(in, smallBody+1))
	if err == nil && len(body) > smallBody {
		select {
		case i.large <- struct{}{}:
			leave := done
			done = func() { <-i.large; leave() }
		default:
			done()
			return nil, nil, errLarge
		}
		var rest []byte
		rest, err = io.ReadAll(in)
		body = append(body, rest...)
	}
	if err != nil {
		done()
		return nil, nil, unread(err)
	}
	return body, done, nil
}

// A timely body has its time to arrive, whoever reads it. When it is there, the
// time is no more: or the server would take its passing for a client that is gone.
type timely struct {
	io.ReadCloser
	c     *http.ResponseController
	ended bool
}

// timely gives the body of a request its time.
func (i *intake) timely(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	t := &timely{ReadCloser: r.Body, c: http.NewResponseController(w)}
	if t.c.SetReadDeadline(i.opt.Now().Add(i.opt.Patience)) == nil { // not each reader has one
		r.Body = t
	}
}

func (t *timely) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		t.ended = true
		_ = t.c.SetReadDeadline(time.Time{}) // it had one
	}
	return n, err
}

// Bounds of the rest of a body that nobody wanted.
const (
	mostRest = 256 << 20
	restTime = 5 * time.Second
)

// readOut reads the rest of a body that was answered before its end, and drops it:
// a connection that is closed while its client still sends takes the answer with
// it. A client that waits to be told to go on has sent nothing.
func (i *intake) readOut(r *http.Request) {
	t, ok := r.Body.(*timely)
	if !ok || t.ended || r.ProtoMajor != 1 || r.Header.Get("Expect") != "" {
		return
	}
	_ = t.c.Flush() // the next write fails
	if t.c.SetReadDeadline(i.opt.Now().Add(restTime)) == nil {
		_, _ = io.CopyN(io.Discard, t.ReadCloser, mostRest)
	}
}

// unread is why a body could not be read.
func unread(err error) error {
	var large *http.MaxBytesError
	var late net.Error
	switch {
	case errors.As(err, &large):
		return err
	case errors.As(err, &late) && late.Timeout():
		return &failure{
			Status: http.StatusRequestTimeout, Code: "timeout",
			Text: "the body did not arrive in time; send it again", closes: true,
		}
	}
	return &failure{
		Status: http.StatusBadRequest, Code: "invalid_request",
		Text:   "the body ended before all of it was there",
		Fields: []fieldError{{"", "the body ended before all of it was there"}}, closes: true,
	}
}

// isJSON refuses what says that it is something else. What a program sends is read
// as JSON whatever it calls it, as `curl -d` calls everything a form; a page of
// another site could send that too, so browsers say what they send.
func isJSON(r *http.Request) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if (err != nil || kind != "application/json") && (ofBrowser(r) || strings.HasPrefix(kind, "multipart/")) {
		return &failure{
			Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type",
			Text: "send JSON, with the header Content-Type: application/json", closes: true,
		}
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return &failure{
			Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type",
			Text: "send the body as it is, without a Content-Encoding", closes: true,
		}
	}
	return nil
}

// ofBrowser reports whether a request has what browsers put into each that a page
// makes.
func ofBrowser(r *http.Request) bool {
	for name := range r.Header {
		if name == "Origin" || strings.HasPrefix(name, "Sec-Fetch-") {
			return true
		}
	}
	return false
}
