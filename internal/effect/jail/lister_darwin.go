package jail

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/effect/wasi"
)

// A lister holds what a directory held when position 0 was last read.
type lister struct{ entries []wasi.Dirent }

// read returns up to n entries from position cookie on.
func (l *lister) read(fd int, cookie uint64, n int) ([]wasi.Dirent, error) {
	if cookie == 0 {
		if err := l.fill(fd); err != nil {
			return nil, err
		}
	}
	rest := l.entries[min(cookie, uint64(len(l.entries))):]
	return rest[:min(n, len(rest))], nil
}

func (l *lister) fill(fd int) error {
	again, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	d := os.NewFile(uintptr(again), ".")
	defer d.Close()
	found, err := d.ReadDir(-1)
	if err != nil {
		return unix.EIO
	}
	var self wasi.Stat
	if err := statOf(fd, &self); err != nil {
		return err
	}
	l.entries = []wasi.Dirent{
		{Name: ".", Ino: self.Ino, Type: wasi.TypeDirectory},
		{Name: "..", Ino: self.Ino, Type: wasi.TypeDirectory},
	}
	for _, e := range found {
		l.entries = append(l.entries, dirent(fd, e))
	}
	return nil
}

func dirent(fd int, e fs.DirEntry) wasi.Dirent {
	var raw unix.Stat_t
	if unix.Fstatat(fd, e.Name(), &raw, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return wasi.Dirent{Name: e.Name()}
	}
	st := statFrom(&raw)
	return wasi.Dirent{Name: e.Name(), Ino: st.Ino, Type: st.Type}
}
