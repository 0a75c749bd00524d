//go:build !linux && !darwin

package jail

import (
	"errors"
	"fmt"
	"runtime"

	"runloop.dev/rlp/internal/effect/wasi"
)

// A Jail is the file system of one run. There is none on this system.
type Jail struct{ wasi.FS }

// Open refuses: nothing here resolves a path without following links.
func Open(Config) (*Jail, error) {
	return nil, fmt.Errorf("pinning grants on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Missing lists the roots that did not exist when the jail was opened.
func (j *Jail) Missing() []string { return nil }

// Close gives the handles back.
func (j *Jail) Close() error { return nil }
