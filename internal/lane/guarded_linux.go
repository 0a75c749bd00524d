package lane

import (
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// guard covers a mount by itself, read-only. Whatever else is mounted below it is
// below the cover as well.
func (p *plan) guard(tree int, path string) error {
	cover, err := unix.OpenTree(tree, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("%w: open_tree: %w", errSpot, err)
	}
	defer unix.Close(cover)
	if err := unix.MountSetattr(cover, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("%w: mount_setattr: %w", errSpot, err)
	}
	if err := unix.MoveMount(cover, "", tree, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("%w: move_mount: %w", errSpot, err)
	}
	p.guards = append(p.guards, guardedDir{path, tree})
	return nil
}

// hidden are the places in guarded folders that programs may not even read.
func (p *plan) hidden() []string {
	var list []string
	for _, k := range p.kept {
		if k.access == Hidden {
			list = append(list, k.path)
		}
	}
	return list
}

// ways are the folders above these paths, up to the root.
func ways(paths []string) map[string]bool {
	way := map[string]bool{}
	for _, p := range paths {
		for p != "/" {
			p = path.Dir(p)
			way[p] = true
		}
	}
	return way
}

// A place is where a path of a program's leads: in is nil outside of guarded
// folders, where mounts and Landlock say all there is to say.
type place struct {
	in     *guardedDir
	access Access
	path   string // without links, as programs see it
}

func (p place) dir() string  { return path.Dir(p.path) }
func (p place) name() string { return path.Base(p.path) }

// within is a path in a guarded folder, relative to it.
func (g *guardedDir) within(p string) string {
	if rest := strings.Trim(strings.TrimPrefix(p, g.path), "/"); rest != "" {
		return rest
	}
	return "."
}

// A judge says by names alone what programs may do.
type judge struct {
	dirs  []guardedDir
	spots map[string]*guardedDir // nil where another mount begins
	kept  map[string]Access
	way   map[string]bool // the folders above what is kept
	above map[string]bool // those above what is hidden
}

func newJudge(p *plan) *judge {
	j := &judge{dirs: p.guards, spots: map[string]*guardedDir{}, kept: map[string]Access{}, above: ways(p.hidden())}
	kept := make([]string, 0, len(p.kept))
	for _, k := range p.kept {
		j.kept[k.path] = k.access
		kept = append(kept, k.path)
	}
	j.way = ways(kept)
	for _, s := range p.spots {
		if _, ok := j.kept[s.path]; !ok { // what covers a kept name may be gone
			j.spots[s.path] = nil
		}
	}
	for i := range j.dirs {
		j.spots[j.dirs[i].path] = &j.dirs[i]
	}
	return j
}

// of judges a path without links.
func (j *judge) of(p string) place {
	access := ReadWrite
	decided := false
	for at := p; ; at = path.Dir(at) {
		if a, ok := j.kept[at]; ok && !decided {
			access, decided = a, true
		}
		if in, ok := j.spots[at]; ok {
			return place{in: in, access: access, path: p}
		}
		if at == "/" {
			return place{path: p}
		}
	}
}

// change is why an entry cannot be made, taken away or moved; 0: it can.
func (j *judge) change(p place) unix.Errno {
	_, kept := j.kept[p.path]
	switch {
	case p.access == ReadOnly:
		return unix.EROFS
	case kept, j.way[p.path], p.path == p.in.path:
		return unix.EBUSY
	case p.access == Hidden:
		return unix.EACCES
	}
	return 0
}

// alter is the same of what is there and of what says how it is.
func (p place) alter() unix.Errno {
	switch p.access {
	case ReadOnly:
		return unix.EROFS
	case Hidden:
		return unix.ENOENT
	}
	return 0
}
