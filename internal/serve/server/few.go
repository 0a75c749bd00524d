package server

import (
	"log/slog"
	"strings"
	"sync"
	"time"

	shown "runloop.dev/rlp/internal/base/printable"
)

// fewLines is where what serves HTTP tells of connections that came to nothing.
// Whoever makes such without end fills no log with them: so many are told in a
// minute, and then their number.
type fewLines struct {
	log  *slog.Logger
	now  func() time.Time
	most int

	mu      sync.Mutex
	since   time.Time
	n, more int
}

// mostTroubles is how many lines there are in a minute.
const mostTroubles = 60

// Write implements [io.Writer]: a line.
func (f *fewLines) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if d := now.Sub(f.since); d < 0 || d >= time.Minute {
		if f.more > 0 {
			f.log.Warn("connections.untold", "lines", f.more)
		}
		f.since, f.n, f.more = now, 0, 0
	}
	if f.n == f.most {
		f.more++
		return len(line), nil
	}
	f.n++
	f.log.Warn(shown.Line(strings.TrimSuffix(string(line), "\n")))
	return len(line), nil
}
