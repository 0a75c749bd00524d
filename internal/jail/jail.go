//go:build linux || darwin

package jail

import (
	"errors"
	"fmt"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/wasi"
)

// maxLinks bounds the symbolic links that one operation may expand, as Linux does.
const maxLinks = 40

// Errors of [Open]. Each is wrapped with the grant that it is about.
var (
	// ErrMoved says that a grant is not canonical, or was when it was made
	// canonical and no more: a symbolic link lies on its way.
	ErrMoved = errors.New("a symbolic link lies on the way")
	// ErrKind says that a grant is neither a directory nor a regular file.
	ErrKind = errors.New("neither a directory nor a regular file")
	// ErrPath says that a path is not absolute and clean, or holds a NUL.
	ErrPath = errors.New("not an absolute, clean path")
)

// Gate is what the jail needs of the run's gate. It decides, records, and
// answers. Paths are views of a reused buffer unless said otherwise.
type Gate interface {
	// Admit decides mode on path (absolute, clean) for the WASI function op and
	// records the decision. It returns the id of the scope that allowed it, or -1.
	Admit(op Op, mode caps.Mode, path string) int32
	// AdmitTree is Admit for an operation that moves a whole tree: everything
	// that lies or could lie below path must be allowed too.
	AdmitTree(op Op, mode caps.Mode, path string) int32
	// Holds reports whether scope, an id that Admit gave, still allows mode.
	Holds(scope int32, mode caps.Mode) bool
	// Revoked records that a descriptor operation was refused because its scope
	// no longer holds. It is called at most once a descriptor; path may be kept.
	Revoked(op Op, mode caps.Mode, path string)
}

// An Alias says that the grant written as Written is the canonical path
// Canonical; both are absolute and clean. Paths at or below Written are
// rewritten before they are judged, so that a guest may use either.
type Alias struct{ Written, Canonical string }

// A Config says what a [Jail] is made of.
type Config struct {
	Gate Gate
	// Roots are the granted paths, as [Canonical] gave them, in any order.
	Roots   []string
	Aliases []Alias

	walk bool // resolve component by component even where openat2 is there
}

// A Jail is the file system of one run. It keeps nothing of a path between two
// calls and may be used from several goroutines when its Gate may.
type Jail struct {
	gate    Gate
	roots   map[string]*root
	depths  []bool // depths[n]: some root's path is n bytes long
	aliases []Alias
	missing []string
	walk    bool
}

var _ wasi.FS = (*Jail)(nil)

// Open pins every root of c: the directories are opened here, once, and every
// later operation happens beneath those handles, whatever becomes of the names.
// Roots that do not exist are listed by [Jail.Missing]; any other root that
// cannot be pinned is an error, and nothing stays open then.
func Open(c Config) (*Jail, error) {
	j := &Jail{gate: c.Gate, roots: make(map[string]*root, len(c.Roots)), walk: c.walk || !haveOpenat2()}
	for _, a := range c.Aliases {
		if err := j.addAlias(a); err != nil {
			return nil, fmt.Errorf("alias %q: %w", a.Written, err)
		}
	}
	for _, path := range c.Roots {
		if err := j.pin(path); err != nil {
			_ = j.Close()
			return nil, fmt.Errorf("pinning grant %q: %w", path, err)
		}
	}
	return j, nil
}

// Missing lists the roots that did not exist when the jail was opened, in the
// order of Config.Roots. One whose parent directory exists can still be created
// by a guest that may write it; below the others everything is ENOENT: the
// policy allows the path, so EACCES would be untrue, and nothing is there.
func (j *Jail) Missing() []string { return j.missing }

// Close gives the handles back. Open files stay open.
func (j *Jail) Close() error {
	for _, r := range j.roots {
		r.close()
	}
	j.roots, j.depths = nil, nil
	return nil
}
