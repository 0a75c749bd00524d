package api

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"runloop.dev/rlp/internal/serve/service"
)

const (
	// partOfStreams is how much of all streams one caller may have open: one in so
	// many.
	partOfStreams = 8
	// mostHeld bounds the bytes that are in memory for bodies which have not come
	// whole, but for large ones, and those for answers which nobody has taken.
	mostHeld = 128 << 20
	// partOfHeld is how much of them one caller may have: one in so many.
	partOfHeld = 4
	// freePiece is how long a piece of an answer is at most that is in nobody's
	// share: as long as the buffer of its connection.
	freePiece = 4 << 10
	// mostPage is about how many bytes of records or runs a page has, and what is
	// beyond them is on the next one; heldByPage is what it takes until it is sent.
	mostPage   = 1 << 20
	heldByPage = 2 * mostPage
	// sizeOfState is about how long the state of a run is, without its message.
	sizeOfState = 1 << 10
)

// openPage takes what a page of records or runs holds while it is made and sent,
// until leave is called.
func openPage(s *server, r *http.Request, c *service.Caller) (leave func(), err error) {
	if leave, err = s.answers.Take(callerKey(c), heldByPage); err != nil {
		return nil, &failure{
			Status: http.StatusTooManyRequests, Code: "busy", after: time.Second,
			Text: "answers of this caller that are being made or not read hold as much as they may; read them, or close their " +
				"connections, and ask again",
		}
	}
	noteOf(r).held = heldByPage
	return leave, nil
}

// openStream takes a place among the streams for c, until leave is called.
func (s *server) openStream(c *service.Caller) (leave func(), err error) {
	leave, err = s.streams.Take(callerKey(c), 1)
	switch {
	case errors.Is(err, service.ErrShareUsed):
		return nil, tooMany("%d streams of this caller are open, and no more of one are at a time; end one first",
			s.streams.Each())
	case err != nil:
		return nil, tooMany("%d streams are open, and no more are at a time; ask again later", int64(s.Streams))
	}
	return leave, nil
}

func tooMany(format string, n int64) error {
	return &failure{
		Status: http.StatusTooManyRequests, Code: "busy", Text: fmt.Sprintf(format, n),
		after: 10 * time.Second,
	}
}

// callerKey tells callers apart.
func callerKey(c *service.Caller) string {
	if c == nil {
		return ""
	}
	return c.Key()
}
