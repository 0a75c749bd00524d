//go:build linux || darwin

package jail

import (
	"fmt"

	"runloop.dev/rlp/internal/effect/wasi"
)

// A Jail is the file system of one run. It keeps nothing of a path between two
// calls and may be used from several goroutines when its Gate may.
type Jail struct {
	gate    Gate
	roots   map[string]*root
	depths  []bool // depths[n]: some root's path is n bytes long
	aliases []Alias
	missing []string
	stay    []string // paths that stay though they are no roots
	walk    bool
}

var _ wasi.FS = (*Jail)(nil)

// Open pins every root of c: the directories are opened here, once, and every
// later operation happens beneath those handles, whatever becomes of the names.
// Roots that do not exist are listed by [Jail.Missing]; any other root that
// cannot be pinned is an error, unless c is AsWritten, and nothing stays open then.
func Open(c Config) (*Jail, error) {
	j := &Jail{gate: c.Gate, stay: c.Stay, roots: make(map[string]*root, len(c.Roots)), walk: c.walk || !haveOpenat2()}
	for _, a := range c.Aliases {
		if err := j.addAlias(a); err != nil {
			return nil, fmt.Errorf("alias %q: %w", a.Written, err)
		}
	}
	for _, path := range c.Roots {
		before := len(j.missing)
		err := j.pin(path)
		if err != nil && c.AsWritten {
			j.missing = append(j.missing[:before], path)
			continue
		}
		if err != nil {
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
