package lend

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
)

// A Room bounds what the bodies of requests under way hold together, of which a
// program can begin as many as it likes. The zero Room is empty.
type Room struct{ used atomic.Int64 }

var (
	// ErrLong says that one body is longer than it may be.
	ErrLong = errors.New("the body is too long")
	// ErrFull says that there is no room for it beside the others.
	ErrFull = errors.New("the requests under way hold all the memory that there is for bodies")
)

// Read reads a body of at most so many bytes, while all of r's together are no more
// than all. What it took is given back by free, which is called in any case.
func (r *Room) Read(from io.Reader, most, all int64) (text string, free func(), err error) {
	var b strings.Builder
	took := int64(0)
	free = func() {
		r.used.Add(-took)
		took = 0
	}
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		took += int64(n)
		switch used := r.used.Add(int64(n)); {
		case took > most:
			return "", free, ErrLong
		case used > all:
			return "", free, ErrFull
		}
		b.Write(piece[:n])
		if err == io.EOF {
			return b.String(), free, nil
		}
		if err != nil {
			return "", free, err
		}
	}
}
