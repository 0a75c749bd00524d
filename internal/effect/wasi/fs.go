// Package wasi is WASI preview 1 as one run sees it: one preopen "/", clocks
// and environment as granted, no sockets, every path handed to an [FS] that
// asks the gate.
//
// The package knows no engine: it is a table of [abi.Func] over a byte slice.
package wasi

// An Errno is an error number of WASI preview 1. Zero is success.
type Errno uint16

// An OpenFlags says how a path is opened; it is what path_open's oflags,
// fdflags and rights come to.
type OpenFlags struct {
	Read, Write                      bool
	Create, Exclusive, Trunc, Append bool
	Directory                        bool // fail unless it is a directory
	NoFollow                         bool // do not follow a final symlink
	NonBlock, Sync, Dsync            bool
}

// A Stat is what filestat holds. Times are nanoseconds since 1970.
type Stat struct {
	Dev, Ino, Nlink, Size uint64
	Type                  FileType
	Atim, Mtim, Ctim      int64
}

// A FileType is WASI's filetype.
type FileType uint8

// The file types that a guest can meet.
const (
	TypeUnknown   FileType = 0
	TypeCharacter FileType = 2
	TypeDirectory FileType = 3
	TypeRegular   FileType = 4
	TypeSymlink   FileType = 7
)

// Times says which of the two times to set. Omit leaves one as it is.
type Times struct {
	Atim, Mtim         int64 // nanoseconds since 1970
	OmitAtim, OmitMtim bool
	NowAtim, NowMtim   bool
}

// A Dirent is one entry of a directory.
type Dirent struct {
	Name string
	Ino  uint64
	Type FileType
}

// An FS does what the path functions ask for, or refuses. Every path is
// absolute and lexically clean ("/a/b", no "." or ".." component, no trailing
// slash); mustDir says that the guest wrote a trailing slash or "/.". Path
// strings are views of a reused buffer: an FS must not keep them after it
// returns. What the policy does not allow is EACCES, and recorded by the FS.
type FS interface {
	Open(path string, mustDir bool, o OpenFlags) (File, Errno)
	Stat(path string, mustDir, follow bool) (Stat, Errno)
	SetTimes(path string, mustDir, follow bool, t Times) Errno
	Mkdir(path string) Errno
	Rmdir(path string) Errno
	Unlink(path string, mustDir bool) Errno
	Rename(from, to string, mustDir bool) Errno
	Link(from string, follow bool, to string) Errno
	Symlink(target, path string) Errno
	// Readlink copies the link's text into buf, cut to its length.
	Readlink(path string, buf []byte) (int, Errno)
}

// A File is one open regular file or directory.
type File interface {
	Stat() (Stat, Errno)
	Read(p []byte) (int, Errno)
	Pread(p []byte, off int64) (int, Errno)
	Write(p []byte) (int, Errno)
	Pwrite(p []byte, off int64) (int, Errno)
	// Lseek is lseek(2). (A method named Seek would have to be io.Seeker's: go vet.)
	Lseek(off int64, whence int) (int64, Errno)
	SetSize(n int64) Errno
	Allocate(off, n int64) Errno
	SetTimes(t Times) Errno
	Sync(dataOnly bool) Errno
	SetAppend(on bool) Errno
	// Readdir returns up to n entries from position cookie on ("." and ".."
	// included), where 0 is the start; fewer than n means the end.
	Readdir(cookie uint64, n int) ([]Dirent, Errno)
	Close() Errno
}
