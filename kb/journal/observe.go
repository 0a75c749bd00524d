package journal

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"runloop.dev/rlp/internal/audit"
)

// observeEvery is how long an observer rests before it looks at the journal, so
// that waking it costs a busy run nothing that can be measured and a short run
// is looked at once, at its end.
const observeEvery = 20 * time.Millisecond

// An observer reads the journal behind its writer and tells of each record.
type observer struct {
	reader *Reader
	tell   func(*audit.Record) bool
	dirty  atomic.Bool // something was written since the last look began
	enough bool        // nobody wants to hear more
	wake   chan struct{}
	quit   chan struct{}
	done   chan error
}

func startObserver(j *Journal, tell func(*audit.Record) bool) *observer {
	o := &observer{
		reader: newReader(j.file, j.path, j.secret, j.codec, State{}),
		tell:   tell,
		wake:   make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan error, 1),
	}
	go o.run()
	return o
}

// nudge says that a frame was committed. All but the first after a look cost one load.
func (o *observer) nudge() {
	if !o.dirty.Load() {
		o.raise()
	}
}

//go:noinline
func (o *observer) raise() {
	o.dirty.Store(true)
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *observer) run() {
	for {
		select {
		case <-o.wake:
			select {
			case <-time.After(observeEvery):
			case <-o.quit:
				o.done <- o.look()
				return
			}
			o.dirty.Store(false)
			if err := o.look(); err != nil {
				<-o.quit
				o.done <- err
				return
			}
		case <-o.quit:
			o.done <- o.look()
			return
		}
	}
}

// look tells of everything that is committed.
func (o *observer) look() error {
	for !o.enough {
		rec, err := o.reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !o.tell(rec) {
			o.enough = true
		}
	}
	return nil
}

// drain ends the observer when it has told everything.
func (o *observer) drain() error {
	close(o.quit)
	return <-o.done
}
