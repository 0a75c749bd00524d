package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Versions of Landlock by which it can restrict the network, and signals and
// abstract sockets.
const (
	landlockNet   = 4
	LandlockScope = 6
)

// What Landlock lets be done to files, by the version that began it.
const (
	fileReads  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	fileFirst  = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1
	fileBlocks = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK
	// links, and folders
	fileMoves  = unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REFER
	fileSingle = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | fileReads&^
		unix.LANDLOCK_ACCESS_FS_READ_DIR
)

func filesOf(version int) uint64 {
	files := uint64(fileFirst)
	if version >= 2 {
		files |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		files |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 5 {
		files |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return files
}

// Landlock is the kernel's version of Landlock, 0 where it has none.
func Landlock() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// landlockFiles is [landlockProcess], and files can be read and written where the plan says: a
// second wall behind mounts that say the same, and the only one around what is
// hidden in a guarded folder. Where the kernel has no Landlock there is one wall.
func landlockFiles(p *Plan) error {
	version := Landlock()
	hidden := p.hidden()
	if version == 0 && len(hidden) > 0 {
		return fmt.Errorf("%s: %w: the kernel has no Landlock", hidden[0], ErrNotKept)
	}
	if version == 0 && p.Executes != nil {
		return errors.New("what programs execute cannot be bounded: the kernel has no Landlock")
	}
	if version == 0 && p.Links {
		return fmt.Errorf("%w: the kernel has no Landlock", errLinks)
	}
	if version == 0 {
		return nil
	}
	files := filesOf(version)
	set, err := ruleset(version, files, !p.Network)
	if err != nil {
		return err
	}
	defer unix.Close(set)
	if p.Executes != nil {
		files &^= unix.LANDLOCK_ACCESS_FS_EXECUTE
	}
	for path, access := range p.fileRules(files, hidden) {
		if err := addRule(set, path, access&files, 0); err != nil && !IsOf(err, unix.ENOENT, unix.EACCES) {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	for _, path := range p.executable() {
		err := addRule(set, path, unix.LANDLOCK_ACCESS_FS_EXECUTE, keepLinks)
		if err != nil && !IsOf(err, unix.ENOENT, unix.ENOTDIR, unix.EACCES, unix.ELOOP) {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return restrict(set)
}

// fileRules are what may be done with files, by path. A rule holds for all that
// is below it, so that folders above what is hidden have none of reading, and
// their entries have their own.
func (p *Plan) fileRules(files uint64, hidden []string) map[string]uint64 {
	rules := map[string]uint64{}
	above := ways(hidden)
	if len(above) == 0 {
		rules["/"] = fileReads
	}
	for dir := range above {
		list, _ := os.ReadDir(dir)
		for _, e := range list {
			rules[path.Join(dir, e.Name())] = fileReads
		}
	}
	for _, s := range p.Mounts {
		rules[s.Path] |= fileReads
		if s.Access == ReadWrite {
			rules[s.Path] |= files &^ fileBlocks
		}
	}
	for _, dir := range p.Sockets {
		rules[dir] |= unix.LANDLOCK_ACCESS_FS_MAKE_SOCK
	}
	for _, g := range p.guards {
		if !g.covered { // the broker does that
			rules[g.path] &^= fileMoves
		}
	}
	for _, name := range []string{"/dev/null", "/dev/zero", "/dev/full"} {
		rules[name] = fileSingle | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if p.Live {
		rules["/dev/tty"] = fileSingle | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
		rules[TerminalsAt] = fileSingle | fileReads | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	for dir := range above {
		rules[dir] &^= fileReads
	}
	for _, h := range hidden {
		delete(rules, h)
	}
	maps.DeleteFunc(rules, func(_ string, access uint64) bool { return access == 0 })
	return rules
}

// executable are the files, and the folders with all that is below them, that may be
// executed. Landlock takes nothing away below what it gave, so that a folder which
// holds something that is not executed has its entries in its place.
func (p *Plan) executable() []string {
	if p.Executes == nil {
		return nil
	}
	list := append(slices.Clone(p.loaders), p.File)
	if !p.Executes.Others {
		return append(list, p.Executes.Files...)
	}
	never := append(p.writable(), p.Executes.Files...)
	above := ways(never)
	for dir := range above {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if at := path.Join(dir, e.Name()); !above[at] && !slices.Contains(never, at) {
				list = append(list, at)
			}
		}
	}
	return list
}

// writable are the folders and files that programs write.
func (p *Plan) writable() (list []string) {
	for _, m := range p.Mounts {
		if m.Access == ReadWrite {
			list = append(list, m.Path)
		}
	}
	return list
}

func addRule(set int, path string, access, resolve uint64) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: resolve,
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return nil
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= fileSingle | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// LandlockProcess puts this thread and what it starts into a Landlock domain: processes
// outside of it, rlp above all, can be neither traced nor read nor signalled
// from within. Files are left as they are.
func LandlockProcess() error {
	version := Landlock()
	if version < landlockNet {
		return nil
	}
	set, err := ruleset(version, 0, true)
	if err != nil {
		return err
	}
	defer unix.Close(set)
	return restrict(set)
}

// ruleset takes these files, the network where it says so, and what a version has
// beside it.
func ruleset(version int, files uint64, network bool) (int, error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: files}
	size := unsafe.Sizeof(attr.Handled_access_fs)
	if version >= landlockNet {
		size = unsafe.Offsetof(attr.Scoped)
	}
	if version >= landlockNet && network {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if version >= LandlockScope {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		size = unsafe.Offsetof(attr.Scoped) + unsafe.Sizeof(attr.Scoped)
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

func restrict(set int) error {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(set), 0, 0); errno != 0 {
		return errno
	}
	return nil
}
