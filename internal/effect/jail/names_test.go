//go:build linux || darwin

package jail

import (
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/effect/wasi"
)

// TestTrailingSlash: a name that the guest ended with a slash is a directory,
// or the operation is refused.
func TestTrailingSlash(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		put(t, p.grant+"/f", "text")
		must(t, os.Mkdir(p.grant+"/d", 0o755))
		must(t, os.Symlink("d", p.grant+"/l"))
		must(t, os.Symlink("f", p.grant+"/lf"))
		j, _ := open(t, walk, rule{p.grant, all})
		at := func(name string) string { return p.grant + "/" + name }
		want(t, "unlink f/", j.Unlink(at("f"), true), wasi.ENOTDIR)
		want(t, "unlink l/", j.Unlink(at("l"), true), wasi.ENOTDIR)
		want(t, "unlink d/", j.Unlink(at("d"), true), wasi.EISDIR)
		want(t, "unlink none/", j.Unlink(at("none"), true), wasi.ENOENT)
		want(t, "rename f/", j.Rename(at("f"), at("g"), true), wasi.ENOTDIR)
		want(t, "rename none/", j.Rename(at("none"), at("g"), true), wasi.ENOENT)
		want(t, "rename d/", j.Rename(at("d"), at("e"), true), 0)
		want(t, "and back", j.Rename(at("e"), at("d"), true), 0)
		for name, e := range map[string]wasi.Errno{
			"f": wasi.ENOTDIR, "lf": wasi.ENOTDIR, "d": 0, "l": 0,
			"none": wasi.ENOENT,
		} {
			st, got := j.Stat(at(name), true, false)
			want(t, "stat "+name+"/", got, e)
			if e == 0 && st.Type != wasi.TypeDirectory {
				t.Errorf("stat %s/: %+v", name, st)
			}
			f, got := j.Open(at(name), true, wasi.OpenFlags{Read: true})
			want(t, "open "+name+"/", got, e)
			if got == 0 {
				want(t, "close", f.Close(), 0)
			}
		}
		times := wasi.Times{Mtim: 1e18, OmitAtim: true}
		want(t, "times of f/", j.SetTimes(at("f"), true, false, times), wasi.ENOTDIR)
		want(t, "times of l/, which is the folder's", j.SetTimes(at("l"), true, false, times), 0)
		if st, _ := j.Stat(at("d"), false, false); st.Mtim != 1e18 {
			t.Errorf("the folder's time is %d", st.Mtim)
		}
		_, e := j.Open(at("new"), true, wasi.OpenFlags{Write: true, Create: true})
		want(t, "create new/", e, wasi.EISDIR)
	})
}

// TestNewLinkIsJudgedWhereItLies: what a relative link will mean depends on the
// directory that it is really in.
func TestNewLinkIsJudgedWhereItLies(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		must(t, os.MkdirAll(p.grant+"/a/b", 0o755))
		must(t, os.MkdirAll(p.grant+"/a/denied", 0o755))
		must(t, os.Symlink("a/b", p.grant+"/l"))
		j, g := open(t, walk, rule{p.grant, all}, rule{p.grant + "/a/denied", 0})
		want(t, "link that leads to what is denied", j.Symlink("../denied", p.grant+"/l/new"), wasi.EACCES)
		if last := g.asked[len(g.asked)-1]; last.path != p.grant+"/a/denied" || last.allow {
			t.Errorf("asked about %v", last)
		}
		want(t, "link that only looks so", j.Symlink("../denied", p.grant+"/new"), wasi.EACCES) // ../denied is outside
		asked := len(g.asked)
		want(t, "link to nothing", j.Symlink("", p.grant+"/a/denied/new"), wasi.ENOENT)
		if len(g.asked) != asked {
			t.Errorf("asked about %v", g.asked[asked:])
		}
		want(t, "link to what is not there yet", j.Symlink("../later", p.grant+"/l/new"), 0)
		if text, err := os.Readlink(p.grant + "/a/b/new"); err != nil || text != "../later" {
			t.Errorf("the link is %q, %v", text, err)
		}
	})
}

// TestLink: by the name, or by what the name leads to, as the guest says.
func TestLink(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		put(t, p.grant+"/f", "text")
		must(t, os.Mkdir(p.grant+"/d", 0o755))
		must(t, os.Symlink("f", p.grant+"/l"))
		j, _ := open(t, walk, rule{p.grant, all})
		want(t, "the file", j.Link(p.grant+"/l", true, p.grant+"/d/followed"), 0)
		want(t, "the link", j.Link(p.grant+"/l", false, p.grant+"/d/itself"), 0)
		want(t, "a directory", j.Link(p.grant+"/d", false, p.grant+"/e"), wasi.EPERM)
		want(t, "onto what is there", j.Link(p.grant+"/f", false, p.grant+"/l"), wasi.EEXIST)
		want(t, "out", j.Link(p.grant+"/f", false, p.out+"/f"), wasi.EACCES)
		want(t, "from out", j.Link(p.out+"/secret.txt", false, p.grant+"/s"), wasi.EACCES)
		for name, typ := range map[string]wasi.FileType{"followed": wasi.TypeRegular, "itself": wasi.TypeSymlink} {
			if st, e := j.Stat(p.grant+"/d/"+name, false, false); e != 0 || st.Type != typ || st.Nlink != 2 {
				t.Errorf("%s: %+v, errno %d", name, st, e)
			}
		}
	})
}

// TestSeveralAtOnce: one jail serves several goroutines.
func TestSeveralAtOnce(t *testing.T) {
	p := newPlace(t)
	put(t, p.grant+"/f", "text")
	must(t, os.Symlink("f", p.grant+"/l"))
	j, _ := open(t, false, rule{p.grant, all})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				if text, e := slurp(j, p.grant+"/l"); e != 0 || text != "text" {
					t.Errorf("%q, errno %d", text, e)
				}
			}
		})
	}
	wg.Wait()
}

// TestOps: every function has a name of its own.
func TestOps(t *testing.T) {
	seen := map[string]bool{NumOps.String(): true}
	for o := range NumOps {
		name := o.String()
		if seen[name] || !strings.HasPrefix(name, "path_") && !strings.HasPrefix(name, "fd_") {
			t.Errorf("%d is called %q", o, name)
		}
		seen[name] = true
	}
}

// TestErrnos: what WASI has no word for is EIO, and nothing is success but nil.
func TestErrnos(t *testing.T) {
	for err, e := range map[error]wasi.Errno{
		nil: 0, os.ErrClosed: wasi.EIO, unix.ENOTTY: wasi.EIO, unix.EACCES: wasi.EACCES, unix.ENOSPC: wasi.ENOSPC,
		unix.EROFS: wasi.EROFS, unix.ENXIO: wasi.EACCES, unix.EOPNOTSUPP: wasi.ENOTSUP, unix.EFBIG: wasi.EFBIG,
		unix.ENOSYS: wasi.ENOTSUP, unix.EBADF: wasi.EBADF, unix.EMFILE: wasi.EMFILE,
	} {
		want(t, "errnoOf", errnoOf(err), e)
	}
	for n := unix.Errno(1); n < 134; n++ {
		if errnoOf(n) == 0 {
			t.Errorf("%v is success", n)
		}
	}
}
