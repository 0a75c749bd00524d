//go:build linux || darwin

package jail

import (
	"os"
	"strconv"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/wasi"
)

// fileIn opens p.grant/f through a jail of its own.
func fileIn(t *testing.T, o wasi.OpenFlags, text string) (wasi.File, *walker, place) {
	t.Helper()
	p := newPlace(t)
	put(t, p.grant+"/f", text)
	j, g := open(t, false, rule{p.grant, all})
	f, e := j.Open(p.grant+"/f", false, o)
	if e != 0 {
		t.Fatalf("open: errno %d", e)
	}
	t.Cleanup(func() { f.Close() })
	return f, g, p
}

func TestReadWriteSeek(t *testing.T) {
	f, _, p := fileIn(t, wasi.OpenFlags{Read: true, Write: true}, "0123456789")
	buf := make([]byte, 4)
	n, e := f.Read(buf)
	if n != 4 || e != 0 || string(buf) != "0123" {
		t.Errorf("Read: %q, errno %d", buf[:n], e)
	}
	n, e = f.Pread(buf, 7)
	if n != 3 || e != 0 || string(buf[:n]) != "789" {
		t.Errorf("Pread: %q, errno %d", buf[:n], e)
	}
	if n, e = f.Write([]byte("ab")); n != 2 || e != 0 {
		t.Errorf("Write: %d, errno %d", n, e)
	}
	if n, e = f.Pwrite([]byte("z"), 9); n != 1 || e != 0 {
		t.Errorf("Pwrite: %d, errno %d", n, e)
	}
	for _, s := range []struct {
		off    int64
		whence int
		at     int64
		e      wasi.Errno
	}{
		{0, 1, 6, 0},
		{2, 0, 2, 0},
		{-1, 2, 9, 0},
		{-1, 0, 0, wasi.EINVAL},
		{0, 3, 0, wasi.EINVAL},
		{0, -1, 0, wasi.EINVAL},
	} {
		if at, e := f.Lseek(s.off, s.whence); at != s.at || e != s.e {
			t.Errorf("Lseek(%d, %d) = %d, errno %d", s.off, s.whence, at, e)
		}
	}
	want(t, "Sync", f.Sync(false), 0)
	want(t, "Sync of data", f.Sync(true), 0)
	if text, _ := os.ReadFile(p.grant + "/f"); string(text) != "0123ab678z" {
		t.Errorf("the file is %q", text)
	}
	want(t, "Close", f.Close(), 0)
	want(t, "Close again", f.Close(), wasi.EBADF)
	_, e = f.Read(buf)
	want(t, "Read after Close", e, wasi.EBADF)
	want(t, "SetTimes after Close", f.SetTimes(wasi.Times{}), wasi.EBADF)
}

func TestSizes(t *testing.T) {
	f, _, _ := fileIn(t, wasi.OpenFlags{Read: true, Write: true}, "0123456789")
	want(t, "shrink", f.SetSize(3), 0)
	want(t, "grow by a hole", f.SetSize(1<<40), 0)
	st, e := f.Stat()
	if e != 0 || st.Size != 1<<40 || st.Type != wasi.TypeRegular || st.Nlink != 1 {
		t.Errorf("Stat: %+v, errno %d", st, e)
	}
	want(t, "negative", f.SetSize(-1), wasi.EINVAL)
	want(t, "shrink", f.SetSize(0), 0)
	if e := f.Allocate(0, 4096); e != 0 && e != wasi.ENOTSUP {
		t.Errorf("Allocate: errno %d", e)
	}
	want(t, "Allocate nothing", f.Allocate(0, 0), wasi.EINVAL)
}

func TestAppend(t *testing.T) {
	f, _, p := fileIn(t, wasi.OpenFlags{Write: true, Append: true}, "one")
	text := func() string { b, _ := os.ReadFile(p.grant + "/f"); return string(b) }
	f.Write([]byte("two"))
	if text() != "onetwo" {
		t.Errorf("append: %q", text())
	}
	want(t, "SetAppend", f.SetAppend(false), 0)
	f.Lseek(0, 0)
	f.Write([]byte("ONE"))
	want(t, "SetAppend", f.SetAppend(true), 0)
	f.Write([]byte("."))
	if text() != "ONEtwo." {
		t.Errorf("append off and on: %q", text())
	}
}

func TestTimes(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		must(t, os.Mkdir(p.grant+"/d", 0o755))
		put(t, p.grant+"/d/f", "")
		must(t, os.Symlink("f", p.grant+"/d/l"))
		j, _ := open(t, walk, rule{p.grant, all})
		stat := func(name string, follow bool) wasi.Stat {
			st, e := j.Stat(p.grant+name, false, follow)
			want(t, "stat "+name, e, 0)
			return st
		}
		now := stat("/d/f", true).Mtim
		want(t, "through the link", j.SetTimes(p.grant+"/d/l", false, true, wasi.Times{Atim: 1e18 + 7, Mtim: 2e18 + 9}), 0)
		want(t, "of the link", j.SetTimes(p.grant+"/d/l", false, false, wasi.Times{Mtim: 3e18, OmitAtim: true}), 0)
		if st := stat("/d/f", true); st.Atim != 1e18+7 || st.Mtim != 2e18+9 || st.Ctim < now {
			t.Errorf("the file's are %+v", st)
		}
		if st := stat("/d/l", false); st.Mtim != 3e18 || st.Type != wasi.TypeSymlink {
			t.Errorf("the link's are %+v", st)
		}
		want(t, "now", j.SetTimes(p.grant+"/d/f", false, true, wasi.Times{NowMtim: true, OmitAtim: true}), 0)
		if st := stat("/d/f", true); st.Atim != 1e18+7 || st.Mtim < now {
			t.Errorf("now: %+v", st)
		}
		want(t, "of a file as a directory", j.SetTimes(p.grant+"/d/f", true, true, wasi.Times{}), wasi.ENOTDIR)
		for _, o := range []wasi.OpenFlags{{Read: true}, {Write: true}} {
			f, e := j.Open(p.grant+"/d/f", false, o)
			want(t, "open", e, 0)
			want(t, "by descriptor", f.SetTimes(wasi.Times{Atim: 4e18, OmitMtim: true}), 0)
			f.Close()
		}
		if st := stat("/d/f", true); st.Atim != 4e18 {
			t.Errorf("by descriptor: %+v", st)
		}
	})
}

// TestRevoked: a descriptor is worth what its grant is worth now, and its
// refusal is on record once.
func TestRevoked(t *testing.T) {
	buf := make([]byte, 4)
	for op, do := range map[Op]func(f wasi.File) wasi.Errno{
		FdRead:             func(f wasi.File) wasi.Errno { _, e := f.Read(buf); return e },
		FdPread:            func(f wasi.File) wasi.Errno { _, e := f.Pread(buf, 0); return e },
		FdWrite:            func(f wasi.File) wasi.Errno { _, e := f.Write(buf); return e },
		FdPwrite:           func(f wasi.File) wasi.Errno { _, e := f.Pwrite(buf, 0); return e },
		FdSeek:             func(f wasi.File) wasi.Errno { _, e := f.Lseek(0, 0); return e },
		FdFilestatGet:      func(f wasi.File) wasi.Errno { _, e := f.Stat(); return e },
		FdFilestatSetSize:  func(f wasi.File) wasi.Errno { return f.SetSize(4) },
		FdAllocate:         func(f wasi.File) wasi.Errno { return f.Allocate(0, 4) },
		FdFilestatSetTimes: func(f wasi.File) wasi.Errno { return f.SetTimes(wasi.Times{}) },
		FdSync:             func(f wasi.File) wasi.Errno { return f.Sync(false) },
		FdDatasync:         func(f wasi.File) wasi.Errno { return f.Sync(true) },
		FdFdstatSetFlags:   func(f wasi.File) wasi.Errno { return f.SetAppend(true) },
	} {
		t.Run(op.String(), func(t *testing.T) {
			f, g, p := fileIn(t, wasi.OpenFlags{Read: true, Write: true}, "text")
			if e := do(f); e != 0 && e != wasi.ENOTSUP {
				t.Fatalf("while granted: errno %d", e)
			}
			g.gone[0] = true
			for range 3 {
				want(t, "revoked", do(f), wasi.EACCES)
			}
			if len(g.revoked) != 1 || g.revoked[0].path != p.grant+"/f" || g.revoked[0].op != op {
				t.Errorf("recorded %v", g.revoked)
			}
			delete(g.gone, 0) // lifted
			if e := do(f); e != 0 && e != wasi.ENOTSUP {
				t.Errorf("lifted: errno %d", e)
			}
			g.gone[0] = true
			want(t, "Close", f.Close(), 0)
		})
	}
}

// TestOpenedFor: a descriptor does no more than it was opened for.
func TestOpenedFor(t *testing.T) {
	r, _, _ := fileIn(t, wasi.OpenFlags{Read: true}, "text")
	_, e := r.Write([]byte("x"))
	want(t, "write", e, wasi.EBADF)
	want(t, "size", r.SetSize(0), wasi.EBADF)
	want(t, "allocate", r.Allocate(0, 1), wasi.EBADF)
	buf := make([]byte, 2)
	r.Read(buf)
	_, e = r.Readdir(0, 1)
	want(t, "list a file", e, wasi.ENOTDIR)
	if n, e := r.Read(buf); n != 2 || e != 0 || string(buf) != "xt" {
		t.Errorf("listing has moved where it is read: %q, errno %d", buf[:n], e)
	}
	if st, e := r.Stat(); e != 0 || st.Size != 4 {
		t.Errorf("stat of what is read: %+v, errno %d", st, e)
	}
	w, g, _ := fileIn(t, wasi.OpenFlags{Write: true}, "text")
	_, e = w.Read(make([]byte, 1))
	want(t, "read", e, wasi.EBADF)
	_, e = w.Stat()
	want(t, "stat of what is written", e, 0)
	g.gone[0] = true
	_, e = w.Stat()
	want(t, "stat of it, revoked", e, wasi.EACCES)
	if len(g.revoked) != 1 || g.revoked[0].mode != caps.Write || g.revoked[0].op != FdFilestatGet {
		t.Errorf("recorded %v", g.revoked)
	}
}

// TestTimesOfAnOpenFileAreAsked: one opened for reading has no scope to write.
func TestTimesOfAnOpenFileAreAsked(t *testing.T) {
	p := newPlace(t)
	put(t, p.grant+"/f", "")
	j, g := open(t, false, rule{p.grant, read})
	f, e := j.Open(p.grant+"/f", false, wasi.OpenFlags{Read: true})
	want(t, "open", e, 0)
	defer f.Close()
	want(t, "times", f.SetTimes(wasi.Times{}), wasi.EACCES)
	if last := g.asked[len(g.asked)-1]; last != (ask{FdFilestatSetTimes, caps.Write, p.grant + "/f", false}) {
		t.Errorf("recorded %v", last)
	}
}

// listing reads a directory as a libc does: from where it stands, as many as fit.
func listing(t *testing.T, f wasi.File, step int, between func()) []wasi.Dirent {
	t.Helper()
	var all []wasi.Dirent
	for {
		entries, e := f.Readdir(uint64(len(all)), step)
		want(t, "Readdir", e, 0)
		all = append(all, entries...)
		if len(entries) < step || e != 0 {
			return all
		}
		between()
	}
}

// TestReaddir: every entry once, whatever the step, and a position names the
// same entry while the directory changes.
func TestReaddir(t *testing.T) {
	p := newPlace(t)
	const files = 1000
	for i := range files {
		put(t, p.grant+"/a-file-with-a-longer-name-"+strconv.Itoa(i), "")
	}
	must(t, os.Mkdir(p.grant+"/denied", 0o755))
	j, _ := open(t, false, rule{p.grant, all}, rule{p.grant + "/denied", 0})
	f, e := j.Open(p.grant, true, wasi.OpenFlags{Read: true, Directory: true})
	want(t, "open", e, 0)
	defer f.Close()
	var first []wasi.Dirent
	for _, step := range []int{2, 7, 128, 5000} {
		got := listing(t, f, step, func() {})
		seen := make(map[string]bool)
		for _, d := range got {
			seen[d.Name] = true
		}
		if len(got) != files+3 || len(seen) != len(got) || !seen["."] || !seen[".."] || !seen["denied"] {
			t.Errorf("step %d: %d entries, %d names", step, len(got), len(seen))
		}
		first = got
	}
	for _, at := range []uint64{900, 3, 500, 128, 127, 1002, 0} { // back and forth
		got, e := f.Readdir(at, 2)
		if e != 0 || len(got) == 0 || got[0] != first[at] {
			t.Errorf("position %d: %v, errno %d; want %v", at, got, e, first[at])
		}
	}
	for _, at := range []uint64{files + 3, 1 << 40, 1<<64 - 1} {
		if got, e := f.Readdir(at, 2); e != 0 || len(got) != 0 {
			t.Errorf("position %d: %v, errno %d", at, got, e)
		}
	}
	f.Readdir(0, 2)
	if kept := len(f.(*file).list.entries); kept > files/2 {
		t.Errorf("%d of %d entries are kept", kept, files)
	}
	listing(t, f, 5000, func() {})
	put(t, p.grant+"/added", "")
	if again := listing(t, f, 5000, func() {}); len(again) != len(first)+1 {
		t.Errorf("read again from the start: %d entries after one was added to %d", len(again), len(first))
	}
	removed := 0
	seen := listing(t, f, 10, func() {
		must(t, os.Remove(p.grant+"/a-file-with-a-longer-name-"+strconv.Itoa(removed)))
		removed++
	})
	names := make(map[string]bool)
	for _, d := range seen {
		if names[d.Name] {
			t.Errorf("%s is listed twice", d.Name)
		}
		names[d.Name] = true
	}
	for i := removed; i < files; i++ {
		if !names["a-file-with-a-longer-name-"+strconv.Itoa(i)] {
			t.Errorf("file %d is not listed", i)
		}
	}
}

// TestReaddirTypes: what an entry is, without opening it.
func TestReaddirTypes(t *testing.T) {
	p := newPlace(t)
	put(t, p.grant+"/f", "")
	must(t, os.Symlink("f", p.grant+"/l"))
	must(t, os.Mkdir(p.grant+"/d", 0o755))
	j, g := open(t, false, rule{p.grant, all})
	f, e := j.Open(p.grant, false, wasi.OpenFlags{Read: true})
	want(t, "open", e, 0)
	defer f.Close()
	entries, e := f.Readdir(0, 10)
	want(t, "list", e, 0)
	for _, d := range entries {
		if d.Name == ".." {
			continue
		}
		st, e := j.Stat(p.grant+map[bool]string{true: "", false: "/" + d.Name}[d.Name == "."], false, false)
		if e != 0 || st.Ino != d.Ino || st.Type != d.Type {
			t.Errorf("%+v, but stat says %+v, errno %d", d, st, e)
		}
	}
	_, e = f.Read(make([]byte, 1))
	want(t, "read of a directory", e, wasi.EISDIR)
	_, e = f.Lseek(0, 0)
	want(t, "seek in a directory", e, wasi.EBADF)
	g.gone[0] = true
	_, e = f.Readdir(0, 10)
	want(t, "list, revoked", e, wasi.EACCES)
}

// TestReaddirOfNoFolder: one that is removed while it is open is empty.
func TestReaddirOfNoFolder(t *testing.T) {
	p := newPlace(t)
	must(t, os.Mkdir(p.grant+"/d", 0o755))
	j, _ := open(t, false, rule{p.grant, all})
	f, e := j.Open(p.grant+"/d", false, wasi.OpenFlags{Read: true})
	want(t, "open", e, 0)
	defer f.Close()
	must(t, os.Remove(p.grant+"/d"))
	if entries, e := f.Readdir(0, 10); e != 0 || len(entries) != 0 {
		t.Errorf("%v, errno %d", entries, e)
	}
}
