package api

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"runloop.dev/rlp/internal/service"
)

// partOfCallers is how much of all streams one caller may have open: one in so
// many.
const partOfCallers = 8

// shares are places that callers share.
type shares struct {
	most, each int

	mu  sync.Mutex
	all int
	by  map[string]int
}

func sharesOf(most int) *shares {
	return &shares{most: most, each: max(1, most/partOfCallers), by: map[string]int{}}
}

// take takes a place for c, until leave is called.
func (s *shares) take(c *service.Caller) (leave func(), err error) {
	key := callerKey(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.by[key] >= s.each:
		return nil, tooMany("%d streams of this caller are open, and no more of one are at a time; end one first", s.each)
	case s.all >= s.most:
		return nil, tooMany("%d streams are open, and no more are at a time; ask again later", s.most)
	}
	s.all++
	s.by[key]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.by[key]--; s.by[key] == 0 {
			delete(s.by, key)
		}
	}, nil
}

func tooMany(format string, n int) error {
	return &failure{Status: http.StatusTooManyRequests, Code: "busy", Text: fmt.Sprintf(format, n), after: 10 * time.Second}
}

// callerKey tells callers apart.
func callerKey(c *service.Caller) string {
	if c == nil {
		return ""
	}
	return c.Key()
}
