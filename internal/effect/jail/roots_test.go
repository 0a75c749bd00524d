//go:build linux || darwin

package jail

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"

	"runloop.dev/rlp/internal/effect/links"
	"runloop.dev/rlp/internal/effect/wasi"
)

// TestNothingAboveAGrant: what lies above and beside a grant is refused and
// recorded, and never said not to exist.
//
//rlp:holds K13 K15
func TestNothingAboveAGrant(t *testing.T) {
	p := newPlace(t)
	j, g := open(t, false, rule{p.grant, all})
	for _, path := range []string{"/", p.base, p.out, p.grant + "-evil/secret.txt", "/nowhere", p.base + "/nowhere/x"} {
		before := g.denied()
		_, e := j.Stat(path, false, true)
		want(t, "stat "+path, e, wasi.EACCES)
		want(t, "open "+path, opened(j, path, wasi.OpenFlags{Read: true, Directory: true}), wasi.EACCES)
		want(t, "mkdir "+path, j.Mkdir(path), wasi.EACCES)
		if g.denied() != before+3 {
			t.Errorf("%s: %d of 3 refusals recorded", path, g.denied()-before)
		}
	}
	none, _ := open(t, false)
	want(t, "with no grant at all", opened(none, p.grant, wasi.OpenFlags{Read: true}), wasi.EACCES)
}

// TestOwnRoot: a grant's own directory, and what holds one, stays where it is.
func TestOwnRoot(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		inner := p.grant + "/a/inner"
		must(t, os.MkdirAll(inner, 0o755))
		must(t, os.Mkdir(p.grant+"/empty", 0o755))
		j, _ := open(t, walk, rule{p.grant, all}, rule{inner, all})
		want(t, "rmdir", j.Rmdir(p.grant), wasi.EBUSY)
		want(t, "rmdir inner", j.Rmdir(inner), wasi.EBUSY)
		want(t, "unlink", j.Unlink(p.grant, false), wasi.EISDIR)
		want(t, "rename", j.Rename(p.grant, p.grant+"/x", false), wasi.EBUSY)
		want(t, "rename what holds one", j.Rename(p.grant+"/a", p.grant+"/b", false), wasi.EBUSY)
		want(t, "rename onto one", j.Rename(p.grant+"/empty", inner, false), wasi.EBUSY)
		want(t, "mkdir", j.Mkdir(p.grant), wasi.EEXIST)
		want(t, "symlink", j.Symlink("a", p.grant), wasi.EEXIST)
		want(t, "times", j.SetTimes(p.grant, false, true, wasi.Times{Mtim: 5e9, OmitAtim: true}), 0)
		if st, e := j.Stat(p.grant, true, true); e != 0 || st.Mtim != 5e9 || st.Type != wasi.TypeDirectory {
			t.Errorf("stat %+v, errno %d", st, e)
		}
		_, e := j.Readlink(p.grant, nil)
		want(t, "readlink", e, wasi.EINVAL)
		want(t, "from one grant to another", j.Rename(p.grant+"/empty", inner+"/e", true), 0)
	})
}

// TestWhatIsToStay: a path that is named without being granted stays as one that
// is; a file there may be replaced by a file.
func TestWhatIsToStay(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		at := func(name string) string { return p.grant + name }
		for _, d := range []string{"/a/dl", "/b", "/above", "/empty"} {
			must(t, os.MkdirAll(at(d), 0o755))
		}
		put(t, at("/file"), "text")
		put(t, at("/b/f"), "text")
		put(t, at("/nofolder"), "text")
		g := &walker{rules: []rule{{p.grant, all}}, gone: make(map[int]bool)}
		stay := []string{at("/a/dl"), at("/above/later"), at("/missing"), at("/file"), at("/nofolder/later")}
		j, err := Open(Config{Gate: g, walk: walk, Roots: []string{p.grant}, Stay: stay})
		must(t, err)
		t.Cleanup(func() { must(t, j.Close()) })
		for _, name := range []string{"/a/dl", "/a", "/above"} {
			want(t, "rmdir "+name, j.Rmdir(at(name)), wasi.EBUSY)
			want(t, "rename "+name, j.Rename(at(name), at("/x"), false), wasi.EBUSY)
			want(t, "rename onto "+name, j.Rename(at("/empty"), at(name), false), wasi.EBUSY)
		}
		for _, name := range []string{"/a/dl", "/above", "/missing", "/above/later"} {
			want(t, "a link at "+name, j.Symlink("/b", at(name)), wasi.EBUSY)
			want(t, "a file linked at "+name, j.Link(at("/b/f"), false, at(name)), wasi.EBUSY)
		}
		want(t, "a file above one is moved", j.Rename(at("/nofolder"), at("/x"), false), wasi.EBUSY)
		want(t, "a file by a file", j.Rename(at("/b/f"), at("/file"), false), 0)
		want(t, "remove the file", j.Unlink(at("/file"), false), 0)
		want(t, "a link in its place", j.Symlink("b", at("/file")), wasi.EBUSY)
		want(t, "a folder in its place", j.Mkdir(at("/missing")), 0)
		control, _ := open(t, walk, rule{p.grant, all})
		want(t, "control: rmdir", control.Rmdir(at("/a/dl")), 0)
		want(t, "control: a link there", control.Symlink("../b", at("/a/dl")), 0)
	})
}

// TestWhatHoldsAGrantStays: nor is the folder of a granted file, or of a grant
// that is not there yet, removed, moved or put another one in the place of.
func TestWhatHoldsAGrantStays(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		must(t, os.Mkdir(p.grant+"/a", 0o755))
		must(t, os.Mkdir(p.grant+"/empty", 0o755))
		must(t, os.Mkdir(p.grant+"/other", 0o755))
		put(t, p.grant+"/file", "text")
		j, _ := open(t, walk, rule{p.grant, all}, rule{p.grant + "/a/later", all}, rule{p.grant + "/file", all})
		want(t, "rmdir", j.Rmdir(p.grant+"/a"), wasi.EBUSY)
		want(t, "rename", j.Rename(p.grant+"/a", p.grant+"/b", false), wasi.EBUSY)
		want(t, "rename onto it", j.Rename(p.grant+"/empty", p.grant+"/a", false), wasi.EBUSY)
		want(t, "control: rename onto another", j.Rename(p.grant+"/empty", p.grant+"/other", false), 0)
		want(t, "control: rmdir of another", j.Rmdir(p.grant+"/other"), 0)
		want(t, "a granted file is moved", j.Rename(p.grant+"/file", p.grant+"/gone", false), 0)
		want(t, "a link in its place", j.Symlink("a", p.grant+"/file"), wasi.EBUSY)
		want(t, "control: a link beside it", j.Symlink("a", p.grant+"/beside"), 0)
		want(t, "and put back", j.Rename(p.grant+"/gone", p.grant+"/file", false), 0)
	})
}

// TestOneOfSeveralGrants: which grant serves a path does not depend on what
// others are called.
func TestOneOfSeveralGrants(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		for _, d := range []string{"/aa", "/bb", "/bb/cc"} {
			must(t, os.Mkdir(p.grant+d, 0o755))
			put(t, p.grant+d+"/f", d)
		}
		j, _ := open(t, walk, rule{p.grant, all}, rule{p.grant + "/aa", all}, rule{p.grant + "/aa/cc", all})
		for _, d := range []string{"/aa", "/bb", "/bb/cc"} {
			if text, e := slurp(j, p.grant+d+"/f"); e != 0 || text != d {
				t.Errorf("%s: %q, errno %d", d, text, e)
			}
		}
		must(t, j.Close())
		_, e := j.Stat(p.grant+"/aa/f", false, true)
		want(t, "stat after Close", e, wasi.EACCES)
	})
}

// TestAsWritten: where roots are taken as they are written, what cannot be
// pinned is missing.
func TestAsWritten(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		must(t, os.Symlink("../out", p.grant+"/l"))
		must(t, syscall.Mkfifo(p.grant+"/fifo", 0o644))
		put(t, p.grant+"/f", "text")
		g := &walker{rules: []rule{{"/", all}}}
		roots := []string{
			p.grant + "/l", p.grant + "/f", p.grant + "/none/x", p.grant + "/l/no", p.grant + "/fifo",
			"/dev/null",
		}
		j, err := Open(Config{Gate: g, Roots: roots, AsWritten: true, walk: walk})
		must(t, err)
		defer j.Close()
		if want := slices.Delete(slices.Clone(roots), 1, 2); !slices.Equal(j.Missing(), want) {
			t.Errorf("missing %q, want %q", j.Missing(), want)
		}
		if text, e := slurp(j, p.grant+"/f"); e != 0 || text != "text" {
			t.Errorf("the one that is there: %q, errno %d", text, e)
		}
		for _, name := range []string{"/l/secret.txt", "/l", "/fifo", "/none/x/y"} {
			_, e := j.Stat(p.grant+name, false, true)
			want(t, "stat "+name, e, wasi.ENOENT)
		}
		_, e := j.Stat(p.out, false, true)
		want(t, "stat of what is no grant", e, wasi.EACCES)
	})
}

// TestRefusedBeforeLooked: what is refused is refused for that, whatever lies
// there.
func TestRefusedBeforeLooked(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		must(t, os.Symlink("secret.txt", p.out+"/l"))
		must(t, os.Mkdir(p.grant+"/drop", 0o755))
		must(t, os.Mkdir(p.grant+"/d", 0o755))
		put(t, p.grant+"/drop/f", "text")
		must(t, os.Symlink("d", p.grant+"/l"))
		j, _ := open(t, walk, rule{p.grant, all}, rule{p.grant + "/drop", writ})
		buf := make([]byte, 20)
		_, e := j.Readlink(p.out+"/l", buf)
		want(t, "readlink", e, wasi.EACCES)
		_, e = j.Readlink(p.grant+"/none/l", buf)
		want(t, "control: readlink", e, wasi.ENOENT)
		want(t, "create as a folder", opened(j, p.out+"/new", wasi.OpenFlags{Create: true}), wasi.EACCES)
		_, e = j.Open(p.out+"/new", true, wasi.OpenFlags{Create: true})
		want(t, "create with a slash", e, wasi.EACCES)
		want(t, "open for nothing, which is to read", opened(j, p.grant+"/drop/f", wasi.OpenFlags{}), wasi.EACCES)
		want(t, "control: open for writing", opened(j, p.grant+"/drop/f", wasi.OpenFlags{Write: true}), 0)
		want(t, "a link as a folder, not followed", opened(j, p.grant+"/l", wasi.OpenFlags{
			Read: true, Directory: true,
			NoFollow: true,
		}), wasi.ENOTDIR)
	})
}

// TestFileGrant: a granted file is that name in its directory, and nothing
// beside it, however often the file is replaced.
//
//rlp:holds R17
func TestFileGrant(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		name := p.grant + "/f"
		put(t, name, "one")
		put(t, p.grant+"/g", "beside")
		j, g := open(t, walk, rule{name, all})
		refused(t, j, g, p.grant+"/g")
		_, e := j.Stat(p.grant, true, true)
		want(t, "its directory", e, wasi.EACCES)
		want(t, "below it", opened(j, name+"/x", wasi.OpenFlags{Read: true}), wasi.ENOTDIR)
		put(t, p.grant+"/new", "two")
		must(t, os.Rename(p.grant+"/new", name))
		if text, e := slurp(j, name); e != 0 || text != "two" {
			t.Errorf("replaced: %q, errno %d", text, e)
		}
		want(t, "unlink", j.Unlink(name, false), 0)
		want(t, "create", spill(j, name, "three", wasi.OpenFlags{Create: true}), 0)
		must(t, os.Remove(name))
		must(t, os.Symlink(p.out+"/secret.txt", name))
		leaks(t, name)
		refused(t, j, g, name)
	})
}

// TestMissing: a grant that is not there is told, and is ENOENT rather than
// EACCES; one whose directory is there can be made.
func TestMissing(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		far, near, under := p.grant+"/no/way", p.grant+"/later", p.grant+"/file/x"
		put(t, p.grant+"/file", "")
		j, _ := open(t, walk, rule{far, all}, rule{near, all})
		if !slices.Equal(j.Missing(), []string{far, near}) {
			t.Errorf("missing %v", j.Missing())
		}
		_, e := slurp(j, far+"/f")
		want(t, "read below the far one", e, wasi.ENOENT)
		want(t, "make the far one", j.Mkdir(far), wasi.ENOENT)
		_, e = slurp(j, near)
		want(t, "read the near one", e, wasi.ENOENT)
		want(t, "make the near one", j.Mkdir(near), 0)
		want(t, "write in it", spill(j, near+"/f", "x", wasi.OpenFlags{Create: true}), 0)
		_, e = slurp(j, p.grant+"/file")
		want(t, "read beside it", e, wasi.EACCES)
		if _, err := Open(Config{Gate: &walker{}, Roots: []string{under}, walk: walk}); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("a grant below a file: %v", err)
		}
	})
}

// TestOpenRefuses: roots that are not canonical, or nothing to hold.
func TestOpenRefuses(t *testing.T) {
	p := newPlace(t)
	must(t, os.Symlink("../out", p.grant+"/l"))
	must(t, syscall.Mkfifo(p.grant+"/fifo", 0o644))
	for root, want := range map[string]error{
		"":                 ErrPath,
		"grant":            ErrPath,
		p.grant + "/":      ErrPath,
		p.grant + "/../x":  ErrPath,
		p.grant + "/\x00":  ErrPath,
		p.grant + "/l":     ErrMoved,
		p.grant + "/l/sub": ErrMoved,
		p.grant + "/l/no":  ErrMoved,
		p.grant + "/fifo":  ErrKind,
		"/dev/null":        ErrKind,
	} {
		eachResolver(t, func(t *testing.T, walk bool) {
			j, err := Open(Config{Gate: &walker{}, Roots: []string{p.grant, root}, walk: walk})
			if !errors.Is(err, want) || j != nil {
				t.Errorf("root %q: %v, want %v", root, err, want)
			}
		})
	}
	if _, err := Open(Config{Gate: &walker{}, Aliases: []Alias{{"/a/../b", "/c"}}}); !errors.Is(err, ErrPath) {
		t.Errorf("unclean alias: %v", err)
	}
	if _, err := Open(Config{Gate: &walker{}, Aliases: []Alias{{"/a", "/c/"}}}); !errors.Is(err, ErrPath) {
		t.Errorf("alias of what is unclean: %v", err)
	}
}

// TestAliases: a grant written through a link is reached by both names, and
// judged by one.
func TestAliases(t *testing.T) {
	p := newPlace(t)
	must(t, os.MkdirAll(p.grant+"/deep", 0o755))
	put(t, p.grant+"/deep/f", "text")
	alias := p.base + "/alias"
	must(t, os.Symlink("grant", alias))
	must(t, os.Symlink(alias+"/deep/f", p.grant+"/l")) // absolute, by the other name
	g := &walker{rules: []rule{{p.grant, all}}}
	aliases := []Alias{{alias, p.grant}, {alias + "/deep/longer", p.grant + "/deep"}, {alias + "/d", p.grant + "/deep"}}
	var j *Jail
	for range aliases { // in any order
		aliases = append(aliases[1:], aliases[0])
		var err error
		j, err = Open(Config{Gate: g, Roots: []string{p.grant}, Aliases: aliases})
		must(t, err)
		defer j.Close()
		for _, path := range []string{alias + "/deep/f", alias + "/deep/longer/f", alias + "/d/f", p.grant + "/deep/f"} {
			if text, e := slurp(j, path); e != 0 || text != "text" {
				t.Errorf("%s: %q, errno %d", path, text, e)
			}
		}
	}
	if text, e := slurp(j, alias+"/l"); e != 0 || text != "text" {
		t.Errorf("absolute link: %q, errno %d", text, e)
	}
	want(t, "link by the other name", j.Symlink(alias+"/deep/f", alias+"/new"), 0)
	_, e := slurp(j, p.base+"/aliased")
	want(t, "a name that begins alike", e, wasi.EACCES)
	for _, a := range g.asked {
		if links.Within(a.path, alias) {
			t.Errorf("judged under the other name: %s", a.path)
		}
	}
}

// TestGateKnowsMore: what the gate allows and no root covers is refused.
func TestGateKnowsMore(t *testing.T) {
	p := newPlace(t)
	j, err := Open(Config{Gate: &walker{rules: []rule{{"/", all}}}, Roots: []string{p.grant, p.base + "/none/x"}})
	must(t, err)
	defer j.Close()
	_, e := slurp(j, p.out+"/secret.txt")
	want(t, "read", e, wasi.EACCES)
}

// TestNUL: a name is not cut where C would cut it.
func TestNUL(t *testing.T) {
	p := newPlace(t)
	put(t, p.grant+"/f", "text")
	j, _ := open(t, false, rule{p.grant, all})
	bad := p.grant + "/f\x00g"
	_, e := slurp(j, bad)
	want(t, "open", e, wasi.EINVAL)
	_, e = j.Stat(bad, false, true)
	want(t, "stat", e, wasi.EINVAL)
	want(t, "unlink", j.Unlink(bad, false), wasi.EINVAL)
	want(t, "rename to", j.Rename(p.grant+"/f", bad, false), wasi.EINVAL)
	want(t, "link text", j.Symlink("f\x00", p.grant+"/l"), wasi.EINVAL)
	want(t, "link text that begins so", j.Symlink("\x00f", p.grant+"/l"), wasi.EINVAL)
	want(t, "empty link text", j.Symlink("", p.grant+"/l"), wasi.ENOENT)
}
