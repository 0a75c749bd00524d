package service

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"runloop.dev/rlp/launcher"
)

var (
	// ErrNotFound says that there is no such run, agent or record that the
	// caller may know of. What belongs to another tenant is not there.
	ErrNotFound = errors.New("not found")
	// ErrForbidden says that the caller has not the right to ask this at all.
	ErrForbidden = errors.New("not permitted to this caller")
	// ErrDraining says that the service takes nothing more before it ends.
	ErrDraining = errors.New("the service is about to end")
	// ErrConflict says that an idempotency key came before with another request.
	ErrConflict = errors.New("the idempotency key was used for another request")
)

// A NoRunError says that there is no run of an id that the caller may know of. It is
// [ErrNotFound].
type NoRunError struct{ RunID string }

func (e *NoRunError) Error() string {
	return "there is no run " + e.RunID + ", or none that this caller may see"
}

// Is implements what [errors.Is] asks.
func (*NoRunError) Is(target error) bool { return target == ErrNotFound } //nolint:errorlint // as the package errors does

// A BusyError says that the queue is full, or what else there is too much of.
type BusyError struct {
	RetryAfter time.Duration
	Why        string // "": the queue is full
}

func (e *BusyError) Error() string {
	if e.Why != "" {
		return e.Why
	}
	return fmt.Sprintf("the queue is full; ask again in %s", e.RetryAfter)
}

// A FieldError is what is wrong with one field of a request: its path, such as
// "limits.max_steps" or "allowed_adapters[2]", and what to write instead.
type FieldError struct{ Field, Why string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Why }

// FieldErrors are all that is wrong with a request, never empty.
type FieldErrors []FieldError

func (e FieldErrors) Error() string {
	var all []string
	for _, f := range e {
		all = append(all, f.Error())
	}
	return strings.Join(all, "; ")
}

// A ViolationError says that policy refuses the run: every reason, and nothing
// was executed.
type ViolationError struct {
	RunID, TraceID string
	Agent          string // the installed one that was asked for; "": the request brought its bundle
	Tenant         string // whose run it was
	Violations     []launcher.Violation
	// ByDoor says that the grant which requests start from took some of it.
	ByDoor bool
	// Warnings are what does nothing in the request as it is written, such as an
	// adapter that there is not: it may be why.
	Warnings []string
}

func (e *ViolationError) Error() string {
	return fmt.Sprintf("policy refuses the run; number of reasons: %d", len(e.Violations))
}

// An UnavailableError says that what a request needs is not there now: a
// registry, a lane, the disk of the log.
type UnavailableError struct {
	Why        error
	Unrecorded bool // the run's record could not begin
}

func (e *UnavailableError) Error() string { return e.Why.Error() }
func (e *UnavailableError) Unwrap() error { return e.Why }
