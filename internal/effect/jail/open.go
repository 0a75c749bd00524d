//go:build linux || darwin

package jail

import (
	"strings"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/wasi"
)

// Open needs read, unless the file is opened for writing alone, and write for
// writing, creating and truncating, whatever the access mode.
func (j *Jail) Open(p string, mustDir bool, o wasi.OpenFlags) (wasi.File, wasi.Errno) {
	w := way{j: j, op: PathOpen, modes: openModes(o), final: mustDir || !o.NoFollow}
	e := w.begin(p)
	if e == 0 && mustDir && o.Create {
		e = wasi.EISDIR
	}
	flags := openFlags(o, mustDir)
	for e == 0 {
		fd, err := j.openBeneath(w.permit, w.root, w.rel, flags, 0o666)
		if err == nil {
			return w.file(fd)
		}
		e = w.failed(err)
	}
	return nil, e
}

func openModes(o wasi.OpenFlags) caps.ModeSet {
	var m caps.ModeSet
	if o.Read || !o.Write {
		m |= read
	}
	if o.Write || o.Create || o.Trunc {
		m |= writ
	}
	return m
}

// openFlags is o as open(2) has it. O_NONBLOCK is for what should not be
// there: a FIFO must be found out, not waited on.
func openFlags(o wasi.OpenFlags, mustDir bool) int {
	flags := unix.O_RDONLY
	switch {
	case o.Write && o.Read:
		flags = unix.O_RDWR
	case o.Write:
		flags = unix.O_WRONLY
	}
	flags |= unix.O_NONBLOCK | unix.O_NOCTTY
	for _, f := range [...]struct {
		on   bool
		flag int
	}{
		{o.Create, unix.O_CREAT},
		{o.Create && o.Exclusive, unix.O_EXCL},
		{o.Trunc, unix.O_TRUNC},
		{o.Append, unix.O_APPEND},
		{o.Directory || mustDir, unix.O_DIRECTORY},
		{o.NoFollow && !mustDir, unix.O_NOFOLLOW},
		{o.Sync, unix.O_SYNC},
		{o.Dsync, oDsync},
	} {
		if f.on {
			flags |= f.flag
		}
	}
	return flags
}

// file wraps the open fd, or closes it if it is nothing that a guest may hold.
func (w *way) file(fd int) (wasi.File, wasi.Errno) {
	kind, _ := kindOf(fd) // 0 is neither
	if kind != unix.S_IFREG && kind != unix.S_IFDIR {
		_ = unix.Close(fd)
		return nil, wasi.EACCES
	}
	return &file{
		fd: fd, gate: w.j.gate, path: strings.Clone(w.path), dir: kind == unix.S_IFDIR,
		permits: [2]gate.Permit{w.permits[caps.Read], w.permits[caps.Write]},
	}, 0
}
