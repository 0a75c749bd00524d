package mcpserver

import (
	"net/http"
	"time"
)

// A patient answer gives its reader so long for each piece: one who takes nothing
// is given up, and holds neither a call nor what it was to be told.
type patient struct {
	http.ResponseWriter
	c        *http.ResponseController
	patience time.Duration
}

func patiently(w http.ResponseWriter, patience time.Duration) *patient {
	return &patient{w, http.NewResponseController(w), patience}
}

// Write implements [http.ResponseWriter]. Between two pieces there is no hurry.
func (p *patient) Write(piece []byte) (int, error) {
	defer p.hurry()()
	return p.ResponseWriter.Write(piece)
}

// FlushError is for [http.ResponseController].
func (p *patient) FlushError() error {
	defer p.hurry()()
	return p.c.Flush()
}

// Flush implements [http.Flusher].
func (p *patient) Flush() { _ = p.FlushError() } // the next write fails

// Unwrap is for [http.ResponseController].
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// hurry ends what is being written when the patience does, until rest is called.
func (p *patient) hurry() (rest func()) {
	over := make(chan struct{})
	late := time.AfterFunc(p.patience, func() {
		defer close(over)
		_ = p.c.SetWriteDeadline(time.Unix(1, 0)) // long ago; not each writer has one
	})
	return func() {
		if !late.Stop() {
			<-over
			_ = p.c.SetWriteDeadline(time.Time{})
		}
	}
}
