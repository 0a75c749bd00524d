package lane

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Versions of Landlock by which it can restrict the network, and signals and
// abstract sockets.
const (
	landlockNet   = 4
	landlockScope = 6
)

// What Landlock lets be done to files, by the version that began it.
const (
	fileReads  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	fileFirst  = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1
	fileBlocks = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK
	fileSingle = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | fileReads&^unix.LANDLOCK_ACCESS_FS_READ_DIR
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

// landlock is the kernel's version of Landlock, 0 where it has none.
func landlock() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// fenceFiles is [fence], and files can be read everywhere and written in these
// places alone: a second wall behind mounts that say the same. Where the kernel
// has no Landlock there is one wall.
func fenceFiles(writable []string) error {
	version := landlock()
	if version == 0 {
		return nil
	}
	files := filesOf(version)
	set, err := ruleset(version, files)
	if err != nil {
		return err
	}
	defer unix.Close(set)
	rules := map[string]uint64{"/": fileReads}
	for _, name := range []string{"/dev/null", "/dev/zero", "/dev/full"} {
		rules[name] = fileSingle | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	for _, p := range writable {
		rules[p] = files &^ fileBlocks
	}
	for path, access := range rules {
		if err := addRule(set, path, access&files); err != nil && !isOf(err, unix.ENOENT, unix.EACCES) {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return restrict(set)
}

func addRule(set int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= fileSingle | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// fence puts this thread and what it starts into a Landlock domain: processes
// outside of it, rlp above all, can be neither traced nor read nor signalled
// from within. Files are left as they are.
func fence() error {
	version := landlock()
	if version < landlockNet {
		return nil
	}
	set, err := ruleset(version, 0)
	if err != nil {
		return err
	}
	defer unix.Close(set)
	return restrict(set)
}

// ruleset takes the network, and what a version has beside it, and these files.
func ruleset(version int, files uint64) (int, error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: files}
	size := unsafe.Sizeof(attr.Handled_access_fs)
	if version >= landlockNet {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		size = unsafe.Offsetof(attr.Scoped)
	}
	if version >= landlockScope {
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
