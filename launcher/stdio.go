package launcher

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

	mu        sync.Mutex // held for a moment
	flushed   bool
	max       int64
	kept      bytes.Buffer
	total     int64
	truncated bool
	scrub     func(p []byte, end bool) []byte // takes values of secrets out; nil: there are none
}

// Write keeps what there is room for and always takes everything.
func (c *capture) Write(p []byte) (int, error) {
	c.passing.Lock()
	defer c.passing.Unlock()
	c.pass(c.take(p))
	return len(p), nil
}

// take keeps what there is room for, and returns that.
func (c *capture) take(p []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flushed {
		return nil
	}
	c.total += int64(len(p))
	if c.scrub != nil {
		p = c.scrub(p, false)
	}
	return c.keep(p)
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

func (c *capture) keep(p []byte) []byte {
	if room := c.max - int64(c.kept.Len()); int64(len(p)) > room {
		p, c.truncated = p[:max(room, 0)], true
	}
	c.kept.Write(p)
	return p
}

func (c *capture) pass(p []byte) {
	if c.live != nil && len(p) > 0 {
		if _, err := c.live.Write(p); err != nil {
			c.live = nil // the reader has gone; the run goes on
		}
	}
}

// guestLines passes a guest's stderr on as it comes, with lines that look like
// rlp's own prefixed, so that a streamed line cannot forge the marker.
type guestLines struct {
	w    io.Writer
	line []byte // the beginning of the current line, while it may still become "RLP_"
	mid  bool   // the current line's beginning has been passed on
	end  bool   // Close ends an unfinished line
}

const forged = "RLP_"

func (g *guestLines) Write(p []byte) (int, error) {
	for _, b := range p {
		if err := g.put(b); err != nil {
			return 0, err
		}
	}
	if err := g.flush(); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (g *guestLines) put(b byte) error {
	g.line = append(g.line, b)
	if !g.mid && len(g.line) <= len(forged) {
		if string(g.line) == forged {
			g.line = append([]byte("guest: "), g.line...)
			g.mid = true
		} else if string(g.line) != forged[:len(g.line)] {
			g.mid = true
		}
	}
	if b == '\n' || b == '\r' {
		_, err := g.w.Write(g.line)
		g.line, g.mid = g.line[:0], false
		return err
	}
	return nil
}

// flush passes on what is decided of an unfinished line.
func (g *guestLines) flush() error {
	if !g.mid || len(g.line) == 0 {
		return nil
	}
	_, err := g.w.Write(g.line)
	g.line = g.line[:0]
	return err
}

// Close passes on the rest of a line that never ended, and ends it when asked:
// what the host says next begins a line of its own.
func (g *guestLines) Close() error {
	if g.end && (g.mid || len(g.line) > 0) {
		g.line = append(g.line, '\n')
	}
	_, err := g.w.Write(g.line)
	g.line, g.mid = nil, false
	return err
}

// GuestLines returns a writer that passes a guest's text on to w, with every
// line that begins like the marker of rlp prefixed "guest: ". Close passes on
// an unfinished last line, and ends it if end is set.
func GuestLines(w io.Writer, end bool) io.WriteCloser { return &guestLines{w: w, end: end} }
