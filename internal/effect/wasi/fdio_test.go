package wasi_test

import (
	"math"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/effect/wasi/wasitest"
)

func TestReadAndWriteFiles(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	fd := g.open(open{path: "f", oflags: oCreate, base: rAll})
	g.put(atData, "hello world")
	ptr, n := g.vectors(atData, 6, atData, 0, atData+6, 5)
	g.ok("fd_write", fd, ptr, n, atOut)
	if got, _ := g.fs.ReadFile("/f"); g.u32(atOut) != 11 || got != "hello world" {
		t.Errorf("wrote %d, file is %q", g.u32(atOut), got)
	}
	g.ok("fd_tell", fd, atOut)
	if g.u64(atOut) != 11 {
		t.Errorf("at %d", g.u64(atOut))
	}
	for _, c := range []struct{ off, whence, want uint64 }{{2, 0, 2}, {3, 1, 5}, {^uint64(0), 2, 10}, {0, 1, 10}} {
		g.ok("fd_seek", fd, c.off, c.whence, atOut)
		if g.u64(atOut) != c.want {
			t.Errorf("seek %d from %d is %d", int64(c.off), c.whence, g.u64(atOut))
		}
	}
	g.want(wasi.EINVAL, "fd_seek", fd, ^uint64(0), 0, atOut)
	g.want(wasi.EINVAL, "fd_seek", fd, 0, 3, atOut)
	g.want(wasi.EFAULT, "fd_seek", fd, 4, 0, page-7)
	g.ok("fd_tell", fd, atOut)
	if g.u64(atOut) != 10 {
		t.Errorf("a faulting seek moved to %d", g.u64(atOut))
	}

	ptr, n = g.vectors(atData, 2, atData+8, 3)
	g.ok("fd_pread", fd, ptr, n, 6, atOut)
	if got := string(g.mem[atData:atData+2]) + string(g.mem[atData+8:atData+11]); got != "world" || g.u32(atOut) != 5 {
		t.Errorf("pread %q", got)
	}
	g.put(atData, "XY")
	ptr, n = g.vectors(atData, 1, atData+1, 1)
	g.ok("fd_pwrite", fd, ptr, n, 4, atOut)
	if got, _ := g.fs.ReadFile("/f"); got != "hellXYworld" {
		t.Errorf("file is %q", got)
	}
	g.want(wasi.EINVAL, "fd_pread", fd, ptr, n, math.MaxInt64+1, atOut)
	g.want(wasi.EINVAL, "fd_pwrite", fd, ptr, n, math.MaxUint64, atOut)
	g.want(wasi.EFBIG, "fd_pwrite", fd, ptr, n, math.MaxInt64, atOut)
}

func TestShortReadsStopAtTheFirstShortBuffer(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.fs.WriteFile("/f", "abc")
	fd := g.open(open{path: "f"})
	ptr, n := g.vectors(atData, 2, atData+16, 9, atData+32, 9)
	g.ok("fd_read", fd, ptr, n, atOut)
	if g.u32(atOut) != 3 || string(g.mem[atData:atData+2]) != "ab" || g.mem[atData+16] != 'c' || g.mem[atData+32] != 0 {
		t.Errorf("read %d", g.u32(atOut))
	}
	g.ok("fd_read", fd, ptr, n, atOut)
	if g.u32(atOut) != 0 {
		t.Errorf("read %d at the end", g.u32(atOut))
	}
}

// slowFS gives and takes a byte at a time.
type slowFS struct{ *wasitest.FS }

type slowFile struct{ wasi.File }

func (s slowFS) Open(p string, mustDir bool, o wasi.OpenFlags) (wasi.File, wasi.Errno) {
	f, errno := s.FS.Open(p, mustDir, o)
	return slowFile{f}, errno
}

func (f slowFile) Read(p []byte) (int, wasi.Errno)            { return f.File.Read(p[:1]) }
func (f slowFile) Write(p []byte) (int, wasi.Errno)           { return f.File.Write(p[:1]) }
func (f slowFile) Pread(p []byte, o int64) (int, wasi.Errno)  { return f.File.Pread(p[:1], o) }
func (f slowFile) Pwrite(p []byte, o int64) (int, wasi.Errno) { return f.File.Pwrite(p[:1], o) }

// What is short is the end of the call: going on with the next buffer would
// leave a hole in this one.
func TestNoBufferIsSkipped(t *testing.T) {
	files := wasitest.NewFS()
	files.WriteFile("/f", "abcdef")
	g := newGuest(t, wasi.Config{FS: slowFS{files}})
	fd := g.open(open{path: "f", base: rAll})
	for name, args := range map[string][]uint64{
		"fd_read": {fd, 0, 0, atOut}, "fd_write": {fd, 0, 0, atOut},
		"fd_pread": {fd, 0, 0, 0, atOut}, "fd_pwrite": {fd, 0, 0, 0, atOut},
	} {
		args[1], args[2] = g.vectors(atData, 2, atData+8, 2)
		clear(g.mem[atData : atData+16])
		g.ok(name, args...)
		if n := g.u32(atOut); n != 1 || g.mem[atData+8] != 0 {
			t.Errorf("%s moved %d", name, n)
		}
	}
}

func TestVectorsAreChecked(t *testing.T) {
	g := newGuest(t, wasi.Config{Stdin: strings.NewReader("input")})
	g.fs.WriteFile("/f", "abcdef")
	fd := g.open(open{path: "f", base: rAll})
	for _, name := range []string{"fd_read", "fd_write", "fd_pread", "fd_pwrite"} {
		call := func(errno wasi.Errno, ptr, n, out uint64) {
			t.Helper()
			g.unchanged(func() {
				if strings.HasPrefix(name, "fd_p") {
					g.want(errno, name, fd, ptr, n, 0, out)
				} else {
					g.want(errno, name, fd, ptr, n, out)
				}
			})
		}
		ptr, n := g.vectors(atData, 3, page-2, 3)
		call(wasi.EFAULT, ptr, n, atOut) // the second buffer: the first is not touched
		ptr, n = g.vectors(atData, 3, far, 3)
		call(wasi.EFAULT, ptr, n, atOut)
		ptr, n = g.vectors(atData, far)
		call(wasi.EFAULT, ptr, n, atOut)
		ptr, n = g.vectors(atData, 3)
		call(wasi.EFAULT, ptr, n, page-3)
		call(wasi.EFAULT, page-4, 1, atOut)
		call(wasi.EFAULT, far, 2, atOut)
		call(wasi.EINVAL, ptr, 1025, atOut)
		call(wasi.EINVAL, ptr, 1<<32-1, atOut)
		call(wasi.EINVAL, ptr, 1<<29, atOut) // 8 * 2^29 is 0 in 32 bits
	}
	if got, _ := g.fs.ReadFile("/f"); got != "abcdef" {
		t.Errorf("file is %q", got)
	}
}

func TestOverlongVectorsAreRefused(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.fs.WriteFile("/f", "x")
	fd := g.open(open{path: "f"})
	g.mem = make([]byte, 4<<20)
	pairs := make([]uint64, 2*1024)
	for i := 1; i < len(pairs); i += 2 {
		pairs[i] = 4 << 20 // 1024 times the whole memory is 4 GiB
	}
	ptr, n := g.vectors(pairs...)
	g.want(wasi.EINVAL, "fd_read", fd, ptr, n, atOut)
}

// A guest may lay its array of vectors where the read will write.
func TestVectorsOverwrittenByTheirOwnRead(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.fs.WriteFile("/f", strings.Repeat("\xff", 64))
	fd := g.open(open{path: "f"})
	ptr, n := g.vectors(atVectors, 16, atData, 8)
	g.ok("fd_read", fd, ptr, n, atOut) // the second vector is 0xffffffff bytes at 0xffffffff by then
	if g.u32(atOut) != 16 {
		t.Errorf("read %d", g.u32(atOut))
	}
}

func TestSizesTimesAndAdvice(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.fs.WriteFile("/f", "abc")
	fd := g.open(open{path: "f", base: rAll})
	g.ok("fd_filestat_set_size", fd, 5)
	g.ok("fd_allocate", fd, 6, 4)
	g.ok("fd_filestat_get", fd, atData)
	if g.u64(atData+32) != 10 || g.mem[atData+16] != byte(wasi.TypeRegular) || g.u64(atData+24) != 1 {
		t.Errorf("filestat is % x", g.mem[atData:atData+64])
	}
	g.want(wasi.EINVAL, "fd_filestat_set_size", fd, math.MaxInt64+1)
	g.want(wasi.EINVAL, "fd_allocate", fd, 0, 0)
	g.want(wasi.EINVAL, "fd_allocate", fd, math.MaxInt64+1, 1)
	g.want(wasi.EFBIG, "fd_allocate", fd, math.MaxInt64, 2)
	g.want(wasi.EFBIG, "fd_filestat_set_size", fd, 1<<40) // the files' own limit

	g.ok("fd_filestat_set_times", fd, 7, 9, 1|4)
	g.ok("fd_filestat_get", fd, atData)
	if g.u64(atData+40) != 7 || g.u64(atData+48) != 9 {
		t.Errorf("times are %d, %d", g.u64(atData+40), g.u64(atData+48))
	}
	g.ok("fd_filestat_set_times", fd, 100, 100, 8) // mtim now, atim left
	g.ok("fd_filestat_get", fd, atData)
	if g.u64(atData+40) != 7 || g.u64(atData+48) <= 100 {
		t.Errorf("times are %d, %d", g.u64(atData+40), g.u64(atData+48))
	}
	for _, flags := range []uint64{1 | 2, 4 | 8, 16, 1 << 20} {
		g.want(wasi.EINVAL, "fd_filestat_set_times", fd, 1, 1, flags)
	}
	g.want(wasi.EINVAL, "fd_filestat_set_times", fd, math.MaxInt64+1, 1, 1)

	for advice := range uint64(6) {
		g.ok("fd_advise", fd, 0, 10, advice)
	}
	g.want(wasi.EINVAL, "fd_advise", fd, 0, 10, 6)
	g.want(wasi.EINVAL, "fd_advise", fd, math.MaxUint64, 10, 0)
	g.ok("fd_sync", fd)
	g.ok("fd_datasync", fd)
	for _, name := range []string{"fd_sync", "fd_datasync"} {
		g.want(wasi.EBADF, name, 99)
	}
}

// What a guest reads from a descriptor that is not open is EBADF, of every
// function and every number.
func TestNumbersThatAreNotOpen(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	for name, f := range g.funcs {
		if !strings.HasPrefix(name, "fd_") && !strings.HasPrefix(name, "path_") && !strings.HasPrefix(name, "sock_") {
			continue
		}
		for _, fd := range []uint64{4, 200, 256, 1 << 31, 1<<32 - 1} {
			args := make([]uint64, len(f.Params))
			for i := range args {
				args[i] = 0x40
			}
			args[0] = fd
			switch name {
			case "path_symlink":
				args[0], args[2] = 0x40, fd
			case "path_link":
				args[1] = 0
			case "path_open":
				args[1], args[4], args[7] = 0, 0, 0
			}
			g.want(wasi.EBADF, name, args...)
		}
	}
}
