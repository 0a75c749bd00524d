package host

import (
	"fmt"
	"io/fs"
	"os"
)

// A heldHome is the folder that a service was started with. What lies at its path
// later may be another, or nothing: one that was moved, removed, restored or
// unmounted took settings and overrides along, which narrow, and the log that is
// open. Without them nothing is decided.
type heldHome struct {
	path string
	info fs.FileInfo // nil: there was none yet
}

func holdHome(dir string) heldHome {
	info, err := os.Stat(dir)
	if err != nil {
		return heldHome{path: dir}
	}
	return heldHome{dir, info}
}

// there reports why nothing may be decided by what lies at the path now.
func (h heldHome) there() error {
	if h.info == nil {
		return nil
	}
	now, err := os.Stat(h.path)
	if err == nil && os.SameFile(h.info, now) {
		return nil
	}
	return fmt.Errorf("the home that this was started with is not at %s any more; put it back, or stop the service and "+
		"start it again", h.path)
}

// there reports why nothing may be decided now.
func (h *Host) there() error { return h.held.there() }
