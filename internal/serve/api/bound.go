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

// mostUnsent is how much of its answers the system holds for one connection until
// they are taken. By itself it would take some MiB for each.
const mostUnsent = 128 << 10

// Parts of the places: what nobody who was proved takes, what one caller has, and
// what the operator has.
const (
	partInReserve  = 8
	partOfCaller   = 8
	partOfOperator = 2
	leastOfCaller  = 2
)

// Bounded is l with most connections open at a time.
//
// Those on which somebody was proved leave an eighth of the places to others who
// come, and one caller has an eighth at most, the operator a half: [placed.Serves].
// When all places are taken, whoever has most connections on which nobody was
// proved loses the oldest of them: so many of one user's, or of one address, keep
// nobody else out. source tells whose connections are counted together; it is asked
// when places are short, once of each connection. now is the clock.
func Bounded(l net.Listener, most int, now func() time.Time, source func(net.Conn) string) net.Listener {
	patience := min(max(leastPatient, time.Duration(most)*time.Second/heardInASecond), patientFor)
	return &bounded{
		Listener: l, now: now, source: source, patience: patience, places: make(chan struct{}, most),
		closed:   make(chan struct{}),
		unproved: list.New(), callers: map[string]*holder{}, mostProved: max(1, most-max(1, most/partInReserve)),
	}
}

type bounded struct {
	net.Listener
	now        func() time.Time
	source     func(net.Conn) string
	patience   time.Duration
	places     chan struct{}
	mostProved int
	once       sync.Once
	closed     chan struct{}

	mu       sync.Mutex
	unproved *list.List         // of *placed, the oldest in front
	callers  map[string]*holder // by the caller's key; each has a connection
	proved   int                // all that they have
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
	if sends, can := c.(interface{ SetWriteBuffer(bytes int) error }); can {
		_ = sends.SetWriteBuffer(mostUnsent) // it has the system's bound otherwise
	}
	p := &placed{Conn: c, of: b, began: b.now()}
	b.mu.Lock()
	defer b.mu.Unlock()
	p.list(b.unproved)
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
	from  string // its source, once it was asked for

	// Guarded by the listener's lock.
	in    *list.List    // unproved, or those of its holder that are idle; nil: it is busy, or closed
	at    *list.Element // its place in that list
	whose *holder       // nil: nobody was proved, or it is closed
}

func (p *placed) source() string {
	p.asked.Do(func() { p.from = p.of.source(p.Conn) })
	return p.from
}

// NetConn is the connection itself, whose other end can be asked for.
func (p *placed) NetConn() net.Conn { return p.Conn }

func (p *placed) Close() error {
	err := p.Conn.Close()
	p.once.Do(func() {
		p.of.mu.Lock()
		p.of.forget(p)
		p.of.mu.Unlock()
		<-p.of.places
	})
	return err
}
