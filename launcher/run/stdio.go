package run

import (
	"bytes"
	"io"
	"sync"
)

// capture keeps the first max bytes of a guest's stream and counts the rest,
// so that a guest can neither fill the host's memory nor block on its output.
// A guest that was left behind may still write; once flushed, nothing is taken.
type capture struct {
	passing sync.Mutex // held while live takes something, which may be for ever
	live    io.Writer  // receives what is kept as it comes; nil when held
	whole   bool       // live receives what is not kept as well

	mu        sync.Mutex // held for a moment
	flushed   bool
	max       int64
	kept      bytes.Buffer
	total     int64
	truncated bool
	hold      func(n int64) error             // counts what is kept as the run's memory; nil: nobody does
	scrub     func(p []byte, end bool) []byte // takes values of secrets out; nil: there are none
}

// Write keeps what there is room for and always takes everything, unless the run
// is over for having no memory for it.
func (c *capture) Write(p []byte) (int, error) {
	c.passing.Lock()
	defer c.passing.Unlock()
	kept, err := c.take(p)
	c.pass(kept)
	return len(p), err
}

// take keeps what there is room for, and returns that.
func (c *capture) take(p []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flushed {
		return nil, nil
	}
	c.total += int64(len(p))
	if c.scrub != nil {
		p = c.scrub(p, false)
	}
	if n := min(int64(len(p)), c.max-int64(c.kept.Len())); n > 0 && c.hold != nil {
		if err := c.hold(n); err != nil {
			return nil, err
		}
	}
	return c.keep(p), nil
}

// flush passes on what was held back; nothing is taken after it. A guest that
// was left behind because nobody reads what it writes is not waited for.
func (c *capture) flush() {
	idle := c.passing.TryLock()
	if idle {
		defer c.passing.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if idle && !c.flushed && c.scrub != nil {
		c.pass(c.keep(c.scrub(nil, true)))
	}
	c.flushed = true
}

// bound makes most the bytes that are kept.
func (c *capture) bound(most int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.max = most
}

func (c *capture) keep(p []byte) []byte {
	all := p
	if room := c.max - int64(c.kept.Len()); int64(len(p)) > room {
		p, c.truncated = p[:max(room, 0)], true
	}
	c.kept.Write(p)
	if c.whole {
		return all
	}
	return p
}

func (c *capture) pass(p []byte) {
	if c.live != nil && len(p) > 0 {
		if _, err := c.live.Write(p); err != nil {
			c.live = nil // the reader has gone; the run goes on
		}
	}
}
