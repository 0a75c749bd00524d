package jail

import (
	"errors"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
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
	// records the decision. A zero Permit refuses.
	Admit(op Op, mode caps.Mode, path string) gate.Permit
	// AdmitTree is Admit for an operation that moves a whole tree: everything
	// that lies or could lie below path must be allowed too.
	AdmitTree(op Op, mode caps.Mode, path string) gate.Permit
	// AdmitMove reports whether what lies at from may come to lie at to, or to have
	// that name too, where both were admitted.
	AdmitMove(op Op, from, to string) bool
	// Holds reports whether the scope that p was given under still allows mode.
	Holds(p gate.Permit, mode caps.Mode) bool
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
	// Stay are paths, absolute and clean, that stay where they are as granted ones
	// do, there or not: no link is put there or above, and no such folder is moved
	// or removed.
	Stay []string
	// AsWritten makes a root that cannot be pinned, whatever is in its way, one
	// that is missing.
	AsWritten bool

	walk bool // resolve component by component even where openat2 is there
}
