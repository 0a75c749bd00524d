package sandbox

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mostDeep bounds how many folders are gone up to find where one lies of which the
// kernel does not say it, its path being too long.
const mostDeep = 4096

// pathOf is where an open file or folder lies.
func pathOf(fd int) (string, error) {
	is, err := os.Readlink(own(fd))
	if isTooLong(err) {
		return deepPathOf(fd)
	}
	return absolute(is, err)
}

func absolute(is string, err error) (string, error) {
	if err != nil || !strings.HasPrefix(is, "/") {
		return "", errElsewhere
	}
	return is, nil
}

func isTooLong(err error) bool { return errors.Is(err, unix.ENAMETOOLONG) }

// own is a path by which this process has what a descriptor is.
func own(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// errElsewhere says that a path does not lead into a guarded folder, or that the
// broker cannot tell.
var errElsewhere = errors.New("not in a guarded folder")

// deepPathOf goes up from a folder to one whose path the kernel says, and looks for
// the name of each on the way.
func deepPathOf(fd int) (string, error) {
	var names []string
	for below := fd; len(names) < mostDeep; {
		up, err := unix.Openat(below, "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return "", err
		}
		name, err := nameIn(up, below)
		if below != fd {
			_ = unix.Close(below)
		}
		if below = up; err != nil {
			_ = unix.Close(up)
			return "", err
		}
		names = append(names, name)
		is, err := os.Readlink(own(up))
		if isTooLong(err) {
			continue
		}
		_ = unix.Close(up)
		if is, err = absolute(is, err); err != nil {
			return "", err
		}
		slices.Reverse(names)
		return strings.TrimSuffix(is, "/") + "/" + strings.Join(names, "/"), nil
	}
	return "", unix.ENAMETOOLONG
}

// nameIn is the name that an open folder has in the one above it.
func nameIn(up, fd int) (string, error) {
	var is, st unix.Stat_t
	if err := unix.Fstat(fd, &is); err != nil {
		return "", err
	}
	var buf [8 << 10]byte
	for {
		n, err := unix.ReadDirent(up, buf[:])
		if n <= 0 { // -1 with an error
			return "", errElsewhere
		}
		if err != nil {
			return "", err
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			err := unix.Fstatat(up, name, &st, unix.AT_SYMLINK_NOFOLLOW)
			if err == nil && st.Dev == is.Dev && st.Ino == is.Ino {
				return name, nil
			}
		}
	}
}

// openBelow opens a path from a folder, as openat2 does, of whatever length.
func openBelow(dir int, p string, how *unix.OpenHow) (int, error) {
	at := dir
	for {
		part, rest := cutPath(p)
		step := how
		if rest != "" {
			step = &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: how.Resolve}
		}
		fd, err := unix.Openat2(at, part, step)
		if at != dir {
			_ = unix.Close(at)
		}
		if err != nil || rest == "" {
			return fd, err
		}
		at, p = fd, rest
	}
}

// cutPath is as much of a path as the kernel takes at once, and what comes after it.
func cutPath(p string) (part, rest string) {
	if len(p) < unix.PathMax {
		return p, ""
	}
	end := strings.LastIndexByte(p[:unix.PathMax], '/')
	if end <= 0 {
		return p, ""
	}
	return p[:end], p[end+1:]
}
