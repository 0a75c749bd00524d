package wasi_test

import (
	"testing"

	"runloop.dev/rlp/internal/effect/wasi"
)

//rlp:holds K13
func TestWithoutFilesNoPathOpens(t *testing.T) {
	bare := newBareGuest(t, wasi.Config{})
	for fd := range uint64(16) {
		bare.want(wasi.EBADF, "fd_prestat_get", fd, atOut)
		want := wasi.EBADF
		if fd < 3 {
			want = wasi.ENOTDIR
		}
		if _, errno := bare.tryOpen(open{dir: max(fd, 1), path: "f"}); errno != want && fd > 0 {
			t.Errorf("fd %d: %v", fd, errno)
		}
	}

	control := newGuest(t, wasi.Config{}) // with files the same open works
	control.fs.WriteFile("/f", "x")
	control.ok("fd_close", control.open(open{path: "f"}))
}

//rlp:holds K15
func TestOnePreopenAndNothingImplicit(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.ok("fd_prestat_get", 3, atOut)
	if g.u32(atOut) != 0 || g.u32(atOut+4) != 1 {
		t.Errorf("prestat is %d, %d", g.u32(atOut), g.u32(atOut+4))
	}
	g.ok("fd_prestat_dir_name", 3, atPath, 1)
	if g.mem[atPath] != '/' {
		t.Errorf("its name is %q", g.mem[atPath])
	}
	g.want(wasi.ENAMETOOLONG, "fd_prestat_dir_name", 3, atPath, 0)
	g.ok("fd_prestat_dir_name", 3, atPath, 9)
	g.want(wasi.EFAULT, "fd_prestat_dir_name", 3, far, 0x20)
	g.want(wasi.EFAULT, "fd_prestat_get", 3, page-7)
	for _, fd := range []uint64{4, 5, 255, 256, 1 << 31, 1<<32 - 1} {
		g.want(wasi.EBADF, "fd_prestat_get", fd, atOut)
		g.want(wasi.EBADF, "fd_prestat_dir_name", fd, atPath, 9)
	}
	if len(g.fs.Calls) != 0 {
		t.Errorf("files were touched: %v", g.fs.Calls)
	}
}

func TestThePreopenItself(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.fs.WriteFile("/a/b", "x")
	g.ok("fd_filestat_get", 3, atData)
	if kind := g.mem[atData+16]; kind != byte(wasi.TypeDirectory) || len(g.fs.Calls) != 0 {
		t.Errorf("type %d, after %v", kind, g.fs.Calls)
	}
	g.ok("fd_sync", 3)
	g.want(wasi.EPERM, "fd_filestat_set_times", 3, 1, 1, 1)
	g.ok("fd_readdir", 3, atData, 1024, 0, atOut)
	if got := g.fs.Calls; len(got) != 1 || got[0] != "open /" {
		t.Errorf("listing the preopen asked for %v", got)
	}
	ptr, n := g.vectors(atData, 8)
	g.want(wasi.EBADF, "fd_read", 3, ptr, n, atOut)
	g.want(wasi.EISDIR, "fd_pread", 3, ptr, n, 0, atOut)
	g.want(wasi.EISDIR, "fd_seek", 3, 0, 0, atOut)
}

func TestListingThePreopenIsTheFilesystemsToAllow(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.fs.Deny("/")
	g.want(wasi.EACCES, "fd_readdir", 3, atData, 1024, 0, atOut)
	g.ok("fd_filestat_get", 3, atData) // known without asking
}

func TestNumbersAreTheLowestFree(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.fs.WriteFile("/f", "x")
	for want := uint64(4); want < 9; want++ {
		if fd := g.open(open{path: "f"}); fd != want {
			t.Fatalf("got %d, want %d", fd, want)
		}
	}
	g.ok("fd_close", 7)
	g.ok("fd_close", 5)
	g.want(wasi.EBADF, "fd_close", 5)
	for _, want := range []uint64{5, 7, 9} {
		if fd := g.open(open{path: "f"}); fd != want {
			t.Errorf("got %d, want %d", fd, want)
		}
	}
	g.ok("fd_close", 0)
	if fd := g.open(open{path: "f"}); fd != 0 {
		t.Errorf("got %d, want 0", fd)
	}
}

func TestDescriptorsAreBounded(t *testing.T) {
	for _, most := range []int{0, 10} {
		g := newGuest(t, wasi.Config{MaxFiles: most})
		g.fs.WriteFile("/f", "x")
		g.fs.Quiet = true
		want := most
		if most == 0 {
			want = wasi.DefaultMaxFiles
		}
		opened := 0
		for {
			_, errno := g.tryOpen(open{path: "f"})
			if errno == wasi.EMFILE {
				break
			}
			if errno != wasi.Success || opened > want {
				t.Fatalf("after %d: %v", opened, errno)
			}
			opened++
		}
		if opened != want-4 {
			t.Errorf("opened %d beside the first four, of %d", opened, want)
		}
		// Nothing is created, truncated or asked for when no number is left.
		g.fs.Quiet = false
		if _, errno := g.tryOpen(open{path: "new", oflags: oCreate}); errno != wasi.EMFILE || len(g.fs.Calls) != 0 {
			t.Errorf("%v after %v", errno, g.fs.Calls)
		}
		g.ok("fd_close", 5)
		g.open(open{path: "f"})
	}
}

func TestRenumberOnlyOntoOpenNumbers(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.fs.WriteFile("/a", "A")
	g.fs.WriteFile("/b", "B")
	a, b := g.open(open{path: "a"}), g.open(open{path: "b"})
	for _, to := range []uint64{6, 255, 256, 1<<31 - 1, 1<<32 - 1} {
		g.want(wasi.EBADF, "fd_renumber", a, to)
		g.want(wasi.EBADF, "fd_renumber", to, a)
	}
	g.ok("fd_renumber", a, a)
	g.ok("fd_renumber", a, b)
	g.want(wasi.EBADF, "fd_close", a)
	if got := g.read(b, 8); got != "A" {
		t.Errorf("read %q", got)
	}
	if g.fs.Opened != 1 {
		t.Errorf("%d files open", g.fs.Opened)
	}
	g.ok("fd_renumber", b, 1) // standard output becomes the file
	g.ok("fd_renumber", 1, 3) // and then the preopen
	g.want(wasi.EBADF, "fd_prestat_get", 3, atOut)
	if _, errno := g.tryOpen(open{path: "a"}); errno != wasi.ENOTDIR {
		t.Errorf("opening below a file: %v", errno)
	}
}

func TestStatusAndFlags(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.fs.WriteFile("/f", "0123")
	fd := g.open(open{path: "f", base: rRead | rWrite | rSetFlags | rSeek, fdflags: fAppend})
	g.ok("fd_fdstat_get", fd, atData)
	if g.mem[atData] != byte(wasi.TypeRegular) || g.mem[atData+2] != fAppend ||
		g.u64(atData+8) != rRead|rWrite|rSetFlags|rSeek || g.u64(atData+16) != 0 {
		t.Errorf("fdstat is % x", g.mem[atData:atData+24])
	}
	g.write(fd, "4")
	g.ok("fd_fdstat_set_flags", fd, 0)
	g.ok("fd_seek", fd, 0, 0, atOut)
	g.write(fd, "x")
	if got, _ := g.fs.ReadFile("/f"); got != "x1234" {
		t.Errorf("file is %q", got)
	}
	g.ok("fd_fdstat_set_flags", fd, fNonblock)
	g.want(wasi.EINVAL, "fd_fdstat_set_flags", fd, 2) // dsync is fixed at open
	g.want(wasi.EINVAL, "fd_fdstat_set_flags", fd, 1<<16)
	g.want(wasi.EBADF, "fd_fdstat_set_flags", 99, 0)
	g.want(wasi.EFAULT, "fd_fdstat_get", fd, page-23)
	g.ok("fd_fdstat_set_flags", 1, fNonblock)

	fixed := g.open(open{path: "f", base: rRead})
	g.want(wasi.ENOTCAPABLE, "fd_fdstat_set_flags", fixed, fAppend)
}

func TestRightsOnlyNarrow(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.fs.WriteFile("/d/f", "x")
	fd := g.open(open{path: "d/f", base: rRead | rSeek | rTell})
	ptr, n := g.vectors(atData, 1)
	g.ok("fd_read", fd, ptr, n, atOut) // control
	g.want(wasi.ENOTCAPABLE, "fd_fdstat_set_rights", fd, rRead|rWrite, 0)
	g.want(wasi.ENOTCAPABLE, "fd_fdstat_set_rights", fd, rRead, rRead)
	g.ok("fd_fdstat_set_rights", fd, rSeek, 0)
	g.want(wasi.EBADF, "fd_read", fd, ptr, n, atOut)
	g.want(wasi.ENOTCAPABLE, "fd_fdstat_set_rights", fd, rRead|rSeek, 0)
	g.ok("fd_seek", fd, 0, 0, atOut)
	g.want(wasi.ENOTCAPABLE, "fd_filestat_get", fd, atData)
	g.want(wasi.ENOTCAPABLE, "fd_allocate", fd, 0, 1)
	g.want(wasi.ENOTCAPABLE, "fd_filestat_set_size", fd, 1)

	// A directory hands down no more than it may.
	dir := g.open(open{path: "d", oflags: oDirectory, inherit: rRead | rStat})
	sub := g.open(open{dir: dir, path: "f", base: rAll, inherit: rAll})
	g.ok("fd_fdstat_get", sub, atData)
	if base := g.u64(atData + 8); base != rRead|rStat {
		t.Errorf("handed down %#x", base)
	}
	g.ok("fd_fdstat_set_rights", dir, 0, 0)
	for name, args := range map[string][]uint64{
		"path_filestat_get": {dir, 0, atPath, 1, atData}, "path_unlink_file": {dir, atPath, 1},
		"path_create_directory": {dir, atPath, 1}, "path_remove_directory": {dir, atPath, 1},
		"path_readlink": {dir, atPath, 1, atData, 8, atOut}, "path_symlink": {atPath, 1, dir, atPath, 1},
		"path_link": {dir, 0, atPath, 1, 3, atPath, 1}, "path_rename": {3, atPath, 1, dir, atPath, 1},
		"path_filestat_set_times": {dir, 0, atPath, 1, 0, 0, 0},
		"path_open":               {dir, 0, atPath, 1, 0, rRead, 0, 0, atOut},
		"fd_readdir":              {dir, atData, 64, 0, atOut},
	} {
		g.want(wasi.ENOTCAPABLE, name, args...)
	}
}

func TestTruncateAndCreateNeedTheirOwnRights(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.fs.WriteFile("/f", "x")
	const create, truncate = 1 << 10, 1 << 19
	g.ok("fd_fdstat_get", 3, atData)
	base, inherit := g.u64(atData+8), g.u64(atData+16)
	g.ok("fd_fdstat_set_rights", 3, base&^truncate, inherit)
	if _, errno := g.tryOpen(open{path: "f", oflags: oTrunc}); errno != wasi.ENOTCAPABLE {
		t.Errorf("truncating: %v", errno)
	}
	g.open(open{path: "new", oflags: oCreate})
	g.ok("fd_fdstat_set_rights", 3, base&^truncate&^create, inherit)
	if _, errno := g.tryOpen(open{path: "newer", oflags: oCreate}); errno != wasi.ENOTCAPABLE {
		t.Errorf("creating: %v", errno)
	}
	if got, _ := g.fs.ReadFile("/f"); got != "x" {
		t.Errorf("file is %q", got)
	}
}
