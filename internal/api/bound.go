package api

import (
	"container/list"
	"net"
	"sync"
	"time"
)

// How long a connection is left to prove whose it is, when others wait for its
// place: patientFor, or less where there are few places, so that of those who wait
// at least so many are heard in a second.
const (
	patientFor     = time.Second
	leastPatient   = 50 * time.Millisecond
	heardInASecond = 64
)

// Bounded is l with most connections open at a time. When all places are taken,
// whoever has most connections on which nobody was proved loses the oldest of
// them: so many of one user's, or of one address, keep nobody else out. source
// tells whose connections are counted together; it is asked when places are short,
// once of each connection. Where everybody was proved, who comes waits. now is the
// clock.
func Bounded(l net.Listener, most int, now func() time.Time, source func(net.Conn) string) net.Listener {
	patience := min(max(leastPatient, time.Duration(most)*time.Second/heardInASecond), patientFor)
	return &bounded{Listener: l, now: now, source: source, patience: patience, places: make(chan struct{}, most), closed: make(chan struct{}), unproved: list.New()}
}

type bounded struct {
	net.Listener
	now      func() time.Time
	source   func(net.Conn) string
	patience time.Duration
	places   chan struct{}
	once     sync.Once
	closed   chan struct{}

	mu       sync.Mutex
	unproved *list.List // of *placed, the oldest in front
}

func (b *bounded) Accept() (net.Conn, error) {
	if err := b.room(); err != nil {
		return nil, err
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.places
		return nil, err
	}
	p := &placed{Conn: c, of: b, began: b.now()}
	b.mu.Lock()
	defer b.mu.Unlock()
	p.at = b.unproved.PushBack(p)
	return p, nil
}

// room takes a place, if need be one of somebody who has many.
func (b *bounded) room() error {
	for {
		select {
		case b.places <- struct{}{}:
			return nil
		default:
		}
		again := time.NewTimer(b.giveUp())
		select {
		case b.places <- struct{}{}:
			again.Stop()
			return nil
		case <-b.closed:
			again.Stop()
			return net.ErrClosed
		case <-again.C:
		}
	}
}

// giveUp closes a connection on which nobody was proved, if there is one that had
// its time, and says when to look again.
func (b *bounded) giveUp() (again time.Duration) {
	b.mu.Lock()
	var all []*placed
	for e := b.unproved.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*placed))
	}
	b.mu.Unlock()
	count := map[string]int{}
	var oldest *placed // of the source with the most
	for _, p := range all {
		count[p.source()]++
	}
	for _, p := range all { // from the oldest on
		if oldest == nil || count[p.source()] > count[oldest.source()] {
			oldest = p
		}
	}
	if oldest == nil {
		return b.patience
	}
	if left := b.patience - b.now().Sub(oldest.began); left > 0 {
		return left
	}
	_ = oldest.Close() // it is gone either way
	return b.patience
}

func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

// A placed connection has a place until it is closed.
type placed struct {
	net.Conn
	of    *bounded
	began time.Time
	once  sync.Once

	asked sync.Once
	from  string        // its source, once it was asked for
	at    *list.Element // guarded by the listener's lock; nil: somebody was proved
}

func (p *placed) source() string {
	p.asked.Do(func() { p.from = p.of.source(p.Conn) })
	return p.from
}

// NetConn is the connection itself, whose other end can be asked for.
func (p *placed) NetConn() net.Conn { return p.Conn }

// Proved notes that somebody was proved on it: it keeps its place.
func (p *placed) Proved() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.at != nil {
		p.of.unproved.Remove(p.at)
		p.at = nil
	}
}

func (p *placed) Close() error {
	err := p.Conn.Close()
	p.once.Do(func() {
		p.Proved() // it is counted no more
		<-p.of.places
	})
	return err
}
