package kb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/log"
	"runloop.dev/rlp/kb/values"
	"runloop.dev/rlp/kb/wire"
)

// A backend answers requests: the engine of this process ([owned]), or that of the
// owner ([client]).
type backend interface{ close() error }

// Who asks for a part of a store, whichever process has it open.
type (
	logClient   = log.Client
	valueClient = values.Client
)

// A Store is one tenant's knowledge base and audit log. Whether this process
// owns it or asks the process that does makes no difference to what its methods
// do, and may change from one call to the next. It is safe for use by several
// goroutines.
type Store struct {
	logClient
	valueClient
	opt    Options
	layout layout
	open   func(Options, layout) (*engine, error) // newEngine

	mu      sync.Mutex // held while a backend is found
	backend backend    // nil: to be found
	closed  bool
	using   sync.WaitGroup
}

// owned is the backend of the process that holds the store's lock.
type owned struct {
	*engine
	server *server
	lock   *os.File
	note   func() // that it was closed
}

// close ends service, then the engine, then the claim. What the engine has in memory
// is written for that, which is tried without end where the disk is full or the
// folder gone: it is waited for until it failed a few times. All of it is in the log
// ahead of it, and the claim lasts as long as the engine does.
func (o *owned) close() error {
	served := o.server.close()
	closed, failed := make(chan error, 1), o.engine.flushes.Failed
	go func() {
		for err := o.db.Room(); err != nil && !errors.Is(err, db.ErrRemoved); err = o.db.Room() {
			o.engine.flushes.Tell(err)
			time.Sleep(time.Second)
		}
		err := o.engine.close()
		if err == nil {
			o.note()
		}
		closed <- errors.Join(err, o.lock.Truncate(0), o.lock.Close())
	}()
	var why error
	for range db.MostFlushes {
		select {
		case err := <-closed:
			return errors.Join(served, err)
		case why = <-failed:
		}
	}
	return errors.Join(served, fmt.Errorf("closing the store: a table cannot be written; all of it is in the log ahead "+
		"of it, and is taken from there when the store is opened next: %w", why))
}

// Open opens a tenant's store: as its owner if nobody is, through its owner
// otherwise. It waits Options.Wait at most for an owner that does not answer.
func Open(ctx context.Context, o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	s := newStore(o)
	if err := s.prepare(); err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	if _, err := s.find(ctx, nil); err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	s.using.Done()
	return s, nil
}

// newStore is a store that was not opened yet.
func newStore(o Options) *Store {
	s := &Store{opt: o, layout: o.layout(), open: newEngine}
	s.logClient = log.NewClient(part[*log.Log]{s, func(e *engine) *log.Log { return e.log }})
	ofValues := part[*values.Values]{s, func(e *engine) *values.Values { return e.values }}
	s.valueClient = values.NewClient(ofValues, o.values())
	return s
}

// whole is the store as those see it who ask for no part of it.
func (s *Store) whole() part[*engine] { return part[*engine]{s, func(e *engine) *engine { return e }} }

// prepare makes the directories and refuses places where the store cannot be safe.
func (s *Store) prepare() error {
	// The home is often made by hand, and then others may look into it; what is
	// private lies below.
	for _, dir := range []struct {
		path       string
		lookedInto bool
	}{{s.opt.Home, true}, {s.layout.root, true}, {s.layout.run, false}} {
		if err := db.MakeDir(dir.path, dir.lookedInto); err != nil {
			return err
		}
	}
	name, err := networkFileSystem(s.layout.root)
	if err != nil {
		return err
	}
	if name != "" {
		return &db.NotFitError{What: s.layout.root, Why: "it lies on " + name +
			", where locks and shared memory cannot be relied on; choose a home on a local disk"}
	}
	return nil
}

// Domains returns the domains of the store, sorted.
func (s *Store) Domains() []string { return append([]string(nil), s.opt.Domains...) }

// Owner reports whether this process owns the store now.
func (s *Store) Owner() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.backend.(*owned)
	return ok
}

// Room says why the store would write nothing now, whatever is asked of it: its disk
// is nearly full, or its files were removed.
func (s *Store) Room() error {
	if held, here := s.whole().Hold(); here {
		defer s.whole().Release()
		return held.db.Room()
	}
	return db.RoomLeft(s.layout.kb)
}

// Close gives the store up. An owner first answers what is under way; its
// clients then settle who comes next.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	b := s.backend
	s.backend = nil
	s.mu.Unlock()
	s.using.Wait()
	if b == nil {
		return nil
	}
	return b.close()
}

// A part is one part of a store, as those who ask for it see it.
type part[P any] struct {
	*Store
	of func(e *engine) P
}

// Ask has q answered, from owner to owner until one answers.
func (p part[P]) Ask(ctx context.Context, q *wire.Question[P]) error {
	deadline := time.Now().Add(p.opt.Wait)
	var lost backend
	for {
		b, err := p.find(ctx, lost)
		if err != nil {
			return err
		}
		err = p.askBackend(ctx, b, q)
		p.using.Done()
		if !errors.Is(err, errLost) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: %s", wire.ErrUnavailable, p.silence(err))
		}
		lost = b
	}
}

func (p part[P]) askBackend(ctx context.Context, b backend, q *wire.Question[P]) error {
	if o, ok := b.(*owned); ok {
		if err := o.serves(q.Request.Op()); err != nil {
			return err
		}
		return q.Local(ctx, p.of(o.engine))
	}
	if r, ok := q.Request.(wire.Repeatable); ok {
		r.Identify() // from now on it may be asked for twice
	}
	return b.(*client).ask(ctx, q.Request.Op(), q.Request, q.Answer())
}

// Hold is the part in this process until [part.Release].
func (p part[P]) Hold() (held P, here bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o, ok := p.backend.(*owned)
	if !ok || p.closed {
		return held, false
	}
	p.using.Add(1)
	return p.of(o.engine), true
}

// Release ends what [part.Hold] began.
func (p part[P]) Release() { p.using.Done() }

// find returns a backend other than lost, counted in using.
func (s *Store) find(ctx context.Context, lost backend) (backend, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, wire.ErrClosed
	}
	if s.backend != nil && s.backend != lost {
		s.using.Add(1)
		return s.backend, nil
	}
	if s.backend != nil {
		s.backend.close() //nolint:errcheck // its owner is gone
		s.backend = nil
	}
	b, err := s.settle(ctx)
	if err != nil {
		return nil, err
	}
	s.backend = b
	s.using.Add(1)
	return b, nil
}

// settle becomes the owner or finds the one there is.
func (s *Store) settle(ctx context.Context) (backend, error) {
	deadline := time.Now().Add(s.opt.Wait)
	pause := time.Millisecond
	for {
		b, err := s.own(ctx)
		if b != nil || err != nil {
			return b, err
		}
		c, err := dial(ctx, s.layout.socket, agreementOf(s.opt.values()))
		switch {
		case err == nil:
			return c, nil
		case errors.Is(err, wire.ErrVersion), errors.Is(err, wire.ErrUnavailable), ctx.Err() != nil:
			return nil, errors.Join(ctx.Err(), err)
		case time.Now().After(deadline):
			return nil, fmt.Errorf("%w: %s", wire.ErrUnavailable, s.silence(err))
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
			pause = min(2*pause, 20*time.Millisecond)
		}
	}
}

// silence describes an owner that does not answer.
func (s *Store) silence(err error) string {
	who := "its owner"
	if pid := pidOf(s.layout.lock); pid != 0 {
		who = "process " + strconv.Itoa(pid) + ", which owns it,"
	}
	return fmt.Sprintf("%s has not answered for %s (%v)", who, s.opt.Wait, err)
}

// own takes the store's lock and opens it, or returns nil, nil when somebody has it.
func (s *Store) own(ctx context.Context) (backend, error) {
	f, err := os.OpenFile(s.layout.lock, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return nil, f.Close()
	}
	if err != nil {
		return nil, errors.Join(os.NewSyscallError("flock", err), f.Close())
	}
	b, err := s.start(ctx, f)
	switch {
	case errors.Is(err, errHangs):
		return nil, err // whoever is at it has the lock
	case err != nil:
		return nil, errors.Join(err, f.Close())
	}
	return b, nil
}

// start opens the engine and serves it, with the lock in hand.
func (s *Store) start(ctx context.Context, lock *os.File) (*owned, error) {
	if err := lock.Truncate(0); err != nil {
		return nil, err
	}
	if _, err := lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return nil, err
	}
	e, err := s.openOnce(ctx, lock)
	if err != nil {
		return nil, err
	}
	srv, err := serve(e, s.layout.socket)
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	return &owned{e, srv, lock, s.noteClosed}, nil
}
