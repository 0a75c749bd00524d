package kb

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"runloop.dev/rlp/kb/state"
)

// What a caller branches on. A key that is not there is [fs.ErrNotExist].
var (
	// ErrConflict says that the stored revision is not the expected one.
	ErrConflict = errors.New("revision conflict")
	// ErrDomain says that there is no such domain.
	ErrDomain = errors.New("unknown domain")
	// ErrInvalid says that a key, a value or a filter breaks a rule.
	ErrInvalid = errors.New("invalid request")
	// ErrUnavailable says that the store cannot be reached now: its owner does
	// not answer, or it cannot be opened.
	ErrUnavailable = errors.New("store is unavailable")
	// ErrVersion says that the store's owner is another version of rlp.
	ErrVersion = errors.New("store is owned by another version of rlp")
	// ErrDamaged says that the store does not hold what was put into it.
	ErrDamaged = errors.New("store is damaged")
	// ErrClosed says that the store was closed by its user.
	ErrClosed = errors.New("store is closed")
)

// A failure is the number that stands for an error between two processes.
type failure uint8

const (
	failNone failure = iota
	failOther
	failNotExist
	failConflict
	failDomain
	failInvalid
	failUnavailable
	failDamaged
	failNotEmpty
)

// sentinels gives each failure the error that it wraps.
func (f failure) sentinel() error {
	return [...]error{
		nil, errors.New("store failed"), fs.ErrNotExist, ErrConflict, ErrDomain, ErrInvalid, ErrUnavailable, ErrDamaged,
		ErrNotEmpty,
	}[min(int(f), int(failNotEmpty))]
}

// failureOf finds the number of an error.
func failureOf(err error) failure {
	if err == nil {
		return failNone
	}
	for f := failNotExist; f <= failNotEmpty; f++ {
		if errors.Is(err, f.sentinel()) {
			return f
		}
	}
	return failOther
}

// A remoteError is an error that another process had.
type remoteError struct {
	kind failure
	text string
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.kind.sentinel() }

// invalidf makes an ErrInvalid that says why.
func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// A knownError says why the store could not be opened a moment ago. Nobody has
// changed it since, and it is not tried again yet.
type knownError struct{ state.Known }

func (e *knownError) Error() string {
	return fmt.Sprintf("%s (found at %s; it is tried again %s later, or when a file of it changes)", e.Failed,
		e.At.UTC().Format(time.RFC3339), pause)
}

func (e *knownError) Unwrap() []error { return []error{ErrUnavailable, ErrDamaged} }
