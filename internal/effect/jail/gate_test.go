//go:build linux || darwin

package jail

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/links"
	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/record/audit"
)

const all = read | writ | del

// A rule says what the longest matching path allows.
type rule struct {
	path  string
	modes caps.ModeSet // 0 denies
}

// An ask is one decision that a walker recorded.
type ask struct {
	op    Op
	mode  caps.Mode
	path  string
	allow bool
}

// A walker is a gate that walks its rules as strings. Only a gate makes permits,
// so it has one that permits what some rule does, and each permit is of the scope
// of its rule.
type walker struct {
	mu      sync.Mutex
	permits []gate.Permit // by rule
	rules   []rule
	asked   []ask
	revoked []ask
	gone    map[int]bool
	quiet   bool
	still   string // what nobody moves from, or to
}

// permits are one for each path, from a real gate that grants these paths.
func permits(paths ...string) []gate.Permit {
	var entries []caps.Entry
	for _, p := range paths {
		entries = append(entries, caps.Entry{Grant: caps.Grant{Family: caps.FS, Modes: caps.AllModes(caps.FS), Scope: p}})
	}
	set, err := caps.Base(entries, caps.Limits{})
	if err != nil {
		panic(err)
	}
	g, err := gate.New(set, audit.NewMemory(), gate.Options{MaxCalls: -1})
	if err != nil {
		panic(err)
	}
	op, err := g.Op("path_open")
	if err != nil {
		panic(err)
	}
	var list []gate.Permit
	for _, p := range paths {
		list = append(list, g.Admit(op, caps.Request{Family: caps.FS, Mode: caps.Read, Name: p}, p, nil).Permit)
	}
	return list
}

func (g *walker) find(mode caps.Mode, p string) int {
	best := -1
	for i, r := range g.rules {
		if links.Within(p, r.path) && (best < 0 || len(r.path) > len(g.rules[best].path)) {
			best = i
		}
	}
	if best < 0 || g.rules[best].modes&(1<<mode) == 0 || g.gone[best] {
		return -1
	}
	return best
}

func (g *walker) record(op Op, mode caps.Mode, p string, rule int) gate.Permit {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.quiet {
		g.asked = append(g.asked, ask{op, mode, strings.Clone(p), rule >= 0})
	}
	if rule < 0 {
		return gate.Permit{}
	}
	if g.permits == nil {
		var paths []string
		for _, r := range g.rules {
			paths = append(paths, r.path)
		}
		g.permits = permits(paths...)
	}
	return g.permits[rule]
}

func (g *walker) Admit(op Op, mode caps.Mode, p string) gate.Permit {
	return g.record(op, mode, p, g.find(mode, p))
}

func (g *walker) AdmitTree(op Op, mode caps.Mode, p string) gate.Permit {
	rule := g.find(mode, p)
	for _, r := range g.rules {
		if links.Within(r.path, p) && r.modes&(1<<mode) == 0 {
			rule = -1
		}
	}
	return g.record(op, mode, p, rule)
}

func (g *walker) AdmitMove(op Op, from, to string) bool {
	if g.still == "" || !links.Within(from, g.still) && !links.Within(to, g.still) {
		return true
	}
	return g.record(op, caps.Write, from, -1).OK()
}

func (g *walker) Holds(p gate.Permit, mode caps.Mode) bool {
	rule := slices.Index(g.permits, p)
	return !g.gone[rule] && g.rules[rule].modes&(1<<mode) != 0
}

func (g *walker) Revoked(op Op, mode caps.Mode, p string) {
	g.revoked = append(g.revoked, ask{op, mode, p, false})
}

// denied counts the refusals that were recorded.
func (g *walker) denied() (n int) {
	for _, a := range g.asked {
		if !a.allow {
			n++
		}
	}
	return n
}

// Nothing beneath a grant is opened, looked at or found without a permit.
//
//rlp:holds C14
func TestNothingIsReachedWithoutAPermit(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		put(t, p.grant+"/f", "x")
		j, _ := open(t, walk, rule{p.grant, all})
		r := j.rootOf(p.grant)
		for permit, want := range map[gate.Permit]error{{}: unix.EACCES, permits(p.grant)[0]: nil} {
			fd, err := j.openBeneath(permit, r, "f", unix.O_RDONLY, 0)
			if err != want {
				t.Errorf("%+v opens: %v", permit, err)
			}
			if err == nil {
				must(t, unix.Close(fd))
			}
			if _, _, err := j.parentOf(permit, r, "f"); err != want {
				t.Errorf("%+v finds: %v", permit, err)
			}
			for _, rel := range []string{"", "f"} {
				if err := j.lstat(permit, r, rel, new(wasi.Stat)); err != want {
					t.Errorf("%+v looks at %q: %v", permit, rel, err)
				}
			}
			w := way{j: j, root: r, rel: "f/g", permit: permit}
			if _, _, err := w.firstLink(); (err == unix.EACCES) != (want != nil) {
				t.Errorf("%+v follows: %v", permit, err)
			}
		}
	})
}

// A place is a folder with a grant and what must stay untouched beside it.
type place struct{ base, grant, out string }

func newPlace(t testing.TB) place {
	t.Helper()
	r, err := Canonical(t.TempDir())
	if err != nil || r.Missing {
		t.Fatalf("Canonical: %+v, %v", r, err)
	}
	base := r.Path
	p := place{base, base + "/grant", base + "/out"}
	for _, d := range []string{p.grant, p.out + "/sub", base + "/grant-evil"} {
		must(t, os.MkdirAll(d, 0o755))
	}
	put(t, p.out+"/secret.txt", "CANARY")
	put(t, p.out+"/victim.txt", "victim")
	put(t, base+"/grant-evil/secret.txt", "CANARY")
	return p
}

// outside is everything beside the grant: names, kinds, contents, times.
func (p place) outside(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	for _, top := range []string{p.out, p.base + "/grant-evil"} {
		must(t, filepath.Walk(top, func(name string, info os.FileInfo, err error) error {
			if err != nil {
				return err
			}
			b.WriteString(name + " " + info.Mode().String() + " " + info.ModTime().String())
			if info.Mode().IsRegular() {
				text, err := os.ReadFile(name)
				if err != nil {
					return err
				}
				b.WriteString(" " + string(text))
			}
			b.WriteString("\n")
			return nil
		}))
	}
	return b.String()
}

// resolvers are the ways in which a jail can resolve paths here.
var resolvers = map[string]bool{"kernel": false, "walk": true}

// eachResolver runs f once with the kernel resolving, once without.
func eachResolver(t *testing.T, f func(t *testing.T, walk bool)) {
	t.Helper()
	for name, walk := range resolvers {
		t.Run(name, func(t *testing.T) { f(t, walk) })
	}
}

// open is a jail whose roots are the paths of the rules that allow something.
func open(t testing.TB, walk bool, rules ...rule) (*Jail, *walker) {
	t.Helper()
	g := &walker{rules: rules, gone: make(map[int]bool)}
	c := Config{Gate: g, walk: walk}
	for _, r := range rules {
		if r.modes != 0 {
			c.Roots = append(c.Roots, r.path)
		}
	}
	j, err := Open(c)
	must(t, err)
	t.Cleanup(func() { must(t, j.Close()) })
	return j, g
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// want fails unless the error number is the expected one.
func want(t testing.TB, what string, got, expected wasi.Errno) {
	t.Helper()
	if got != expected {
		t.Errorf("%s: errno %d, want %d", what, got, expected)
	}
}

func put(t testing.TB, name, text string) {
	t.Helper()
	must(t, os.WriteFile(name, []byte(text), 0o644))
}

// slurp reads a file through the jail.
func slurp(j wasi.FS, p string) (string, wasi.Errno) {
	f, e := j.Open(p, false, wasi.OpenFlags{Read: true})
	if e != 0 {
		return "", e
	}
	defer f.Close()
	buf := make([]byte, 1<<16)
	n, e := f.Read(buf)
	return string(buf[:n]), e
}

// spill writes a file through the jail.
func spill(j wasi.FS, p, text string, o wasi.OpenFlags) wasi.Errno {
	o.Write = true
	f, e := j.Open(p, false, o)
	if e != 0 {
		return e
	}
	defer f.Close()
	_, e = f.Write([]byte(text))
	return e
}
