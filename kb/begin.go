package kb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"runloop.dev/rlp/kb/state"
	"runloop.dev/rlp/kb/wire"
)

// pause is how long a damage is remembered while no file of the store changes:
// who asks again meanwhile gets the same answer and waits for nothing.
const pause = time.Minute

// openRate is how many bytes of a database are read in a second at least while it
// is opened: badger checks the sums of all that it has.
const openRate = 8 << 20

// openOnce opens the engine, unless somebody has just found that it cannot be. The
// caller holds the lock, and has it no longer where the error is errHangs.
//
// Files that do not answer keep nobody longer than Options.Wait, and what it takes to
// read them: whoever waits for them may wait for ever, and keeps the lock until then,
// so that no second one opens what the first is still opening.
func (s *Store) openOnce(ctx context.Context, lock *os.File) (*engine, error) {
	known, err := within(ctx, s.opt.Wait, s.layout.place.Look, func(state.Known, error) { lock.Close() })
	if errors.Is(err, errHangs) {
		return nil, err
	}
	if since := s.opt.Now().Sub(known.At); err == nil && known.Failed != "" && since >= 0 && since < pause {
		return nil, &knownError{known}
	}
	looked := err == nil // err is written while begin may still be at work
	begin := func() (*engine, error) {
		if looked && (known.Gone || known.None && s.opt.Signed != nil && s.opt.Signed()) {
			if err := s.layout.place.Lose(s.opt.Now()); err != nil {
				return nil, err
			}
		}
		return s.open(s.opt, s.layout)
	}
	late := func(e *engine, err error) {
		if err == nil {
			e.db.Close() //nolint:errcheck // nothing was written, and nobody is left to be told
		}
		lock.Close()
	}
	e, err := within(ctx, s.opt.Wait+time.Duration(known.Bytes/openRate)*time.Second, begin, late)
	if err == nil {
		e, err = e.started()
	}
	if errors.Is(err, wire.ErrDamaged) {
		return nil, errors.Join(err, s.layout.place.Note(err.Error(), s.opt.Now()))
	}
	return e, err
}

// errHangs is what files that did not answer in time are told with.
var errHangs = fmt.Errorf("%w: its files do not answer", wire.ErrUnavailable)

// within is what do says, if it does so in time. Otherwise the error is errHangs, and
// late is called with what do says whenever it does.
func within[T any](ctx context.Context, limit time.Duration, do func() (T, error), late func(T, error)) (T, error) {
	type answer struct {
		it  T
		err error
	}
	said, gone := make(chan answer), make(chan struct{})
	go func() {
		it, err := do()
		select {
		case said <- answer{it, err}:
		case <-gone:
			late(it, err)
		}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var none T
	select {
	case a := <-said:
		return a.it, a.err
	case <-timer.C:
		close(gone)
		return none, fmt.Errorf("%w, and were waited for %s", errHangs, limit)
	case <-ctx.Done():
		close(gone)
		return none, fmt.Errorf("%w: %w", errHangs, ctx.Err())
	}
}

// noteClosed notes that the store was closed in order. Without the note it is
// opened by whoever wants to know.
func (s *Store) noteClosed() { _ = s.layout.place.Note("", s.opt.Now()) }

// A knownError says why the store could not be opened a moment ago. Nobody has
// changed it since, and it is not tried again yet.
type knownError struct{ state.Known }

func (e *knownError) Error() string {
	return fmt.Sprintf("%s (found at %s; it is tried again %s later, or when a file of it changes)", e.Failed,
		e.At.UTC().Format(time.RFC3339), pause)
}

func (e *knownError) Unwrap() []error { return []error{wire.ErrUnavailable, wire.ErrDamaged} }
