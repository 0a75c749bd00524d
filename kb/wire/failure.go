package wire

import (
	"errors"
	"io/fs"
)

// A Failure is the number that stands for an error between two processes.
type Failure uint8

// The failures.
const (
	FailNone Failure = iota
	failOther
	FailNotExist
	FailConflict
	failDomain
	failInvalid
	failUnavailable
	failDamaged
	failNotEmpty
)

// sentinels gives each failure the error that it wraps.
func (f Failure) sentinel() error {
	return [...]error{
		nil, errors.New("store failed"), fs.ErrNotExist, ErrConflict, ErrDomain, ErrInvalid, ErrUnavailable, ErrDamaged,
		ErrNotEmpty,
	}[min(int(f), int(failNotEmpty))]
}

// FailureOf finds the number of an error.
func FailureOf(err error) Failure {
	if err == nil {
		return FailNone
	}
	for f := FailNotExist; f <= failNotEmpty; f++ {
		if errors.Is(err, f.sentinel()) {
			return f
		}
	}
	return failOther
}

// A RemoteError is an error that another process had.
type RemoteError struct {
	Kind Failure
	Text string
}

func (e *RemoteError) Error() string { return e.Text }
func (e *RemoteError) Unwrap() error { return e.Kind.sentinel() }
