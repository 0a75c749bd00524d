//go:build linux || darwin

package jail

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"runloop.dev/rlp/internal/effect/wasi"
)

// leaks fails unless a plain program reads the canary at p: the control of a
// test that the jail must refuse p.
func leaks(t *testing.T, p string) {
	t.Helper()
	if text, err := os.ReadFile(p); err != nil || string(text) != "CANARY" {
		t.Fatalf("the attack does not work on plain file functions: %q, %v", text, err)
	}
}

// refused fails unless every way to reach p's content is EACCES and recorded.
func refused(t *testing.T, j *Jail, g *walker, p string) {
	t.Helper()
	before := g.denied()
	text, e := slurp(j, p)
	want(t, "read of "+p+": "+text, e, wasi.EACCES)
	_, e = j.Stat(p, false, true)
	want(t, "stat of "+p, e, wasi.EACCES)
	want(t, "write of "+p, spill(j, p, "pwned", wasi.OpenFlags{Create: true, Trunc: true}), wasi.EACCES)
	want(t, "times of "+p, j.SetTimes(p, false, true, wasi.Times{}), wasi.EACCES)
	if n := g.denied() - before; n != 4 {
		t.Errorf("%d of 4 refusals recorded", n)
	}
}

// TestLinksAreJudgedAgain: a link leads only where the guest could have gone
// by itself, also below one grant and from one to another.
func TestLinksAreJudgedAgain(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		for _, d := range []string{"/home/ssh", "/pub"} {
			must(t, os.MkdirAll(p.grant+d, 0o755))
		}
		put(t, p.grant+"/home/ssh/key", "CANARY")
		links := map[string]string{
			"/abs": p.grant + "/home/ssh/key", "/rel": "home/ssh/key", "/pub/up": "../home/ssh/key",
			"/dir": "home/ssh", "/two": "dir/key", "/round": "pub/../home/ssh/key", "/out": "../out/secret.txt",
			"/proc": "/proc/self/root" + p.out + "/secret.txt",
		}
		for name, to := range links {
			must(t, os.Symlink(to, p.grant+name))
		}
		j, g := open(t, walk, rule{p.grant, all}, rule{p.grant + "/home/ssh", 0})
		for name := range links {
			if name == "/dir" {
				name = "/dir/key"
			}
			leaks(t, p.grant+name)
			refused(t, j, g, p.grant+name)
		}
		want(t, "a new link to it", j.Symlink("../home/ssh/key", p.grant+"/pub/new"), wasi.EACCES)
		want(t, "a new link out", j.Symlink("../../out", p.grant+"/pub/new"), wasi.EACCES)
		leaks(t, p.grant+"/home/ssh/key")
	})
}

// TestLinkDoesNotCarryRights: a link in a writable grant to a file of a
// read-only one is for reading.
func TestLinkDoesNotCarryRights(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		ro, rw := p.grant+"/ro", p.grant+"/rw"
		must(t, os.Mkdir(ro, 0o755))
		must(t, os.Mkdir(rw, 0o755))
		put(t, ro+"/f", "text")
		must(t, os.Symlink("../ro/f", rw+"/l"))
		j, _ := open(t, walk, rule{ro, read}, rule{rw, all})
		if text, e := slurp(j, rw+"/l"); e != 0 || text != "text" {
			t.Errorf("read through the link: %q, errno %d", text, e)
		}
		want(t, "write through the link", spill(j, rw+"/l", "pwned", wasi.OpenFlags{}), wasi.EACCES)
		want(t, "truncate through the link", spill(j, rw+"/l", "", wasi.OpenFlags{Trunc: true}), wasi.EACCES)
		want(t, "hard link", j.Link(ro+"/f", false, rw+"/h"), wasi.EACCES)
		want(t, "hard link by the link", j.Link(rw+"/l", true, rw+"/h"), wasi.EACCES)
		want(t, "move", j.Rename(ro+"/f", rw+"/f"+"", false), wasi.EACCES)
		if text, err := os.ReadFile(ro + "/f"); err != nil || string(text) != "text" {
			t.Errorf("the read-only file is now %q, %v", text, err)
		}
		// Control: the hard link would have made it writable.
		must(t, os.Link(ro+"/f", rw+"/h"))
		want(t, "write by a hard link that is there", spill(j, rw+"/h", "pwned", wasi.OpenFlags{}), 0)
		if text, _ := os.ReadFile(ro + "/f"); !strings.Contains(string(text), "pwned") {
			t.Error("the hard link is no way to the file: the test shows nothing")
		}
	})
}

// TestMovingNeedsTheRightToWrite: what may be read and deleted, but not
// written, stays so; a move would have made it the new place's.
func TestMovingNeedsTheRightToWrite(t *testing.T) {
	p := newPlace(t)
	must(t, os.Mkdir(p.grant+"/rw", 0o755))
	put(t, p.grant+"/f", "text")
	j, _ := open(t, false, rule{p.grant, read | del}, rule{p.grant + "/rw", all})
	want(t, "move", j.Rename(p.grant+"/f", p.grant+"/rw/f", false), wasi.EACCES)
	want(t, "remove", j.Unlink(p.grant+"/f", false), 0)
}

// TestRenameDance: moving the directory above a denied folder would take the
// folder out of the rule that names it.
func TestRenameDance(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		must(t, os.MkdirAll(p.grant+"/a/denied", 0o755))
		must(t, os.MkdirAll(p.grant+"/b", 0o755))
		put(t, p.grant+"/a/denied/key", "CANARY")
		j, g := open(t, walk, rule{p.grant, all}, rule{p.grant + "/a/denied", 0})
		want(t, "move", j.Rename(p.grant+"/a", p.grant+"/c", false), wasi.EACCES)
		want(t, "move onto it", j.Rename(p.grant+"/b", p.grant+"/a", false), wasi.EACCES)
		want(t, "move it", j.Rename(p.grant+"/a/denied", p.grant+"/c", false), wasi.EACCES)
		want(t, "remove it", j.Rmdir(p.grant+"/a/denied"), wasi.EACCES)
		refused(t, j, g, p.grant+"/a/denied/key")
		must(t, os.Rename(p.grant+"/a", p.grant+"/c"))
		leaks(t, p.grant+"/c/denied/key")
		if text, _ := slurp(j, p.grant+"/c/denied/key"); text != "CANARY" {
			t.Error("the dance leads nowhere: the test shows nothing")
		}
	})
}

// TestPinned: what becomes of a grant's name after launch does not matter.
func TestPinned(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		put(t, p.grant+"/secret.txt", "mine")
		j, _ := open(t, walk, rule{p.grant, all})
		must(t, os.Rename(p.grant, p.base+"/moved"))
		must(t, os.Symlink(p.out, p.grant))
		leaks(t, p.grant+"/secret.txt")
		if text, e := slurp(j, p.grant+"/secret.txt"); e != 0 || text != "mine" {
			t.Errorf("read %q, errno %d", text, e)
		}
		want(t, "write", spill(j, p.grant+"/new", "x", wasi.OpenFlags{Create: true}), 0)
		if _, err := os.Stat(p.base + "/moved/new"); err != nil {
			t.Error(err)
		}
		// Swapped before launch, the grant is refused.
		if _, err := Open(Config{Gate: &walker{}, Roots: []string{p.grant}, walk: walk}); err == nil {
			t.Error("a grant that is a link was pinned")
		}
	})
}

// TestReadOnly: a grant for reading refuses every change, whatever the access
// mode that it is asked for under.
//
//rlp:holds K18
func TestReadOnly(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		for _, modes := range []struct {
			rule rule
			want wasi.Errno
		}{{rule{modes: read}, wasi.EACCES}, {rule{modes: all}, 0}} { // control: all is allowed
			for name, op := range changesTo {
				p := newPlace(t)
				put(t, p.grant+"/f", "text")
				must(t, os.Mkdir(p.grant+"/d", 0o755))
				modes.rule.path = p.grant
				j, _ := open(t, walk, modes.rule)
				want(t, name, op(j, p.grant), modes.want)
				if text, _ := os.ReadFile(p.grant + "/f"); modes.want != 0 && string(text) != "text" {
					t.Errorf("%s: the file is now %q", name, text)
				}
				if entries, _ := os.ReadDir(p.grant); modes.want != 0 && len(entries) != 2 {
					t.Errorf("%s: the directory is now %v", name, entries)
				}
			}
		}
	})
}

// opened is the error number of opening alone.
func opened(j *Jail, p string, o wasi.OpenFlags) wasi.Errno {
	f, e := j.Open(p, false, o)
	if e == 0 {
		e = f.Close()
	}
	return e
}

var changesTo = map[string]func(j *Jail, dir string) wasi.Errno{
	"write":      func(j *Jail, d string) wasi.Errno { return opened(j, d+"/f", wasi.OpenFlags{Write: true}) },
	"read write": func(j *Jail, d string) wasi.Errno { return opened(j, d+"/f", wasi.OpenFlags{Read: true, Write: true}) },
	"append": func(j *Jail, d string) wasi.Errno {
		return opened(j, d+"/f", wasi.OpenFlags{Write: true, Append: true})
	},
	"read truncate": func(j *Jail, d string) wasi.Errno {
		return opened(j, d+"/f", wasi.OpenFlags{Read: true, Trunc: true})
	},
	"bare truncate": func(j *Jail, d string) wasi.Errno { return opened(j, d+"/f", wasi.OpenFlags{Trunc: true}) },
	"read create": func(j *Jail, d string) wasi.Errno {
		return opened(j, d+"/n", wasi.OpenFlags{Read: true, Create: true})
	},
	"bare create": func(j *Jail, d string) wasi.Errno { return opened(j, d+"/n", wasi.OpenFlags{Create: true}) },
	"exclusive": func(j *Jail, d string) wasi.Errno {
		return opened(j, d+"/n", wasi.OpenFlags{Read: true, Create: true, Exclusive: true})
	},
	"mkdir":   func(j *Jail, d string) wasi.Errno { return j.Mkdir(d + "/n") },
	"rmdir":   func(j *Jail, d string) wasi.Errno { return j.Rmdir(d + "/d") },
	"unlink":  func(j *Jail, d string) wasi.Errno { return j.Unlink(d+"/f", false) },
	"rename":  func(j *Jail, d string) wasi.Errno { return j.Rename(d+"/f", d+"/n", false) },
	"link":    func(j *Jail, d string) wasi.Errno { return j.Link(d+"/f", false, d+"/n") },
	"symlink": func(j *Jail, d string) wasi.Errno { return j.Symlink("f", d+"/n") },
	"times":   func(j *Jail, d string) wasi.Errno { return j.SetTimes(d+"/f", false, true, wasi.Times{}) },
	"times of an open file": func(j *Jail, d string) wasi.Errno {
		f, e := j.Open(d+"/f", false, wasi.OpenFlags{Read: true})
		if e != 0 {
			return e
		}
		defer f.Close()
		return f.SetTimes(wasi.Times{})
	},
}

// TestSpecialFiles: a FIFO is not waited on, a device does not act.
func TestSpecialFiles(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		names := []string{"/fifo", "/socket"}
		must(t, syscall.Mkfifo(p.grant+"/fifo", 0o644))
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		must(t, err)
		defer syscall.Close(fd)
		t.Chdir(p.grant) // the name of a socket is short
		must(t, syscall.Bind(fd, &syscall.SockaddrUnix{Name: "socket"}))
		if err := syscall.Mknod(p.grant+"/null", syscall.S_IFCHR|0o666, 1<<8|3); err == nil {
			names = append(names, "/null")
		} else if os.Getuid() == 0 {
			t.Log("device nodes cannot be made here:", err)
		}
		j, _ := open(t, walk, rule{p.grant, all})
		for _, name := range names {
			for _, o := range []wasi.OpenFlags{
				{Read: true},
				{Write: true},
				{Read: true, Write: true},
				{Write: true, Create: true, Trunc: true},
			} {
				want(t, name, opened(j, p.grant+name, o), wasi.EACCES)
			}
			if _, e := j.Stat(p.grant+name, false, true); e != 0 {
				t.Errorf("stat of %s: errno %d", name, e)
			}
			want(t, "unlink "+name, j.Unlink(p.grant+name, false), 0)
		}
	})
}

// TestLinkCount: as many links as Linux expands, and not one more.
func TestLinkCount(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		put(t, p.grant+"/l0", "end")
		for i := 1; i <= maxLinks+1; i++ {
			must(t, os.Symlink("l"+strconv.Itoa(i-1), p.grant+"/l"+strconv.Itoa(i)))
		}
		j, _ := open(t, walk, rule{p.grant, all})
		text, e := slurp(j, p.grant+"/l"+strconv.Itoa(maxLinks))
		if text != "end" || e != 0 {
			t.Errorf("%d links: %q, errno %d", maxLinks, text, e)
		}
		_, e = slurp(j, p.grant+"/l"+strconv.Itoa(maxLinks+1))
		want(t, "one more", e, wasi.ELOOP)
	})
}

// TestLongWay: links at the end of a way as long as the system takes, each of
// which leads to its beginning, are found and end.
func TestLongWay(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		deep := p.grant + strings.Repeat("/x", 1500)
		must(t, os.MkdirAll(deep, 0o755))
		must(t, os.Symlink(p.grant, deep+"/l"))
		put(t, p.grant+"/f", "text")
		j, g := open(t, walk, rule{p.grant, all})
		if text, e := slurp(j, deep+"/l/f"); e != 0 || text != "text" {
			t.Errorf("%q, errno %d", text, e)
		}
		must(t, os.Symlink(strings.Repeat("x/", 100)+"again", p.grant+"/again"))
		_, e := slurp(j, p.grant+"/again")
		want(t, "a link to nothing", e, wasi.ENOENT)
		must(t, os.Symlink("grows/"+strings.Repeat("y/", 1000), p.grant+"/grows"))
		before := len(g.asked)
		_, e = slurp(j, p.grant+"/grows")
		want(t, "a link that grows", e, wasi.ENAMETOOLONG)
		if n := len(g.asked) - before; n > 3 {
			t.Errorf("asked %d times", n)
		}
	})
}

// TestNoFollow: a link at the end is ELOOP where the guest does not follow, one
// on the way is followed all the same.
func TestNoFollow(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		must(t, os.Mkdir(p.grant+"/d", 0o755))
		put(t, p.grant+"/d/f", "text")
		must(t, os.Symlink("d", p.grant+"/dir"))
		must(t, os.Symlink("f", p.grant+"/d/l"))
		j, g := open(t, walk, rule{p.grant, all})
		o := wasi.OpenFlags{Read: true, NoFollow: true}
		want(t, "file below a link", opened(j, p.grant+"/dir/f", o), 0)
		before := len(g.asked)
		want(t, "link", opened(j, p.grant+"/d/l", o), wasi.ELOOP)
		if n := len(g.asked) - before; n != 1 {
			t.Errorf("asked %d times about one path", n)
		}
		want(t, "link below a link", opened(j, p.grant+"/dir/l", o), wasi.ELOOP)
		f, e := j.Open(p.grant+"/dir", true, o) // "dir/" is what it leads to
		want(t, "link with a slash", e, 0)
		if e == 0 {
			want(t, "close", f.Close(), 0)
		}
	})
}
