package wire

import (
	"errors"
	"fmt"
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
	// ErrNotEmpty says that a store has values and nobody said that they may go.
	ErrNotEmpty = errors.New("store is not empty")
	// ErrClosed says that the store was closed by its user.
	ErrClosed = errors.New("store is closed")
)

// Invalidf makes an ErrInvalid that says why.
func Invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// Damagedf makes an ErrDamaged that says what is wrong.
func Damagedf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}
