package jail

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/wasi"
)

// descriptors counts what the process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(open)
}

// keepsNone fails if f leaves a descriptor open.
func keepsNone(t *testing.T, what string, f func()) {
	t.Helper()
	before := descriptors(t)
	f()
	if after := descriptors(t); after != before {
		t.Errorf("%s: %d descriptors before, %d after", what, before, after)
	}
}

// TestNoHandleIsLeft: whatever way an operation ends, it gives its handles back.
func TestNoHandleIsLeft(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		must(t, os.MkdirAll(p.grant+"/a/b/c", 0o755))
		must(t, os.MkdirAll(p.grant+"/a/dir/sub", 0o755))
		put(t, p.grant+"/a/b/f", "text")
		must(t, os.Symlink("../a/b/f", p.grant+"/a/l"))
		must(t, os.Symlink("b/c/../f", p.grant+"/a/climbs"))
		must(t, os.Symlink("loop", p.grant+"/a/b/loop"))
		must(t, syscall.Mkfifo(p.grant+"/a/fifo", 0o644))
		j, _ := open(t, walk, rule{p.grant, all})
		at := func(name string) string { return p.grant + "/a/" + name }
		open := func(name string, o wasi.OpenFlags) wasi.Errno { return opened(j, at(name), o) }
		buf := make([]byte, 100)
		for what, f := range map[string]func() wasi.Errno{
			"open":              func() wasi.Errno { return open("b/f", wasi.OpenFlags{Read: true}) },
			"open by a link":    func() wasi.Errno { return open("l", wasi.OpenFlags{Read: true}) },
			"open of no file":   func() wasi.Errno { return open("fifo", wasi.OpenFlags{Read: true}) },
			"open of nothing":   func() wasi.Errno { return open("b/none", wasi.OpenFlags{Read: true}) },
			"open below a file": func() wasi.Errno { return open("b/f/none", wasi.OpenFlags{Read: true}) },
			"open of a circle":  func() wasi.Errno { return open("b/loop", wasi.OpenFlags{Read: true}) },
			"stat":              func() wasi.Errno { _, e := j.Stat(at("b/f"), false, true); return e },
			"stat of nothing":   func() wasi.Errno { _, e := j.Stat(at("b/none"), false, true); return e },
			"stat of the grant": func() wasi.Errno { _, e := j.Stat(p.grant, false, true); return e },
			"times":             func() wasi.Errno { return j.SetTimes(at("b/f"), false, true, wasi.Times{}) },
			"times by a link":   func() wasi.Errno { return j.SetTimes(at("l"), false, true, wasi.Times{}) },
			"readlink":          func() wasi.Errno { _, e := j.Readlink(at("l"), buf); return e },
			"readlink of none":  func() wasi.Errno { _, e := j.Readlink(at("b/f"), buf); return e },
			"mkdir":             func() wasi.Errno { j.Mkdir(at("b/new")); return j.Rmdir(at("b/new")) },
			"unlink as a dir":   func() wasi.Errno { return j.Unlink(at("b/f"), true) },
			"rename": func() wasi.Errno {
				j.Rename(at("dir"), at("b/dir"), false)
				return j.Rename(at("b/dir"), at("dir"), false)
			},
			"link":        func() wasi.Errno { j.Link(at("b/f"), false, at("b/c/f")); return j.Unlink(at("b/c/f"), false) },
			"link out":    func() wasi.Errno { return j.Link(at("climbs"), false, at("b/c/l")) },
			"symlink":     func() wasi.Errno { j.Symlink("f", at("b/s")); return j.Unlink(at("b/s"), false) },
			"symlink out": func() wasi.Errno { return j.Symlink(p.out, at("b/s")) },
		} {
			first := f() // whatever the process opens once and keeps
			keepsNone(t, what, func() { want(t, what, f(), first) })
		}
		must(t, os.Symlink("../out", p.grant+"/out"))
		put(t, p.grant+"/file", "")
		roots := []string{p.grant, p.grant, p.grant + "/file", p.grant + "/later"}
		keepsNone(t, "a jail", func() {
			j, err := Open(Config{Gate: &walker{}, Roots: roots, walk: walk})
			must(t, err)
			must(t, j.Close())
		})
		keepsNone(t, "a jail that cannot be", func() {
			if j, err := Open(Config{Gate: &walker{}, Roots: append(roots, p.grant+"/out"), walk: walk}); !errors.Is(err,
				ErrMoved) {
				t.Errorf("%v, %v", j, err)
			}
		})
	})
}

// TestAMountPointLeavesNoHandle: nor does what is refused for where it is mounted.
func TestAMountPointLeavesNoHandle(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		j, _ := open(t, walk, rule{"/", read})
		for _, name := range []string{"/proc", "/proc/self", "/proc/self/environ"} {
			keepsNone(t, name, func() {
				want(t, "open "+name, opened(j, name, wasi.OpenFlags{Read: true}), wasi.EACCES)
				_, e := j.Stat(name, false, true)
				want(t, "stat "+name, e, wasi.EACCES)
			})
		}
	})
}

// TestTheSystemIsAskedForNoMore: the descriptor beneath a guest's can do what was
// granted and no more, and what a guest makes has the bits that others expect.
func TestTheSystemIsAskedForNoMore(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		put(t, p.grant+"/f", "text")
		j, _ := open(t, walk, rule{p.grant, all})
		for o, mode := range map[wasi.OpenFlags]int{
			{}:                        unix.O_RDONLY,
			{Read: true}:              unix.O_RDONLY,
			{Write: true}:             unix.O_WRONLY,
			{Read: true, Write: true}: unix.O_RDWR,
		} {
			f, e := j.Open(p.grant+"/f", false, o)
			want(t, "open", e, 0)
			flags, err := unix.FcntlInt(uintptr(f.(*file).fd), unix.F_GETFL, 0)
			must(t, err)
			if flags&unix.O_ACCMODE != mode || flags&unix.O_NONBLOCK == 0 {
				t.Errorf("%+v: flags %#x", o, flags)
			}
			if of, err := unix.FcntlInt(uintptr(f.(*file).fd), unix.F_GETFD, 0); err != nil || of&unix.FD_CLOEXEC == 0 {
				t.Errorf("%+v: inherited by a program that is run: %#x, %v", o, of, err)
			}
			want(t, "close", f.Close(), 0)
		}
		want(t, "create", spill(j, p.grant+"/new", "x", wasi.OpenFlags{Create: true}), 0)
		want(t, "mkdir", j.Mkdir(p.grant+"/newdir"), 0)
		must(t, os.WriteFile(p.grant+"/plain", nil, 0o666))
		must(t, os.Mkdir(p.grant+"/plaindir", 0o777))
		for made, plain := range map[string]string{"/new": "/plain", "/newdir": "/plaindir"} {
			a, err := os.Lstat(p.grant + made)
			must(t, err)
			b, err := os.Lstat(p.grant + plain)
			must(t, err)
			if a.Mode() != b.Mode() {
				t.Errorf("%s is %v, not %v", made, a.Mode(), b.Mode())
			}
		}
	})
}

// TestErrorsOfTheSystemReachTheGuest: what a file system cannot do is not said
// to be done. The files of /proc can neither be synced nor sized.
func TestErrorsOfTheSystemReachTheGuest(t *testing.T) {
	r, err := Canonical("/proc/self")
	must(t, err)
	eachResolver(t, func(t *testing.T, walk bool) {
		j, _ := open(t, walk, rule{r.Path, all})
		f, e := j.Open(r.Path+"/comm", false, wasi.OpenFlags{Read: true, Write: true})
		want(t, "open", e, 0)
		defer f.Close()
		want(t, "Sync", f.Sync(false), wasi.EINVAL)
		want(t, "Sync of data", f.Sync(true), wasi.EINVAL)
		if e := f.Allocate(0, 10); e == 0 {
			t.Error("Allocate: no error")
		}
		want(t, "unlink", j.Unlink(r.Path+"/comm", false), wasi.EPERM)
	})
}

// TestPathsOfAnyLength: a path is given to the kernel whole, whatever buffer it
// fits, and a name that no file system takes is refused.
func TestPathsOfAnyLength(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		deep := p.grant + strings.Repeat("/d", 100)
		must(t, os.MkdirAll(deep, 0o755))
		j, _ := open(t, walk, rule{p.grant, all})
		for n := 40; n < 70; n++ { // 240 to 270 bytes below the grant
			name := deep + "/" + strings.Repeat("x", n)
			want(t, "create", spill(j, name, "text", wasi.OpenFlags{Create: true}), 0)
			if text, e := slurp(j, name); e != 0 || text != "text" {
				t.Errorf("%d bytes: %q, errno %d", n, text, e)
			}
			st, e := j.Stat(name, false, false)
			if e != 0 || st.Size != 4 {
				t.Errorf("%d bytes: stat %+v, errno %d", n, st, e)
			}
		}
		put(t, p.grant+"/"+strings.Repeat("x", 255), "text")
		for n := 250; n < 260; n++ {
			st, e := j.Stat(p.grant+"/"+strings.Repeat("x", n), false, false)
			switch expected := map[bool]wasi.Errno{true: wasi.ENOENT, false: wasi.ENAMETOOLONG}[n < 255]; {
			case n == 255:
				if e != 0 || st.Size != 4 {
					t.Errorf("a name of %d bytes: %+v, errno %d", n, st, e)
				}
			default:
				want(t, "stat of a long name", e, expected)
			}
		}
		_, e := j.Stat(p.grant+"/none", false, false)
		want(t, "stat of nothing", e, wasi.ENOENT)
	})
}

// TestAClosedFileIsNoOther: its number may be another's by now.
func TestAClosedFileIsNoOther(t *testing.T) {
	p := newPlace(t)
	put(t, p.grant+"/f", "text")
	j, g := open(t, false, rule{p.grant, all})
	first, e := j.Open(p.grant+"/f", false, wasi.OpenFlags{Read: true})
	want(t, "open", e, 0)
	want(t, "close", first.Close(), 0)
	second, e := j.Open(p.grant+"/f", false, wasi.OpenFlags{Read: true})
	want(t, "open another", e, 0)
	defer second.Close()
	want(t, "close again", first.Close(), wasi.EBADF)
	buf := make([]byte, 4)
	if n, e := second.Read(buf); n != 4 || e != 0 {
		t.Errorf("the other reads %d bytes, errno %d", n, e)
	}
	g.gone[0] = true
	asked := len(g.asked)
	_, e = first.Read(buf)
	want(t, "read of what is closed and revoked", e, wasi.EBADF)
	_, e = first.Stat()
	want(t, "stat of it", e, wasi.EBADF)
	want(t, "times of it", first.SetTimes(wasi.Times{}), wasi.EBADF)
	if len(g.revoked) != 0 || len(g.asked) != asked {
		t.Errorf("recorded %v and %v", g.revoked, g.asked[asked:])
	}
}

// TestFirstLink: which link a path leads through is found out one name at a
// time; where a name is gone, or is no folder any more, that is the answer.
func TestFirstLink(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		must(t, os.MkdirAll(p.grant+"/a/b", 0o755))
		put(t, p.grant+"/a/f", "")
		must(t, os.Symlink("b", p.grant+"/a/l"))
		must(t, os.Symlink("l", p.grant+"/a/last"))
		j, _ := open(t, walk, rule{p.grant, all})
		for _, c := range []struct {
			rel   string
			final bool
			end   int
			text  string
			err   error
			then  wasi.Errno // of following
		}{
			{rel: "", final: true, then: wasi.ELOOP},
			{rel: "/a/b", final: true, then: wasi.ELOOP},
			{rel: "/a/f", final: true, then: wasi.ELOOP},
			{rel: "/a/f", then: wasi.ELOOP},
			{rel: "/a/l/x/y", end: 3, text: "b"},
			{rel: "/a/last", final: true, end: 6, text: "l"},
			{rel: "/a/last", then: wasi.ELOOP},
			{rel: "/a/none", final: true, err: unix.ENOENT, then: wasi.ENOENT},
			{rel: "/a/none/x/y", err: unix.ENOENT, then: wasi.ENOENT},
			{rel: "/a/f/x/y", err: unix.ENOTDIR, then: wasi.ENOTDIR},
			{rel: "/a/f/x", final: true, err: unix.ENOTDIR, then: wasi.ENOTDIR},
		} {
			w := way{j: j, op: PathFilestatGet, modes: caps.Modes(caps.Read), final: c.final}
			want(t, "begin", w.begin(p.grant+c.rel), 0)
			end, text, err := w.firstLink()
			if text != c.text || err != c.err || text != "" && end != c.end {
				t.Errorf("%q: %d, %q, %v; want %+v", c.rel, end, text, err, c)
			}
			want(t, "following "+c.rel, w.follow(), c.then)
		}
	})
}
