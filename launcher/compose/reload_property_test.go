package compose

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/launcher/run"
)

// edits are what the operator of these tests writes; the last ones are wrong, or
// no file at all.
var edits = []string{
	"[capabilities]\nfs = []\n", "[capabilities]\nfs_rw = [\"/srv/a\"]\nfs = [\"/srv\", \"/etc\"]\n",
	"[capabilities]\nkb_read = [\"notes\"]\n",
	"[capabilities]\nkb_write = false\n", "[capabilities]\nkb_write = true\ntime = true\n",
	"[deny]\ncapabilities = [\"fs:write:/srv/a/b\", \"time:*:*\"]\n",
	"[deny]\ntools = [\"kb_get\"]\n", "# nothing\n", "",
	"[capabilities]\nfs = 7\n", "[capabilties]\n", removed, removed, removed,
}

// an operator is a home whose overrides and profile somebody edits at random, and
// what is known of it without reading it.
type operator struct {
	t     *testing.T
	rng   *rand.Rand
	files []string // by name; the last one is a profile
	dir   string
	now   map[string]string // what is there; absent: nothing
	valid map[string]string // what was taken last
	first map[string]string // what was there at the launch
}

func (o *operator) path(name string) string {
	if name == "task.toml" {
		return filepath.Join(o.dir, "caps", "profiles", name)
	}
	return filepath.Join(o.dir, "caps", "overrides", name)
}

func (o *operator) edit(name, text string) {
	o.t.Helper()
	path := o.path(name)
	if text == removed {
		_ = os.Remove(path)
		delete(o.now, name)
		return
	}
	if name == "task.toml" {
		text = "schema_version = \"1.0\"\nname = \"task\"\n" + text
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		o.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
	o.now[name] = text
}

// isRight reports whether a file may say text. A profile restricts something.
func isRight(name, text string) bool {
	if name == "task.toml" && !strings.Contains(text, "[") {
		return false
	}
	return !strings.Contains(text, "= 7") && !strings.Contains(text, "capabilties")
}

// takes says whether what is there now makes sense as a whole, and remembers it.
func (o *operator) takes() bool {
	for name := range o.first {
		if _, there := o.now[name]; !there {
			return false
		}
	}
	for name, text := range o.now {
		if !isRight(name, text) {
			return false
		}
	}
	o.valid = maps.Clone(o.now)
	return true
}

// layers are those of files, read by themselves.
func (o *operator) layers(files map[string]string) []*caps.Layer {
	o.t.Helper()
	var list []*caps.Layer
	for name, text := range files {
		opt := policy.Options{Stat: os.Stat}
		var l *caps.Layer
		if name == "task.toml" {
			p, findings := policy.ParseProfile("task", o.path(name), []byte(text), opt)
			if p == nil {
				o.t.Fatal(findings)
			}
			l = p.Layer
		} else {
			p, findings := policy.ParseLayer(name, o.path(name), []byte(text), opt)
			if p == nil {
				o.t.Fatal(findings)
			}
			l = p.Layer
		}
		list = append(list, l)
	}
	return list
}

// Through any edits of the files that narrow a run, right and wrong ones, one or
// several between two turns, the run holds what it was launched with, met with
// the last files that made sense as a whole and, once it is marked, with its
// floor; never more than it was launched with.
//
//rlp:holds Y53 Y55 Y57 Y60 Y62
func TestRandomEditsMeetTheLaunch(t *testing.T) {
	bundle := agentAt(t, t.TempDir(), "bomb", "time = true\n")
	asks := "schema = \"0.2\"\n[capabilities]\nfs_rw = [\"/srv/a\"]\nfs = [\"/srv/b\"]\nkb_read = true\nkb_write = " +
		"[\"drafts\"]\ntime = true\n"
	if err := os.WriteFile(filepath.Join(bundle, "policy.caps"), []byte(asks), 0o600); err != nil {
		t.Fatal(err)
	}
	seeds := uint64(25)
	if testing.Short() {
		seeds = 4
	}
	rejected, gaveBack := 0, 0
	for seed := range seeds {
		o := &operator{
			t: t, rng: rand.New(rand.NewPCG(seed, 3)), dir: t.TempDir(), now: map[string]string{},
			files: []string{"_default.toml", "bomb.toml", "task.toml"},
		}
		for _, name := range o.files {
			if name == "task.toml" || o.rng.IntN(2) == 0 {
				o.edit(name, edits[o.rng.IntN(7)])
			}
		}
		o.takes()
		o.first = o.valid
		r, b := o.conversation(bundle)
		rejected, gaveBack = rejected+r, gaveBack+b
	}
	if rejected == 0 || gaveBack == 0 {
		t.Errorf("nothing was at stake: %d edits were rejected, %d gave something back", rejected, gaveBack)
	}
}

// conversation launches under what is there, and edits between turns.
func (o *operator) conversation(bundle string) (rejected, gaveBack int) {
	t := o.t
	t.Helper()
	a := readerOf(o.dir)
	c, err := a.Compose(bundle, Flags{Profiles: []string{"task"}})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := run.NewPlan(c.Policy)
	if err != nil {
		t.Fatal(err)
	}
	floor := policy.BuiltinFloor(policy.Untrusted)
	g, err := gate.New(plan.Effective, audit.NewMemory(), gate.Options{MaxCalls: -1, Floor: floor})
	if err != nil {
		t.Fatal(err)
	}
	w := newWatcher(c)
	narrowed := func(set caps.Set, layers []*caps.Layer) caps.Set {
		for _, l := range layers {
			if set, _, err = set.Narrow(l); err != nil {
				t.Fatal(err)
			}
		}
		return set
	}
	for turn := range 12 {
		before := g.Set()
		for range 1 + o.rng.IntN(2) {
			o.edit(o.files[o.rng.IntN(len(o.files))], edits[o.rng.IntN(len(edits))])
		}
		if o.rng.IntN(3) == 0 { // back to what is right, or the first slip is the last edit
			for name, text := range o.first {
				o.edit(name, strings.TrimPrefix(text, "schema_version = \"1.0\"\nname = \"task\"\n"))
			}
			for _, name := range o.files {
				if _, first := o.first[name]; !first && !isRight(name, o.now[name]) {
					o.edit(name, removed)
				}
			}
		}
		if o.rng.IntN(10) == 0 {
			if err := g.Taint("https://example.com/"); err != nil {
				t.Fatal(err)
			}
		}
		look, edited, err := w.look()
		if takes := o.takes(); takes != (err == nil) {
			t.Fatalf("turn %d: %v, and what is there is %v (launched with %v)", turn, err, o.now,
				slices.Sorted(maps.Keys(o.first)))
		}
		if err != nil {
			rejected++
		} else if edited {
			if _, err := g.Reload("turn", look.Layers); err != nil {
				t.Fatal(err)
			}
		}
		want := narrowed(plan.Effective, o.layers(o.valid))
		if _, tainted := g.Tainted(); tainted {
			want = narrowed(want, []*caps.Layer{floor})
		}
		got := g.Set()
		if held, wanted := texts(got), texts(want); held != wanted {
			t.Fatalf("turn %d, files %v: holds\n%s\nwant\n%s", turn, o.valid, held, wanted)
		}
		for _, grant := range got.Grants() {
			if !plan.Effective.Covers(grant) && !slices.ContainsFunc(plan.Effective.Except(), func(x caps.Grant) bool {
				return x.Family == grant.Family
			}) {
				t.Fatalf("turn %d: %v is more than it was launched with", turn, grant)
			}
			if !before.Covers(grant) {
				gaveBack++
			}
		}
	}
	return rejected, gaveBack
}

// texts is all that a set says of itself, in an order of its own.
func texts(s caps.Set) string {
	left, hidden := s.Tools()
	list := [][]string{s.Strings(), run.GrantStrings(s.Except()), run.GrantStrings(left), run.GrantStrings(hidden)}
	for _, part := range list {
		slices.Sort(part)
	}
	return fmt.Sprint(list)
}
