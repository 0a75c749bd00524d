package sandbox

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// guard covers a mount by itself, read-only. Whatever else is mounted below it is
// below the cover as well.
func (p *Plan) guard(tree int, path string) error {
	cover, err := unix.OpenTree(tree, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("%w: open_tree: %w", ErrNotKept, err)
	}
	defer unix.Close(cover)
	if err := unix.MountSetattr(cover, "", unix.AT_EMPTY_PATH,
		&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("%w: mount_setattr: %w", ErrNotKept, err)
	}
	if err := unix.MoveMount(cover, "", tree, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("%w: move_mount: %w", ErrNotKept, err)
	}
	p.guards = append(p.guards, guardedDir{path: path, dir: tree, covered: true})
	return nil
}

// openJudged opens the folders that programs may write and no mount covers, where
// links are judged: those that the agent holds, and others that hold one of them,
// for what Landlock allows in a folder it allows below it.
func (p *Plan) openJudged() error {
	if !p.Links {
		return nil
	}
	var judged []string
	for i := range p.Mounts {
		if p.Mounts[i].isJudged(p) {
			judged = append(judged, p.Mounts[i].Path)
		}
	}
	for i := range p.guards {
		p.guards[i].judged = slices.Contains(judged, p.guards[i].path)
	}
	for _, s := range p.Mounts {
		own := slices.Contains(judged, s.Path)
		if s.guarded || s.Access != ReadWrite || !own && !slices.ContainsFunc(judged, func(dir string) bool {
			return IsIn(dir, []string{s.Path})
		}) {
			continue
		}
		fd, err := unix.Open(s.Path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if IsOf(err, unix.ENOENT, unix.ENOTDIR) { // it is not there to be shown, or a file
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w: %w", s.Path, errLinks, err)
		}
		p.guards = append(p.guards, guardedDir{path: s.Path, dir: fd, judged: own})
	}
	return nil
}

// isJudged reports whether links that are put here may come to be followed by a
// later launch: the working folder is this run's, and /tmp this program's.
func (s *Mount) isJudged(p *Plan) bool {
	return s.Kind == bind && s.Access == ReadWrite && s.Path != p.Work
}

// errLinks says that links cannot be judged.
var errLinks = errors.New("links cannot be judged")

// hidden are the places in guarded folders that programs may not even read.
func (p *Plan) hidden() []string {
	var list []string
	for _, k := range p.Kept {
		if k.Access == Hidden {
			list = append(list, k.Path)
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
	slash  bool   // it was written with one at its end
	// unnamed says that it was written with . or .. at its end, or is the root: the
	// kernel makes, moves and removes nothing there, and says why.
	unnamed bool
}

func (p place) dir() string  { return path.Dir(p.path) }
func (p place) name() string { return path.Base(p.path) }

// covered reports whether only a broker makes changes here.
func (p place) covered() bool { return p.in != nil && p.in.covered }

// within is a path in a guarded folder, relative to it.
func (g *guardedDir) within(p string) string {
	if rest := strings.Trim(strings.TrimPrefix(p, g.path), "/"); rest != "" {
		return rest
	}
	return "."
}

// A judge says by names alone what programs may do.
type judge struct {
	dirs      []guardedDir
	mounts    map[string]*guardedDir // nil where another mount begins
	kept      map[string]Access
	way       map[string]bool // the folders above what is kept
	above     map[string]bool // those above what is hidden
	leased    []string        // what stays where it is
	untrusted []string        // folders out of which nothing is moved or linked
	held      map[string]Access
	holds     map[string]bool       // the folders above what is held
	protected map[string][][]string // names, in parts, by the first of them
}

func newJudge(p *Plan) *judge {
	j := &judge{
		dirs: p.guards, mounts: map[string]*guardedDir{}, kept: map[string]Access{}, above: ways(p.hidden()),
		untrusted: p.Untrusted, protected: map[string][][]string{},
	}
	for _, name := range p.Protected {
		parts := strings.Split(name, "/")
		j.protected[parts[0]] = append(j.protected[parts[0]], parts)
	}
	kept := make([]string, 0, len(p.Kept))
	for _, k := range p.Kept {
		if k.Access == ReadWrite {
			j.leased = append(j.leased, k.Path)
			continue
		}
		j.kept[k.Path] = k.Access
		kept = append(kept, k.Path)
	}
	j.way = ways(kept)
	held := make([]string, 0, len(p.Held))
	j.held = map[string]Access{}
	for _, h := range p.Held {
		j.held[h.Path] = h.Access
		held = append(held, h.Path)
	}
	j.holds = ways(held)
	for _, s := range p.Mounts {
		if _, ok := j.kept[s.Path]; !ok { // what covers a kept name may be gone
			j.mounts[s.Path] = nil
		}
	}
	for i := range j.dirs {
		j.mounts[j.dirs[i].path] = &j.dirs[i]
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
		if in, ok := j.mounts[at]; ok {
			if in != nil && in.covered && j.isProtected(p) {
				access = min(access, ReadOnly)
			}
			return place{in: in, access: access, path: p}
		}
		if at == "/" {
			return place{path: p}
		}
	}
}

// isProtected reports whether a path has a protected name in it.
func (j *judge) isProtected(p string) bool {
	within, _ := j.named(p)
	return within
}

// isAbove reports whether what lies here may hold a protected name: another folder, a
// file or a link in its place would hold another.
func (j *judge) isAbove(p string) bool {
	_, above := j.named(p)
	return above || j.way[p]
}

// named reports whether a path has a protected name in it, and whether it ends in the
// beginning of one.
func (j *judge) named(p string) (within, above bool) {
	parts := strings.Split(p, "/")
	for i, first := range parts {
		for _, name := range j.protected[first] {
			n := 0
			for n < len(name) && i+n < len(parts) && (name[n] == parts[i+n] || name[n] == Any) {
				n++
			}
			within = within || n == len(name)
			above = above || n < len(name) && i+n == len(parts)
		}
	}
	return within, above
}

// leadsNowhere reports whether a file in the place of such a folder says nothing of
// where another one lies, as one that is called .git does: there is a .config of the
// kernel's sources, beside a .config/fish of a shell's.
func leadsNowhere(p string) bool { return path.Base(p) != ".git" }

// change is why an entry cannot be made, taken away or moved; 0: it can. what is put
// there, or taken away.
func (j *judge) change(p place, what string) unix.Errno {
	_, kept := j.kept[p.path]
	_, above := j.named(p.path)
	if above && leadsNowhere(p.path) {
		var st unix.Stat_t
		above = unix.Lstat(what, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG
	}
	switch {
	case p.access == ReadOnly:
		return unix.EROFS
	case kept, j.way[p.path], p.in.covered && above, p.path == p.in.path:
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
