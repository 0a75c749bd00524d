package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A stage is a root folder of its own that is put together from mounts, in a
// mount namespace that nobody else is in. Every path is opened without following
// links: what became a link since it was decided is not what was decided.
type stage struct {
	root    int      // a mount, not yet the root
	closing []int    // private mounts that become read-only at the end
	own     []uint64 // the file systems that are the stage's own
	size    string   // of each of them that stays open for writing
	plan    *Plan
}

const keepLinks = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// A MountSource is a mount and the open files that it is made from.
type MountSource struct {
	Mount
	Tree   int // a mount of what is there; -1 where there is none
	Folder bool
	Link   string // a link of the system's, to be made again
}

func (p *Plan) build() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("parting from the mounts of others: %w", err)
	}
	s := &stage{root: -1, size: strconv.FormatInt(p.Scratch, 10), plan: p}
	var sources []MountSource
	for _, mount := range p.Mounts {
		c, err := s.open(mount)
		if err != nil {
			return err
		}
		sources = append(sources, c)
	}
	if err := s.begin(sources); err != nil {
		return err
	}
	for _, c := range sources {
		err := s.set(&c)
		if err == nil && c.guarded && c.Tree >= 0 {
			err = p.guard(c.Tree, c.Path)
		}
		if err != nil {
			return fmt.Errorf("showing %s: %w", c.Path, err)
		}
	}
	if err := s.words(p); err != nil {
		return fmt.Errorf("writing /etc: %w", err)
	}
	return s.enter()
}

func (s *stage) open(mount Mount) (MountSource, error) {
	c := MountSource{Mount: mount, Tree: -1, Folder: true}
	var err error
	switch mount.Kind {
	case Private:
		c.Tree, err = s.scratch(s.size, "1777")
	case Devices:
		c.Tree, err = s.scratch(Small, "755")
	case Procs:
		c.Tree, err = processes()
	default:
		err = c.clone(s)
	}
	if mount.Kind == Private || mount.Kind == Devices || mount.Kind == Procs {
		return c, err
	}
	return c, nil // what is not there is not shown
}

func (c *MountSource) clone(s *stage) error {
	fd, err := c.Look()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if c.Link != "" {
		return nil
	}
	if c.Kind == Nothing {
		c.Tree, err = c.empty(s)
		return err
	}
	attr := unix.MountAttr{Attr_set: still}
	if c.Access < ReadWrite {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	c.Tree, err = cloned(fd, attr)
	return err
}

// Look opens what is at the mount's own path and says what it is.
func (c *MountSource) Look() (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, c.Path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_NO_MAGICLINKS | c.strict(),
	})
	if err != nil {
		return -1, err
	}
	if err := c.is(fd); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (c *MountSource) is(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return nil
	case unix.S_IFREG:
		c.Folder = false
		return nil
	case unix.S_IFLNK:
		if c.Kind != System && c.Kind != beside {
			return unix.ELOOP
		}
		var text [unix.PathMax]byte
		n, err := unix.Readlinkat(fd, "", text[:])
		c.Link = string(text[:n])
		return err
	}
	return unix.ENOENT // grants hold folders and regular files
}

// strict refuses links on the way; the system's own paths may have them.
func (c *MountSource) strict() uint64 {
	if c.Kind == System {
		return 0
	}
	return unix.RESOLVE_NO_SYMLINKS
}

// scratch is a file system in memory, of this many bytes.
func (s *stage) scratch(size, mode string) (int, error) {
	fd, err := inMemory(size, mode)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	s.own = append(s.own, st.Dev)
	return fd, nil
}

// isOwn reports whether a folder is in a file system of the stage's own: nothing
// is made in those of others.
func (s *stage) isOwn(dir int) bool {
	var st unix.Stat_t
	return unix.Fstat(dir, &st) == nil && slices.Contains(s.own, st.Dev)
}

// empty is a mount with nothing in it: a folder, or a device that may not be
// opened.
func (c *MountSource) empty(s *stage) (int, error) {
	if c.Folder {
		return s.scratch(Small, "755")
	}
	fd, err := unix.Open("/dev/null", unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	return cloned(fd, unix.MountAttr{Attr_set: still | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_RDONLY})
}

// Small is enough for folders without files.
const Small = "1048576"

// begin makes the root: a folder in memory, or the operator's own where the
// agent holds that.
func (s *stage) begin(sources []MountSource) error {
	if len(sources) > 0 && sources[0].Path == "/" && sources[0].Kind == bind && sources[0].Tree >= 0 {
		s.root = sources[0].Tree
	} else {
		var err error
		if s.root, err = s.scratch(Small, "755"); err != nil {
			return err
		}
		s.closing = append(s.closing, s.root)
	}
	// Any folder will do: nothing is opened by a path any more.
	if err := unix.MoveMount(s.root, "", unix.AT_FDCWD, "/proc", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("placing the root: %w", err)
	}
	return nil
}

func (s *stage) set(c *MountSource) error {
	if c.Path == "/" || c.Tree < 0 && c.Link == "" {
		return nil
	}
	dir, err := s.folder(path.Dir(c.Path))
	if err != nil {
		return s.unset(c, err)
	}
	defer unix.Close(dir)
	name := path.Base(c.Path)
	if c.Link != "" {
		if !s.isOwn(dir) {
			return nil
		}
		if err := unix.Symlinkat(c.Link, dir, name); err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
		return nil
	}
	at, err := s.place(dir, name, c.Folder)
	if err != nil {
		return s.unset(c, err)
	}
	defer unix.Close(at)
	if err := unix.MoveMount(c.Tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return s.unset(c, err)
	}
	switch c.Kind {
	case Nothing:
		if c.Folder {
			s.closing = append(s.closing, c.Tree)
		}
	case Devices:
		s.closing = append(s.closing, c.Tree)
		return s.devices(c.Tree)
	}
	return nil
}

// unset is what a source means that has no place: the way to it is a link now, or
// is not there.
func (s *stage) unset(c *MountSource, err error) error {
	if IsOf(err, unix.ENOENT, unix.ELOOP, unix.EACCES, unix.ENOTDIR, unix.EROFS) && c.Kind <= Nothing {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrNotKept, err)
}

func (s *stage) folder(p string) (int, error) {
	at, err := unix.Openat(s.root, ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for name := range strings.SplitSeq(strings.Trim(p, "/"), "/") {
		if err != nil || name == "" {
			break
		}
		var next int
		next, err = s.place(at, name, true)
		_ = unix.Close(at)
		at = next
	}
	return at, err
}

func (s *stage) place(dir int, name string, folder bool) (int, error) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: keepLinks}
	if folder {
		how.Flags |= unix.O_DIRECTORY
	}
	fd, err := unix.Openat2(dir, name, how)
	if !errors.Is(err, unix.ENOENT) || !s.isOwn(dir) {
		return fd, err
	}
	if folder {
		err = unix.Mkdirat(dir, name, 0o755)
	} else if fd, err = unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o444); err == nil {
		err = unix.Close(fd)
	}
	if err != nil {
		return -1, err
	}
	return unix.Openat2(dir, name, how)
}

// devices are the few that act on nothing but the program itself.
func (s *stage) devices(dev int) error {
	for _, name := range s.plan.DeviceNames() {
		fd, err := unix.Open("/dev/"+name, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
		_ = unix.Close(fd)
		if err == nil {
			err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH,
				&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_RDONLY})
		}
		if err != nil {
			return fmt.Errorf("/dev/%s: %w", name, err)
		}
		at, err := s.place(dev, name, false)
		if err == nil {
			err = unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
			_ = unix.Close(at)
		}
		_ = unix.Close(tree)
		if err != nil {
			return fmt.Errorf("/dev/%s: %w", name, err)
		}
	}
	for name, to := range s.plan.DeviceLinks() {
		if err := unix.Symlinkat(to, dev, name); err != nil {
			return err
		}
	}
	if !s.plan.Live {
		return nil
	}
	tree, err := terminals()
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	at, err := s.place(dev, path.Base(TerminalsAt), true)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// words are the files in which programs look up names. Where the operator's own
// are shown they stay.
func (s *stage) words(p *Plan) error {
	etc, err := s.folder("/etc")
	if IsOf(err, unix.ENOENT, unix.EACCES) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(etc)
	if !s.isOwn(etc) {
		return nil
	}
	for name, text := range p.etcFiles() {
		fd, err := unix.Openat(etc, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o444)
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = unix.Write(fd, []byte(text))
		_ = unix.Close(fd)
		if err != nil {
			return err
		}
	}
	return nil
}

// etcFiles are the files in /etc that a lane writes itself.
func (p *Plan) etcFiles() map[string]string {
	work := cmp.Or(p.Work, "/")
	files := map[string]string{
		"passwd": fmt.Sprintf("root:x:0:0::/:/usr/sbin/nologin\nagent:x:%d:%d::%s:/bin/sh\n", InsideID, InsideID,
			work),
		"group":         fmt.Sprintf("root:x:0:\nagent:x:%d:\n", InsideID),
		"hosts":         "127.0.0.1 localhost\n::1 localhost\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	}
	if p.Network {
		maps.Copy(files, networkFiles())
	}
	return files
}

// enter makes the stage the root of this process, and the old one nobody's.
func (s *stage) enter() error {
	for _, m := range s.closing {
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
		if err := unix.MountSetattr(m, "", unix.AT_EMPTY_PATH, &attr); err != nil {
			return fmt.Errorf("closing a folder: %w", err)
		}
	}
	if err := unix.Fchdir(s.root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the old root: %w", err)
	}
	return unix.Chdir("/")
}
