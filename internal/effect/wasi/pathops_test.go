package wasi_test

import (
	"strings"
	"testing"

	"runloop.dev/rlp/internal/effect/wasi"
)

func TestOpenIntentFollowsTheRights(t *testing.T) {
	const create, trunc = oCreate, oTrunc
	for _, c := range []struct {
		base, oflags, fdflags uint64
		want                  wasi.OpenFlags
	}{
		{base: rRead, want: wasi.OpenFlags{Read: true}},
		{base: rWrite, want: wasi.OpenFlags{Write: true}},
		{base: rRead | rWrite, want: wasi.OpenFlags{Read: true, Write: true}},
		{base: rStat, want: wasi.OpenFlags{Read: true}}, // no way to open for nothing
		{base: rReaddir, oflags: oDirectory, want: wasi.OpenFlags{Read: true, Directory: true}},
		{base: rRead, oflags: trunc, want: wasi.OpenFlags{Read: true, Trunc: true}},
		{base: rRead, oflags: create | oExclusive, want: wasi.OpenFlags{Read: true, Create: true, Exclusive: true}},
		{base: rRead | rSetSize | rAllocate, want: wasi.OpenFlags{Read: true}}, // what Go asks for to read
		{base: rWrite, fdflags: fAppend | fNonblock | 16, want: wasi.OpenFlags{
			Write: true, Append: true, NonBlock: true,
			Sync: true,
		}},
		{base: rWrite, fdflags: 2, want: wasi.OpenFlags{Write: true, Dsync: true}},
		{base: rWrite, fdflags: 8, want: wasi.OpenFlags{Write: true, Sync: true}},
	} {
		spy := &openSpy{}
		g := newGuest(t, wasi.Config{FS: spy})
		for _, c.want.NoFollow = range []bool{false, true} {
			_, errno := g.tryOpen(open{path: "f", base: c.base, oflags: c.oflags, fdflags: c.fdflags, noFollow: c.want.NoFollow})
			if errno != wasi.EACCES || spy.flags != c.want {
				t.Errorf("%#x %d %d: %v, %+v, want %+v", c.base, c.oflags, c.fdflags, errno, spy.flags, c.want)
			}
		}
	}
}

// openSpy refuses every open and keeps what was asked.
type openSpy struct {
	wasi.FS
	path    string
	mustDir bool
	flags   wasi.OpenFlags
}

func (s *openSpy) Open(p string, mustDir bool, o wasi.OpenFlags) (wasi.File, wasi.Errno) {
	s.path, s.mustDir, s.flags = strings.Clone(p), mustDir, o
	return nil, wasi.EACCES
}

func TestOpenRefusesWhatItDoesNotKnow(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	for _, o := range []open{
		{path: "f", oflags: 16},
		{path: "f", oflags: 1 << 20},
		{path: "f", fdflags: 32},
		{path: "f", fdflags: 1 << 16},
		{path: "f", oflags: oCreate | oDirectory},
		{path: "f", oflags: oTrunc | oDirectory},
	} {
		if _, errno := g.tryOpen(o); errno != wasi.EINVAL {
			t.Errorf("%+v: %v", o, errno)
		}
	}
	ptr, n := g.put(atPath, "f")
	g.want(wasi.EINVAL, "path_open", 3, 2, ptr, n, 0, rRead, 0, 0, atOut)
	g.want(wasi.EFAULT, "path_open", 3, 0, ptr, n, oCreate, rRead, 0, 0, page-3)
	if len(g.fs.Calls) != 0 {
		t.Errorf("files were touched: %v", g.fs.Calls)
	}
}

func TestOpenBelowADirectory(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.fs.WriteFile("/d/e/f", "deep")
	g.fs.WriteFile("/top", "top")
	d := g.open(open{path: "d/", base: rAll &^ rWrite}) // found to be a directory when first needed
	for text, want := range map[string]string{
		"e/f": "deep", "e/../e//f": "deep", "../top": "top", "/top": "top",
		"./e/./f": "deep",
	} {
		fd := g.open(open{dir: d, path: text})
		if got := g.read(fd, 9); got != want {
			t.Errorf("%s: %q", text, got)
		}
		g.ok("fd_close", fd)
	}
	for text, want := range map[string]wasi.Errno{
		"../../x": wasi.EPERM, "": wasi.ENOENT, "e/f/": wasi.ENOTDIR, "e/f/.": wasi.ENOTDIR,
		"no": wasi.ENOENT, "e/f/x": wasi.ENOTDIR, "a\x00b": wasi.EINVAL, "\xff": wasi.EILSEQ,
	} {
		if _, errno := g.tryOpen(open{dir: d, path: text}); errno != want {
			t.Errorf("%q: %v, want %v", text, errno, want)
		}
	}
	if _, errno := g.tryOpen(open{path: "d", base: rRead | rWrite}); errno != wasi.EISDIR {
		t.Errorf("a directory for writing: %v", errno)
	}
	// The name of a directory survives its number's reuse.
	g.ok("fd_close", d)
	d = g.open(open{path: "d/e", oflags: oDirectory})
	if got := g.read(g.open(open{dir: d, path: "f"}), 9); got != "deep" {
		t.Errorf("read %q", got)
	}
}

func TestDenialReachesTheGuestAsItIs(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.fs.WriteFile("/secret/f", "x")
	g.fs.WriteFile("/f", "x")
	g.fs.Deny("/secret")
	ptr, n := g.put(atPath, "secret/f")
	p2, n2 := g.put(atPath2, "f")
	g.want(wasi.EACCES, "path_filestat_get", 3, 1, ptr, n, atData)
	g.want(wasi.EACCES, "path_filestat_set_times", 3, 1, ptr, n, 1, 1, 1)
	g.want(wasi.EACCES, "path_open", 3, 0, ptr, n, oCreate, rRead, 0, 0, atOut)
	g.want(wasi.EACCES, "path_unlink_file", 3, ptr, n)
	g.want(wasi.EACCES, "path_create_directory", 3, ptr, n)
	g.want(wasi.EACCES, "path_remove_directory", 3, ptr, n)
	g.want(wasi.EACCES, "path_readlink", 3, ptr, n, atData, 8, atOut)
	g.want(wasi.EACCES, "path_symlink", p2, n2, 3, ptr, n)
	g.want(wasi.EACCES, "path_rename", 3, ptr, n, 3, p2, n2)
	g.want(wasi.EACCES, "path_rename", 3, p2, n2, 3, ptr, n)
	g.want(wasi.EACCES, "path_link", 3, 0, ptr, n, 3, p2, n2)
	g.want(wasi.EACCES, "path_link", 3, 0, p2, n2, 3, ptr, n)
	g.ok("path_filestat_get", 3, 1, p2, n2, atData) // control
}

func TestNamesAreMadeAndRemoved(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	do := func(errno wasi.Errno, op string, names ...string) {
		t.Helper()
		p, n := g.put(atPath, names[0])
		p2, n2 := uint64(0), uint64(0)
		if len(names) > 1 {
			p2, n2 = g.put(atPath2, names[1])
		}
		switch op {
		case "path_link":
			g.want(errno, op, 3, 0, p, n, 3, p2, n2)
		case "path_rename":
			g.want(errno, op, 3, p, n, 3, p2, n2)
		case "path_symlink":
			g.want(errno, op, p, n, 3, p2, n2)
		case "path_readlink":
			g.want(errno, op, 3, p, n, atData, 64, atOut)
		case "path_filestat_get":
			g.want(errno, op, 3, 1, p, n, atData)
		default:
			g.want(errno, op, 3, p, n)
		}
	}
	do(0, "path_create_directory", "d/")
	do(wasi.EEXIST, "path_create_directory", "d")
	do(wasi.ENOENT, "path_create_directory", "no/d")
	g.fs.WriteFile("/f", "x")
	do(0, "path_link", "f", "d/g")
	do(wasi.EEXIST, "path_link", "f", "d/g")
	do(wasi.EPERM, "path_link", "d", "h")
	do(wasi.EPERM, "path_link", "d/", "h")
	do(wasi.ENOTDIR, "path_link", "f/", "h")
	do(wasi.ENOENT, "path_link", "f", "h/")
	do(wasi.EEXIST, "path_link", "f", "d/")
	do(wasi.ENOTDIR, "path_link", "f", "f/")
	do(wasi.ENOTEMPTY, "path_remove_directory", "d")
	do(wasi.ENOTDIR, "path_remove_directory", "f")
	do(wasi.EISDIR, "path_unlink_file", "d")
	do(wasi.ENOTDIR, "path_unlink_file", "f/")
	do(0, "path_rename", "d/g", "g")
	do(wasi.ENOTDIR, "path_rename", "g/", "h")
	do(wasi.ENOTDIR, "path_rename", "g", "h/")
	do(wasi.EINVAL, "path_rename", "d", "d/e")
	do(0, "path_rename", "d/", "e/")
	do(0, "path_symlink", "e/../f", "l") // the text of a link is nobody's to clean
	do(wasi.EEXIST, "path_symlink", "f", "l")
	do(wasi.ENOENT, "path_symlink", "f", "new/")
	do(wasi.EEXIST, "path_symlink", "f", "e/")
	do(wasi.ENOENT, "path_symlink", "", "m")
	do(wasi.EINVAL, "path_symlink", "a\x00", "m")
	do(wasi.ENAMETOOLONG, "path_symlink", strings.Repeat("x", 4096), "m")
	do(0, "path_readlink", "l")
	if got := string(g.mem[atData : atData+g.u32(atOut)]); got != "e/../f" {
		t.Errorf("the link reads %q", got)
	}
	do(wasi.EINVAL, "path_readlink", "f")
	do(wasi.ENOTDIR, "path_readlink", "f/")
	do(wasi.EINVAL, "path_readlink", "e/")
	do(0, "path_filestat_get", "l")
	if g.mem[atData+16] != byte(wasi.TypeRegular) {
		t.Errorf("followed to type %d", g.mem[atData+16])
	}
	do(0, "path_unlink_file", "l")
	do(0, "path_remove_directory", "e")
	do(wasi.ENOENT, "path_filestat_get", "e")
}

func TestReadlinkIsCutToTheBuffer(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	target, n := g.put(atPath, "0123456789")
	name, n2 := g.put(atPath2, "l")
	g.ok("path_symlink", target, n, 3, name, n2)
	g.ok("path_readlink", 3, name, n2, atData, 4, atOut)
	if string(g.mem[atData:atData+5]) != "0123\x00" || g.u32(atOut) != 4 {
		t.Errorf("read %q, %d", g.mem[atData:atData+5], g.u32(atOut))
	}
}

func TestStatFollowsOrNot(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.fs.WriteFile("/f", "abc")
	p, n := g.put(atPath2, "f")
	l, ln := g.put(atPath, "l")
	g.ok("path_symlink", p, n, 3, l, ln)
	for follow, want := range []wasi.FileType{wasi.TypeSymlink, wasi.TypeRegular} {
		g.ok("path_filestat_get", 3, uint64(follow), l, ln, atData)
		if got := wasi.FileType(g.mem[atData+16]); got != want {
			t.Errorf("follow=%d: type %d", follow, got)
		}
		g.ok("path_filestat_set_times", 3, uint64(follow), l, ln, 5, 6, 1|4)
	}
	g.want(wasi.EINVAL, "path_filestat_get", 3, 2, l, ln, atData)
	g.want(wasi.EINVAL, "path_filestat_set_times", 3, 1, l, ln, 5, 6, 3)
	g.want(wasi.EINVAL, "path_link", 3, 4, l, ln, 3, p, n)
}
