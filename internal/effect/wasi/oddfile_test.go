package wasi_test

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/effect/wasi"
)

// oddFS opens one file that answers errno to everything, or does all that it is
// asked, and keeps the calls.
type oddFS struct {
	wasi.FS
	errno wasi.Errno
	only  string // the one call that is answered so; "" is all
	calls []string
	stat  wasi.Stat
	seen  []int64 // the numbers that were given
	over  func()  // called before an answer
}

type oddFile struct{ *oddFS }

func (o *oddFS) Open(string, bool, wasi.OpenFlags) (wasi.File, wasi.Errno) { return oddFile{o}, 0 }

func (f oddFile) did(call string, n ...int64) wasi.Errno {
	f.calls, f.seen = append(f.calls, call), append(f.seen, n...)
	if f.over != nil {
		f.over()
	}
	if f.only != "" && f.only != call {
		return 0
	}
	return f.errno
}

func (f oddFile) Stat() (wasi.Stat, wasi.Errno)   { return f.stat, f.did("stat") }
func (f oddFile) Read(p []byte) (int, wasi.Errno) { return f.moved(p), f.did("read") }

func (f oddFile) Pread(p []byte, off int64) (int, wasi.Errno) { return f.moved(p), f.did("pread", off) }

func (f oddFile) Write(p []byte) (int, wasi.Errno) { return f.moved(p), f.did("write") }

func (f oddFile) Pwrite(p []byte, off int64) (int, wasi.Errno) {
	return f.moved(p), f.did("pwrite", off)
}

func (f oddFile) Lseek(off int64, _ int) (int64, wasi.Errno)      { return off, f.did("lseek", off) }
func (f oddFile) SetSize(n int64) wasi.Errno                      { return f.did("setsize", n) }
func (f oddFile) Allocate(off, n int64) wasi.Errno                { return f.did("allocate", off, n) }
func (f oddFile) SetTimes(wasi.Times) wasi.Errno                  { return f.did("settimes") }
func (f oddFile) Readdir(uint64, int) ([]wasi.Dirent, wasi.Errno) { return nil, f.did("readdir") }
func (f oddFile) Close() wasi.Errno                               { return 0 }

func (f oddFile) moved(p []byte) int {
	if f.errno != 0 {
		return 0
	}
	return len(p)
}

func (f oddFile) Sync(dataOnly bool) wasi.Errno {
	return f.did(map[bool]string{true: "datasync", false: "sync"}[dataOnly])
}

func (f oddFile) SetAppend(on bool) wasi.Errno {
	return f.did(map[bool]string{true: "append", false: "no append"}[on])
}

func oddGuest(t *testing.T, kind wasi.FileType) (*guest, *oddFS, uint64) {
	t.Helper()
	odd := &oddFS{stat: wasi.Stat{Dev: 11, Ino: 12, Nlink: 13, Size: 14, Type: kind, Atim: 15, Mtim: 16, Ctim: 17}}
	g := newGuest(t, wasi.Config{FS: odd})
	g.fs = nil
	return g, odd, g.open(open{path: "f", base: rAll})
}

// What a file refuses, whatever the reason, the guest is told as it is.
func TestWhatAFileRefusesIsRefused(t *testing.T) {
	for name, args := range map[string][]uint64{
		"fd_allocate": {0, 0, 1}, "fd_datasync": {0}, "fd_sync": {0}, "fd_fdstat_get": {0, atData}, "fd_fdstat_set_flags": {
			0,
			fAppend,
		},
		"fd_fdstat_set_rights": {0, 0, 0}, "fd_filestat_get": {0, atData}, "fd_filestat_set_size": {0, 1},
		"fd_filestat_set_times": {0, 1, 1, 1},
		"fd_pread":              {0, atVectors, 1, 0, atOut}, "fd_pwrite": {0, atVectors, 1, 0, atOut},
		"fd_seek": {0, 1, 0, atOut}, "fd_tell": {0, atOut},
	} {
		g, odd, fd := oddGuest(t, wasi.TypeRegular)
		g.vectors(atData, 4)
		args[0] = fd
		g.ok(name, args...) // control
		odd.errno = wasi.EACCES
		if name == "fd_fdstat_set_flags" {
			args[1] = 0
		}
		if strings.HasPrefix(name, "fd_fdstat_get") || name == "fd_fdstat_set_rights" { // what is known is not asked again
			fd, _ := g.tryOpen(open{path: "f", base: rAll})
			args[0] = fd
		}
		if strings.HasPrefix(name, "fd_p") {
			g.want(wasi.EACCES, name, args...)
			continue
		}
		g.unchanged(func() { g.want(wasi.EACCES, name, args...) })
		if name == "fd_fdstat_set_flags" {
			odd.errno = 0
			g.ok("fd_fdstat_get", fd, atData)
			if g.mem[atData+2] != fAppend {
				t.Errorf("the flags are %d", g.mem[atData+2])
			}
		}
	}
	g, odd, fd := oddGuest(t, wasi.TypeDirectory)
	g.ok("fd_readdir", fd, atData, 64, 0, atOut)
	odd.errno = wasi.EACCES
	g.want(wasi.EACCES, "fd_readdir", fd, atData, 64, 0, atOut)
	g.want(wasi.EACCES, "fd_readdir", 3, atData, 64, 0, atOut) // the preopen
	second, _ := g.tryOpen(open{path: "f", base: rAll})
	if _, errno := g.tryOpen(open{dir: second, path: "x"}); errno != wasi.ENOTDIR {
		t.Errorf("below what cannot be asked: %v", errno)
	}
	g.want(wasi.EACCES, "fd_seek", second, 0, 0, atOut)
	for _, odd.only = range []string{"", "stat", "lseek"} {
		if got, err := g.poll(sub{kind: 1, fd: uint32(second)}); err != nil || len(got) != 1 || got[0].nbytes != 0 {
			t.Errorf("polled %+v, %v", got, err)
		}
	}
	odd.only = "stat" // what it is, is asked first
	g.want(wasi.EACCES, "fd_seek", second, 0, 0, atOut)
}

// Each function asks the file for what it says, once, with the guest's numbers.
func TestWhatAFileIsAsked(t *testing.T) {
	const most = math.MaxInt64
	for _, c := range []struct {
		name  string
		args  []uint64
		errno wasi.Errno
		calls string
		seen  []int64
	}{
		{"fd_sync", []uint64{0}, 0, "sync", nil},
		{"fd_datasync", []uint64{0}, 0, "datasync", nil},
		{"fd_filestat_set_size", []uint64{0, most}, 0, "stat setsize", []int64{most}},
		{"fd_filestat_set_size", []uint64{0, most + 1}, wasi.EINVAL, "stat", nil},
		{"fd_allocate", []uint64{0, 0, most}, 0, "stat allocate", []int64{0, most}},
		{"fd_allocate", []uint64{0, most - 1, 1}, 0, "stat allocate", []int64{most - 1, 1}},
		{"fd_allocate", []uint64{0, most, 1}, wasi.EFBIG, "stat", nil},
		{"fd_allocate", []uint64{0, 0, most + 1}, wasi.EINVAL, "stat", nil},
		{"fd_allocate", []uint64{0, most + 1, 1}, wasi.EINVAL, "stat", nil},
		{"fd_allocate", []uint64{0, 1, 0}, wasi.EINVAL, "stat", nil},
		{"fd_advise", []uint64{0, most, most, 5}, 0, "", nil},
		{"fd_advise", []uint64{0, most + 1, 1, 5}, wasi.EINVAL, "", nil},
		{"fd_advise", []uint64{0, 1, most + 1, 5}, wasi.EINVAL, "", nil},
		{"fd_fdstat_set_flags", []uint64{0, fAppend}, 0, "append", nil},
		{"fd_fdstat_set_flags", []uint64{0, fNonblock}, 0, "", nil},
		{"fd_pread", []uint64{0, atVectors, 0, most + 1, atOut}, wasi.EINVAL, "stat", nil},
		{"fd_pwrite", []uint64{0, atVectors, 2, most, atOut}, 0, "stat pwrite", []int64{most}},
		{"fd_pwrite", []uint64{0, atVectors, 2, 7, atOut}, 0, "stat pwrite pwrite", []int64{7, 9}},
		// now: what else is given does not count
		{"fd_filestat_set_times", []uint64{0, 1 << 63, 1 << 63, 2 | 8}, 0, "settimes", nil},
		{"fd_filestat_set_times", []uint64{0, 1 << 63, 1, 1 | 4}, wasi.EINVAL, "", nil},
		{"fd_filestat_set_times", []uint64{0, 1, 1 << 63, 1 | 4}, wasi.EINVAL, "", nil},
	} {
		g, odd, fd := oddGuest(t, wasi.TypeRegular)
		g.vectors(atData, 2, atData+2, 2)
		c.args[0] = fd
		g.want(c.errno, c.name, c.args...)
		if calls := strings.Join(odd.calls, " "); calls != c.calls || !slices.Equal(odd.seen, c.seen) {
			t.Errorf("%s%v: asked for %q with %v", c.name, c.args, calls, odd.seen)
		}
	}
	g, _, fd := oddGuest(t, wasi.TypeRegular)
	g.ok("fd_filestat_get", fd, atData)
	for i, want := range []uint64{11, 12, uint64(wasi.TypeRegular), 13, 14, 15, 16, 17} {
		if got := g.u64(atData + 8*uint64(i)); got != want {
			t.Errorf("field %d of the filestat is %d, not %d", i, got, want)
		}
	}
}

// What is listed while the run ends ends with it.
func TestListingEndsWithTheRun(t *testing.T) {
	g, odd, fd := oddGuest(t, wasi.TypeDirectory)
	g.ok("fd_readdir", fd, atData, 64, 0, atOut) // control
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(context.Background())
	g.ctx, odd.over = ctx, func() { cancel(over) }
	if _, err := g.try("fd_readdir", fd, atData, 64, 0, atOut); !errors.Is(err, over) {
		t.Errorf("%v", err)
	}
	asked := len(odd.calls)
	if _, err := g.try("fd_readdir", fd, atData, 64, 0, atOut); !errors.Is(err, over) || len(odd.calls) != asked {
		t.Errorf("%v, asked again: %v", err, odd.calls)
	}
	g = newBareGuest(t, wasi.Config{})
	g.ctx = ctx
	if _, err := g.poll(sub{kind: 2, fd: 1}); !errors.Is(err, over) {
		t.Errorf("polling what is ready: %v", err)
	}
}

// The preopen stays the folder that no one has looked at, also once it is open.
func TestThePreopenIsNotAskedAbout(t *testing.T) {
	g, odd, _ := oddGuest(t, wasi.TypeDirectory)
	g.ok("fd_readdir", 3, atData, 64, 0, atOut)
	odd.errno, odd.calls = wasi.EACCES, nil
	g.ok("fd_filestat_get", 3, atData)
	if len(odd.calls) != 0 || g.u64(atData+24) != 1 || g.u64(atData) != 0 {
		t.Errorf("asked %v, %d links on device %d", odd.calls, g.u64(atData+24), g.u64(atData))
	}
}

// What a descriptor may be used for is what its kind can do, and its rights say.
func TestRightsOfEachKind(t *testing.T) {
	const advise, sync, datasync, pathOpen = 1 << 7, 1 << 4, 1, 1 << 13
	g := newGuest(t, wasi.Config{})
	g.fs.WriteFile("/d/f", "x")
	rights := func(fd uint64) (base, inherited uint64) {
		g.ok("fd_fdstat_get", fd, atData)
		return g.u64(atData + 8), g.u64(atData + 16)
	}
	if base, inherited := rights(g.open(open{path: "d"})); base&(rRead|rSeek|rTell|rWrite|rAllocate|rSetSize) != 0 ||
		base&(pathOpen|rReaddir|rStat) != pathOpen|rReaddir|rStat || inherited&(rRead|rReaddir) != rRead|rReaddir {
		t.Errorf("a folder: %#x, %#x", base, inherited)
	}
	file := g.open(open{path: "d/f", base: rAll})
	if base, inherited := rights(file); base&(rReaddir|pathOpen) != 0 || base&(rRead|rWrite|rSeek) != rRead|rWrite|rSeek ||
		inherited != 0 {
		t.Errorf("a file: %#x, %#x", base, inherited)
	}
	none := g.open(open{path: "d/f", base: rStat})
	for name, args := range map[string][]uint64{
		"fd_advise": {none, 0, 1, 0}, "fd_sync": {none}, "fd_datasync": {none}, "fd_seek": {none, 0, 0, atOut},
		"fd_tell": {none, atOut},
	} {
		g.want(wasi.ENOTCAPABLE, name, args...)
	}
	tell := g.open(open{path: "d/f", base: rTell | advise | sync | datasync})
	g.ok("fd_tell", tell, atOut)
	g.ok("fd_seek", tell, 0, 1, atOut) // which tells
	g.want(wasi.ENOTCAPABLE, "fd_seek", tell, 1, 1, atOut)
	g.want(wasi.ENOTCAPABLE, "fd_seek", tell, 0, 0, atOut)
	g.ok("fd_advise", tell, 0, 1, 0)
	seek := g.open(open{path: "d/f", base: rSeek})
	g.ok("fd_tell", seek, atOut)
	g.ok("fd_seek", seek, 0, 1, atOut)
	for _, fd := range []uint64{0, 1, seek} {
		g.want(wasi.EBADF, "fd_prestat_dir_name", fd, atPath, 9)
	}
}

// The flags that are fixed at open stay; the others are what was set last.
func TestFlagsAreKept(t *testing.T) {
	const dsync, rsync, sync = 2, 8, 16
	g := newGuest(t, wasi.Config{})
	g.fs.WriteFile("/f", "x")
	flags := func(fd uint64) byte {
		g.ok("fd_fdstat_get", fd, atData)
		return g.mem[atData+2]
	}
	fd := g.open(open{path: "f", base: rAll, fdflags: fAppend | dsync | fNonblock | rsync | sync})
	g.ok("fd_fdstat_set_flags", fd, dsync|rsync|sync)
	if got := flags(fd); got != dsync|rsync|sync {
		t.Errorf("flags %d", got)
	}
	g.ok("fd_fdstat_set_flags", fd, fAppend|dsync|fNonblock|rsync|sync)
	if got := flags(fd); got != fAppend|dsync|fNonblock|rsync|sync {
		t.Errorf("flags %d", got)
	}
	g.ok("fd_fdstat_set_flags", 1, fAppend|fNonblock) // a stream is no file
	if got := flags(1); got != fAppend|fNonblock {
		t.Errorf("flags of a stream %d", got)
	}
}

// A stream that breaks in the middle has taken what it took, and no more is given
// to it; one that says what cannot be is broken.
func TestStreamsThatBreak(t *testing.T) {
	for name, c := range map[string]struct {
		answers []int // of each write; the last with an error
		broken  bool
		errno   wasi.Errno
		want    uint32
		writes  int
	}{
		"breaks at once":       {answers: []int{0}, broken: true, errno: wasi.EIO, writes: 1},
		"takes all and breaks": {answers: []int{4}, broken: true, want: 4, writes: 1},
		"breaks at the second": {answers: []int{4, 2}, broken: true, want: 6, writes: 2},
		"takes nothing":        {answers: []int{0}, writes: 1},
		"takes less":           {answers: []int{4, 1}, want: 5, writes: 2},
		"takes too much":       {answers: []int{5}, errno: wasi.EIO, writes: 1},
		"takes less than none": {answers: []int{-1}, errno: wasi.EIO, writes: 1},
	} {
		writes := 0
		g := newBareGuest(t, wasi.Config{Stdout: writerFunc(func(p []byte) (int, error) {
			writes++
			n := c.answers[writes-1]
			if c.broken && writes == len(c.answers) {
				return n, io.ErrClosedPipe
			}
			return n, nil
		})})
		ptr, n := g.vectors(atData, 4, atData, 4, atData, 4)
		g.want(c.errno, "fd_write", 1, ptr, n, atOut)
		if writes != c.writes || c.errno == 0 && g.u32(atOut) != c.want {
			t.Errorf("%s: %d writes, %d bytes", name, writes, g.u32(atOut))
		}
	}
	writes := 0
	g := newBareGuest(t, wasi.Config{Stdout: writerFunc(func(p []byte) (int, error) {
		writes++
		return len(p),
			io.ErrClosedPipe
	})})
	g.mem = make([]byte, 5<<20)
	ptr, n := g.vectors(atData, 4<<20)
	g.ok("fd_write", 1, ptr, n, atOut)
	if writes != 1 || g.u32(atOut) != 1<<20 {
		t.Errorf("%d writes of one buffer, %d bytes", writes, g.u32(atOut))
	}
}

// One read of a stream gives what is there, into the first buffer with room.
func TestAStreamIsReadOnce(t *testing.T) {
	g := newBareGuest(t, wasi.Config{Stdin: strings.NewReader("abcdef")})
	ptr, n := g.vectors(atData, 0, atData, 2, atData+8, 2)
	g.ok("fd_read", 0, ptr, n, atOut)
	if got := string(g.mem[atData : atData+10]); g.u32(atOut) != 2 || got != "ab\x00\x00\x00\x00\x00\x00\x00\x00" {
		t.Errorf("read %d: %q", g.u32(atOut), got)
	}
	g.polled([]answer{{userdata: 100, kind: 1, nbytes: 4}}, sub{kind: 1})
	if got := g.read(0, 9); got != "cdef" {
		t.Errorf("then %q", got)
	}
	none := newBareGuest(t, wasi.Config{})
	if got := none.read(0, 9); got != "" {
		t.Errorf("read %q of no input", got)
	}
	broken := newBareGuest(t, wasi.Config{Stdin: lengthyReader{}})
	ptr, n = broken.vectors(atData, 2)
	broken.want(wasi.EIO, "fd_read", 0, ptr, n, atOut)
}

// lengthyReader says that it is in memory, and breaks.
type lengthyReader struct{ brokenReader }

func (lengthyReader) Len() int { return 4 }

// Where a read writes over the list of its own buffers, nothing beyond memory is
// reached.
func TestBuffersThatAReadWritesOver(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.fs.WriteFile("/f", "\xf0\xff\xff\xff\x40\x00\x00\x00and more")
	fd := g.open(open{path: "f"})
	ptr, n := g.vectors(atVectors+8, 8, atData, 4)
	g.ok("fd_read", fd, ptr, n, atOut)
	if g.u32(atOut) != 8 {
		t.Errorf("read %d", g.u32(atOut))
	}
}

// What was refused once is told once.
func TestARefusedPathIsToldOnce(t *testing.T) {
	told := 0
	g := newGuest(t, wasi.Config{OnReject: func(string, []byte) { told++ }})
	if _, errno := g.tryOpen(open{path: "../x"}); errno != wasi.EPERM || told != 1 {
		t.Fatalf("%v, told %d times", errno, told)
	}
	g.ok("sched_yield")
	g.want(wasi.EBADF, "fd_close", 99)
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

// To create and to truncate need rights; to open what is there needs neither.
func TestOpeningWithoutTheRightToCreate(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.fs.WriteFile("/f", "x")
	g.ok("fd_fdstat_get", 3, atData)
	g.ok("fd_fdstat_set_rights", 3, g.u64(atData+8)&^(1<<10|1<<19), g.u64(atData+16))
	g.open(open{path: "f"})
	l, n := g.put(atPath, "f")
	g.want(wasi.EINVAL, "path_filestat_set_times", 3, 2, l, n, 5, 6, 1)
}
