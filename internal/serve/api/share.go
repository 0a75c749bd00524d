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
)

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
