package jail

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/effect/wasi"
)

// markEvery is how many entries lie between two positions that a lister keeps.
const markEvery = 128

// A lister turns the kernel's positions in a directory, which are opaque, into
// WASI's, which count from 0. It keeps the entries from the last position that
// was asked for on, and one kernel position in markEvery to go back by, so that
// its size does not grow with that of the directory.
type lister struct {
	entries []wasi.Dirent // from position first on
	first   uint64
	marks   []int64 // marks[i] is the kernel's position of entry i*markEvery
	next    int64   // the kernel's position after entries
	end     bool
}

// read returns up to n entries from position cookie on.
func (l *lister) read(fd int, cookie uint64, n int) ([]wasi.Dirent, error) {
	if cookie == 0 || cookie < l.first {
		if err := l.back(fd, cookie); err != nil {
			return nil, err
		}
	}
	for {
		if skip := cookie - l.first; skip > 0 {
			skip = min(skip, uint64(len(l.entries)))
			l.entries = append([]wasi.Dirent(nil), l.entries[skip:]...)
			l.first += skip
		}
		if l.end || len(l.entries) >= n { // of a position further on, there is no entry yet
			break
		}
		if err := l.fill(fd); err != nil {
			return nil, err
		}
	}
	n = min(n, len(l.entries))
	return l.entries[:n:n], nil
}

// back goes to the last mark at or before cookie; 0 is a new reading.
func (l *lister) back(fd int, cookie uint64) error {
	if cookie == 0 {
		*l = lister{marks: l.marks[:0]}
	} else {
		i := cookie / markEvery
		*l = lister{marks: l.marks, first: i * markEvery, next: l.marks[i]}
	}
	_, err := unix.Seek(fd, l.next, 0)
	return err
}

func (l *lister) fill(fd int) error {
	var space [8 << 10]byte
	n, err := retry(func() (int, error) { return unix.Getdents(fd, space[:]) })
	if err == unix.ENOENT { // removed while it is open: nothing is in it
		n, err = 0, nil
	}
	if n <= 0 { // -1 with an error
		l.end = true
		return err
	}
	const nameAt = 19 // of struct linux_dirent64: ino, off, reclen, type, name
	for buf := space[:n]; len(buf) > nameAt; {
		size := int(binary.NativeEndian.Uint16(buf[16:]))
		if at := l.first + uint64(len(l.entries)); at == uint64(len(l.marks))*markEvery {
			l.marks = append(l.marks, l.next)
		}
		l.entries = append(l.entries, wasi.Dirent{
			Name: unix.ByteSliceToString(buf[nameAt:size]), Ino: binary.NativeEndian.Uint64(buf),
			Type: typeOf(uint32(buf[18]) << 12),
		})
		l.next = int64(binary.NativeEndian.Uint64(buf[8:]))
		buf = buf[size:]
	}
	return nil
}
