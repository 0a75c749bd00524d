//go:build linux || darwin

package jail

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/effect/links"
	"runloop.dev/rlp/internal/effect/wasi"
)

// A link that leads out of what the guest holds stays where it is: moved, linked
// or linked to it could stand where the next launch, or another agent's, is
// granted a path.
func TestLinksThatLeadOutStayWhereTheyAre(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		must(t, os.MkdirAll(p.grant+"/tree/deep", 0o755))
		must(t, os.MkdirAll(p.grant+"/a/b/c", 0o755))
		must(t, os.MkdirAll(p.grant+"/denied", 0o755))
		for name, text := range map[string]string{
			"/old": p.out, "/tree/deep/l": p.out, "/chain": "old", "/down": "denied", "/up": "../out", "/loop": "loop",
			"/a/b/c/rel": "../../x", "/climbs": "a/b/../..", "/in": "a/b", "/dangling": "later",
		} {
			must(t, os.Symlink(text, p.grant+name))
		}
		j, g := open(t, walk, rule{p.grant, all}, rule{p.grant + "/denied", 0}, rule{p.grant + "/missing", all},
			rule{p.grant + "/above/deep", all})
		at := func(name string) string { return p.grant + name }
		for _, name := range []string{"/old", "/chain", "/down", "/up", "/loop", "/climbs", "/tree", "/tree/deep"} {
			want(t, "move "+name, j.Rename(at(name), at("/sub"), false), wasi.EACCES)
			if _, err := os.Lstat(at("/sub")); err == nil {
				t.Fatalf("control: %s was moved", name)
			}
		}
		for _, name := range []string{"/old", "/chain", "/down", "/up", "/loop", "/climbs", "/tree/deep/l"} {
			want(t, "hard link "+name, j.Link(at(name), false, at("/sub")), wasi.EACCES)
			want(t, "link to "+name, j.Symlink(at(name), at("/sub")), wasi.EACCES)
		}
		for _, text := range []string{
			"old/x", "in/../old", "in/../../../out", "./up", "chain", "tree/deep/l/y", "/",
			p.grant + "/../out",
		} {
			want(t, "new link with the text "+text, j.Symlink(text, at("/sub")), wasi.EACCES)
		}
		want(t, "a relative link to where it leads out", j.Rename(at("/a/b/c"), at("/c"), false), wasi.EACCES)
		if last := g.asked[len(g.asked)-1]; last.path != p.base+"/x" || last.allow {
			t.Errorf("asked about %v", last)
		}
		must(t, os.MkdirAll(at("/has"), 0o755))
		must(t, os.Symlink("../a", at("/has/deep")))
		for _, name := range []string{"/missing", "/above"} {
			want(t, "a link where a path is granted: "+name, j.Symlink("a", at(name)), wasi.EBUSY)
			want(t, "one that is moved there", j.Rename(at("/in"), at(name), false), wasi.EBUSY)
			want(t, "one that is linked there", j.Link(at("/in"), false, at(name)), wasi.EBUSY)
		}
		want(t, "one in a folder that is moved there", j.Rename(at("/has"), at("/above"), false), wasi.EBUSY)
		// controls: the same where all that they lead to is the guest's
		want(t, "move a link that stays", j.Rename(at("/in"), at("/in2"), false), 0)
		want(t, "and link it", j.Link(at("/in2"), false, at("/in")), 0)
		want(t, "move a link to what is not there", j.Rename(at("/dangling"), at("/dangling2"), false), 0)
		want(t, "link to what is not there", j.Symlink("a/later", at("/sub")), 0)
		want(t, "move a folder with links that stay", j.Rename(at("/a/b"), at("/a/d"), false), 0)
		must(t, os.Symlink("c/rel", at("/a/d/within")))
		must(t, os.Symlink(at("/a/e/c"), at("/a/d/ahead")))
		want(t, "whose links lead to itself", j.Rename(at("/a/d"), at("/a/e"), false), 0)
	})
}

// What moves or links is asked about by where it really is, past every link.
func TestMovesAreAskedAboutByRealPaths(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		must(t, os.MkdirAll(p.grant+"/a/still", 0o755))
		put(t, p.grant+"/a/still/f", "")
		put(t, p.grant+"/g", "")
		must(t, os.Symlink("a/still", p.grant+"/l"))
		must(t, os.Symlink("a/still/f", p.grant+"/lf"))
		j, g := open(t, walk, rule{p.grant, all})
		at := func(name string) string { return p.grant + name }
		g.still = at("/a/still")
		want(t, "move out by a link", j.Rename(at("/l/f"), at("/f"), false), wasi.EACCES)
		if last := g.asked[len(g.asked)-1]; last.path != at("/a/still/f") {
			t.Errorf("asked about %v", last)
		}
		want(t, "move in by a link", j.Rename(at("/g"), at("/l/g"), false), wasi.EACCES)
		want(t, "link by a link", j.Link(at("/lf"), true, at("/f")), wasi.EACCES)
		want(t, "link it", j.Link(at("/l/f"), false, at("/f")), wasi.EACCES)
		want(t, "move what is not there", j.Rename(at("/l/none"), at("/f"), false), wasi.EACCES)
		g.still = ""
		want(t, "control: link", j.Link(at("/lf"), true, at("/f2")), 0)
		want(t, "control: move", j.Rename(at("/l/f"), at("/f"), false), 0)
	})
}

// What a link leads to in the folder that it is moved with is read where it
// lies now: that nothing may be read where it is to lie is no matter.
func TestALinkIntoTheFolderItMovesWith(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		must(t, os.MkdirAll(p.grant+"/d/c", 0o755))
		must(t, os.Mkdir(p.grant+"/drop", 0o755))
		must(t, os.Symlink("../c", p.grant+"/d/c/own"))
		j, g := open(t, walk, rule{p.grant, all}, rule{p.grant + "/drop", writ})
		want(t, "move", j.Rename(p.grant+"/d", p.grant+"/drop/d", false), 0)
		if g.denied() != 0 {
			t.Errorf("asked about %v", g.asked)
		}
		must(t, os.Symlink("d/c", p.grant+"/drop/l"))
		must(t, os.MkdirAll(p.grant+"/e", 0o755))
		must(t, os.Symlink("../drop/d", p.grant+"/e/l"))
		want(t, "control: a link to what may not be read", j.Rename(p.grant+"/e", p.grant+"/drop/e", false), wasi.EACCES)
	})
}

// How deep a folder is says nothing of how many lie beside it.
func TestManyFoldersBesideEachOther(t *testing.T) {
	p := newPlace(t)
	for i := range 2 * links.MostDeep {
		must(t, os.MkdirAll(p.grant+"/wide/"+strconv.Itoa(i), 0o755))
	}
	j, _ := open(t, false, rule{p.grant, all})
	want(t, "move", j.Rename(p.grant+"/wide", p.grant+"/moved", false), 0)
}

// A link whose text and folder are longer together than a path may be leads
// nowhere, and is not made.
func TestALinkThatLeadsTooFar(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		deep := p.grant + strings.Repeat("/deep", 200)
		must(t, os.MkdirAll(deep, 0o755))
		j, _ := open(t, walk, rule{p.grant, all})
		long := strings.Repeat("x/", 2000)
		want(t, "long", j.Symlink(long+strings.Repeat("y/", 40), deep+"/l"), wasi.ENAMETOOLONG)
		want(t, "control", j.Symlink("x/y", deep+"/l"), 0)
		// Followed, it may be as long as a path, and no longer.
		name := p.grant + "/l2"
		for _, n := range []int{links.PathMax - 1, links.PathMax} {
			text := strings.Repeat("y/", (n-len(p.grant))/2)
			text = text[:n-len(p.grant)-2] + "z"
			if len(p.grant+"/"+text) != n {
				t.Fatalf("%d bytes, not %d", len(p.grant+"/"+text), n)
			}
			must(t, os.Symlink(text, name))
			_, e := j.Stat(name, false, true)
			want(t, "followed", e, map[bool]wasi.Errno{true: wasi.ENOENT, false: wasi.ENAMETOOLONG}[n < links.PathMax])
			must(t, os.Remove(name))
		}
	})
}
