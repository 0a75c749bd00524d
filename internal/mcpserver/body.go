package mcpserver

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

// Bounds of what is held of messages that have not come whole: who sends a long
// one slowly holds a place, and there are few.
const (
	smallMessage = 1 << 20
	largeAtATime = 2
)

// errManyLarge says that as many long messages come as may.
var errManyLarge = errors.New("too many long messages come at a time; send this one again in a moment")

// take reads the message of a request, so that nothing is made for it before it
// is there.
func (s *Server) take(w http.ResponseWriter, r *http.Request) error {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	if r.ContentLength > mostMessage {
		return &http.MaxBytesError{Limit: mostMessage}
	}
	in := http.MaxBytesReader(w, r.Body, mostMessage)
	message, err := io.ReadAll(io.LimitReader(in, smallMessage+1))
	if err == nil && len(message) > smallMessage {
		select {
		case s.large <- struct{}{}:
		default:
			return errManyLarge
		}
		defer func() { <-s.large }()
		var rest []byte
		rest, err = io.ReadAll(in)
		message = append(message, rest...)
	}
	r.Body = io.NopCloser(bytes.NewReader(message))
	return err
}

// untaken answers a request whose message could not be read.
func untaken(w http.ResponseWriter, err error) {
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		http.Error(w, "the message is too long; one has at most 8 MiB", http.StatusRequestEntityTooLarge)
	case errors.Is(err, errManyLarge):
		w.Header().Set("Retry-After", "1")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		http.Error(w, "the message did not come whole; send it again", http.StatusBadRequest)
	}
}
