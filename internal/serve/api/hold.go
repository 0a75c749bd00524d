package api

import (
	"container/list"
	"net"
	"net/http"
)

// A holder is a caller with connections on which it was the last to be proved.
type holder struct {
	key  string
	open int
	idle *list.List // of *placed: those on which nothing is asked, the longest idle in front
}

// longestIdle is the connection that a caller misses least; nil: each is in use.
func (h *holder) longestIdle() *placed {
	if h == nil || h.idle.Len() == 0 {
		return nil
	}
	return h.idle.Front().Value.(*placed)
}

// Serves notes that the caller of a key was proved on the connection, which is
// theirs from now on, and busy until [ConnState] says that it is idle. A caller who
// has their share, or one who comes when those who were proved have all that they
// may, gets the place of the longest idle connection: of their own, or of whoever
// has most. It is false when there is none, and when the connection is closed.
func (p *placed) Serves(key string, operator bool) bool {
	b := p.of
	b.mu.Lock()
	out, ok := b.assign(p, key, b.share(operator))
	b.mu.Unlock()
	if out != nil {
		_ = out.Close() // it is gone either way
	}
	return ok
}

// share is how many connections one caller has at most.
func (b *bounded) share(operator bool) int {
	most := cap(b.places)
	if operator {
		return min(max(leastOfCaller, most/partOfOperator), b.mostProved)
	}
	return min(max(leastOfCaller, most/partOfCaller), b.mostProved)
}

// assign makes p the caller's and busy. out has lost its place to it.
func (b *bounded) assign(p *placed, key string, share int) (out *placed, ok bool) {
	if p.in == nil && p.whose == nil {
		return nil, false // it was closed
	}
	h := b.callers[key]
	if h == nil || p.whose != h {
		switch {
		case h != nil && h.open >= share:
			if out = h.longestIdle(); out == nil {
				return nil, false
			}
		case p.whose == nil && b.proved >= b.mostProved:
			if out = b.longestIdle(); out == nil {
				return nil, false
			}
		}
		if out != nil {
			b.forget(out)
		}
		b.forget(p)
		if h = b.callers[key]; h == nil {
			h = &holder{key: key, idle: list.New()}
			b.callers[key] = h
		}
		h.open++
		b.proved++
		p.whose = h
	}
	p.list(nil)
	return out, true
}

// longestIdle is the longest idle connection of the caller that has most of those
// who have one.
func (b *bounded) longestIdle() *placed {
	var most *holder
	for _, h := range b.callers {
		if h.idle.Len() > 0 && (most == nil || h.open > most.open) {
			most = h
		}
	}
	return most.longestIdle()
}

// forget counts p as nobody's.
func (b *bounded) forget(p *placed) {
	p.list(nil)
	h := p.whose
	if h == nil {
		return
	}
	p.whose = nil
	b.proved--
	if h.open--; h.open == 0 {
		delete(b.callers, h.key)
	}
}

// list moves p to the end of a list; nil: to none.
func (p *placed) list(to *list.List) {
	if p.in != nil {
		p.in.Remove(p.at)
	}
	if p.in, p.at = to, nil; to != nil {
		p.at = to.PushBack(p)
	}
}

// ConnState is for [http.Server.ConnState]: a connection on which all is answered
// may lose its place.
func ConnState(c net.Conn, state http.ConnState) {
	if state != http.StateIdle {
		return
	}
	for {
		if p, is := c.(*placed); is {
			p.rests()
			return
		}
		inner, is := c.(interface{ NetConn() net.Conn })
		if !is {
			return
		}
		c = inner.NetConn()
	}
}

// rests notes that nothing is asked on the connection.
func (p *placed) rests() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.whose != nil {
		p.list(p.whose.idle)
	}
}
