package journal

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"runloop.dev/rlp/internal/record/audit"
)

// observeEvery is how long an observer rests before it looks at the journal, so
// that waking it costs a busy run nothing that can be measured and a short run
// is looked at once, at its end.
const observeEvery = 20 * time.Millisecond

// showEvery is how long it rests when somebody looks on.
const showEvery = 4 * time.Millisecond

// An observer reads the journal behind its writer and tells of each decision,
// and of events if it is asked to.
// It has no goroutine of its own: a timer looks while the run goes on, and a run
// that ends before it is looked at by whoever closes it.
type observer struct {
	journal *Journal
	tell    func(*audit.Record) bool
	events  bool
	every   time.Duration
	dirty   atomic.Bool // something was decided since the last look began
	timer   *time.Timer // the writer's alone; nil before its first decision

	mu     sync.Mutex // held while it looks
	reader *Reader    // under mu; nil before its first look: most runs decide nothing
	enough bool       // under mu: nobody wants to hear more
	ended  bool       // under mu: drained
	err    error      // under mu: what a look failed with; there is none after it
}

func newObserver(j *Journal, tell func(*audit.Record) bool, events bool) *observer {
	o := &observer{journal: j, tell: tell, events: events, every: observeEvery}
	if events {
		o.every = showEvery
	}
	return o
}

// nudge says that something was recorded. All but the first after a look cost one load.
func (o *observer) nudge() {
	if !o.dirty.Load() {
		o.raise()
	}
}

//go:noinline
func (o *observer) raise() {
	o.dirty.Store(true)
	if o.timer == nil {
		o.timer = time.AfterFunc(o.every, o.onTime)
		return
	}
	o.timer.Reset(o.every)
}

func (o *observer) onTime() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended || o.err != nil {
		return
	}
	o.dirty.Store(false)
	o.err = o.look(0)
}

// look tells of everything that is committed, which ends at byte end unless that
// is 0. The caller holds the lock.
func (o *observer) look(end int64) error {
	if o.reader == nil {
		j := o.journal
		o.reader = newReader(j.file, j.path, j.secret, j.codec, j.seed)
	}
	o.reader.end = end
	for !o.enough {
		rec, err := o.reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if (o.events || rec.Decision != nil) && !o.tell(rec) {
			o.enough = true
		}
	}
	return nil
}

// drain tells of everything and ends the observer. It is the writer's: what it
// has written by now is all there is.
func (o *observer) drain() error {
	if o.timer != nil {
		o.timer.Stop()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	if o.err != nil {
		return o.err
	}
	if !o.dirty.Load() {
		return nil
	}
	return o.look(o.journal.off)
}
