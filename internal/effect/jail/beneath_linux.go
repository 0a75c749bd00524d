package jail

import (
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/wasi"
)

// searchFlags open a handle that only names a file: no right to read it is
// needed, and nothing happens to a FIFO or device.
const searchFlags = unix.O_PATH

// resolveBeneath is how the kernel resolves for a guest: below the handle,
// without links of any kind, without crossing a mount.
const resolveBeneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS |
	unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS

// haveOpenat2 reports whether this kernel, and the filter that the process may
// run under, allow openat2.
var haveOpenat2 = sync.OnceValue(func() bool {
	fd, err := openat2(unix.AT_FDCWD, "/", unix.O_PATH|unix.O_DIRECTORY, 0, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
})

// openAt opens rel beneath the directory at, which is on the device dev,
// without following a link: one on the way, or at the end without O_NOFOLLOW,
// is ELOOP.
func (j *Jail) openAt(at int, dev uint64, rel string, flags int, perm uint32) (int, error) {
	if j.walk {
		return walk(at, dev, rel, flags, perm)
	}
	for {
		fd, err := openat2(at, rel, flags, perm, resolveBeneath)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func (j *Jail) pinPath(p string) (int, error) {
	if !j.walk {
		return openat2(unix.AT_FDCWD, p, unix.O_PATH, 0, unix.RESOLVE_NO_SYMLINKS)
	}
	return walkFromTop(p)
}

// openat2 is the system call without an allocation for paths up to 255 bytes.
func openat2(dir int, p string, flags int, perm uint32, resolve uint64) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: resolve}
	if flags&unix.O_CREAT != 0 {
		how.Mode = uint64(perm)
	}
	var short [256]byte
	buf := short[:]
	if len(p) >= len(short) {
		buf = make([]byte, len(p)+1)
	}
	copy(buf, p)
	fd, _, errno := unix.Syscall6(unix.SYS_OPENAT2, uintptr(dir), uintptr(unsafe.Pointer(&buf[0])),
		uintptr(unsafe.Pointer(&how)), unix.SizeofOpenHow, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// lstat is what rel beneath r is, a link at the end not followed.
func (j *Jail) lstat(p gate.Permit, r *root, rel string, st *wasi.Stat) error {
	dir, err := r.handle(p)
	switch {
	case err != nil:
		return err
	case rel == "":
		return statOf(dir, st)
	case j.walk:
		return j.lstatWalk(p, r, rel, st)
	case strings.IndexByte(rel, '/') < 0:
		if done, err := lstatName(dir, rel, st); done {
			return err
		}
	}
	fd, err := j.openBeneath(p, r, rel, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	err = statOf(fd, st)
	// Closing a handle that only names a file never waits.
	_, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
	return err
}

// lstatName is lstat for a name in the directory dir itself, where no link can
// be on the way: one system call instead of three. It is not done where the
// kernel does not tell mount points apart, as after an error, or the name is long.
func lstatName(dir int, name string, st *wasi.Stat) (done bool, err error) {
	var buf [256]byte
	if len(name) >= len(buf) {
		return false, nil
	}
	copy(buf[:], name)
	var x unix.Statx_t
	_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(dir), uintptr(unsafe.Pointer(&buf[0])),
		unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS, uintptr(unsafe.Pointer(&x)), 0)
	switch {
	case errno == unix.ENOENT: // the error that is asked for most
		return true, errno
	case x.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0:
		return false, nil
	case x.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0:
		return true, unix.EXDEV
	}
	*st = wasi.Stat{
		Dev: unix.Mkdev(x.Dev_major, x.Dev_minor), Ino: x.Ino, Nlink: uint64(x.Nlink), Size: x.Size,
		Type: typeOf(uint32(x.Mode)), Atim: nanos(x.Atime), Mtim: nanos(x.Mtime), Ctim: nanos(x.Ctime),
	}
	return true, nil
}

func nanos(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }
