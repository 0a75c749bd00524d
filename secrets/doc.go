// Package secrets keeps values that agents may use and never see.
//
// A [Provider] keeps the values of one tenant: an age vault in the home, the
// keyring of the desktop, the environment, or a helper program. A [Run] gives
// an agent handles in their place: the host puts the value in where a handle
// stands, and takes it out of everything that comes back, however it is written
// there.
//
// Who may use which secret, and towards which host, is not decided here.
package secrets

import (
	"errors"
	"fmt"
	"strings"

	"runloop.dev/rlp/caps"
)

// An ID names a secret: runloop/<scope>/<name>. Only [ParseID] makes one that
// is not zero.
type ID struct{ scope, name string }

// ParseID checks the text of an id.
func ParseID(s string) (ID, error) {
	if _, err := caps.SecretID(s); err != nil {
		return ID{}, err
	}
	parts := strings.Split(s, "/")
	return ID{parts[1], parts[2]}, nil
}

// String is the id in its one form.
func (id ID) String() string { return "runloop/" + id.scope + "/" + id.name }

// Bounds of a value in bytes. A shorter one could not be told from ordinary
// text where it has to be taken out.
const (
	MinValue = 6
	MaxValue = 16 << 10
)

// Errors of values.
var (
	ErrShort = errors.New("the value is shorter than 6 bytes: it could not be told from ordinary text and kept out of " +
		"outputs")
	ErrLong = errors.New("the value is longer than 16 KiB")
)

// CheckValue refuses what cannot be a value: [ErrShort] or [ErrLong].
func CheckValue(v []byte) error {
	switch {
	case len(v) < MinValue:
		return ErrShort
	case len(v) > MaxValue:
		return ErrLong
	}
	return nil
}

// An UnavailableError says that a provider cannot do what it was asked to
// here. It is an [errors.ErrUnsupported].
type UnavailableError struct {
	Provider string // "age", "keyring", "env" or "exec"
	Why      string // one sentence, with what to do about it
	Err      error  // nil where there is none
}

func (e *UnavailableError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("the %s provider of secrets is not available: %s: %v", e.Provider, e.Why, e.Err)
	}
	return fmt.Sprintf("the %s provider of secrets is not available: %s", e.Provider, e.Why)
}

// Unwrap is the error beneath.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Is reports whether target is errors.ErrUnsupported.
func (e *UnavailableError) Is(target error) bool { return target == errors.ErrUnsupported }
