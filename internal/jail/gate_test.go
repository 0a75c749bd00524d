//go:build linux || darwin

package jail

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/links"
	"runloop.dev/rlp/internal/wasi"
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

// A walker is a gate that walks its rules as strings. Scope i is rules[i].
type walker struct {
	mu      sync.Mutex
	rules   []rule
	asked   []ask
	revoked []ask
	gone    map[int32]bool
	quiet   bool
	still   string // what nobody moves from, or to
}

func (g *walker) find(mode caps.Mode, p string) int32 {
	best := int32(-1)
	for i, r := range g.rules {
		if links.Within(p, r.path) && (best < 0 || len(r.path) > len(g.rules[best].path)) {
			best = int32(i)
		}
	}
	if best < 0 || g.rules[best].modes&(1<<mode) == 0 || g.gone[best] {
		return -1
	}
	return best
}

func (g *walker) record(op Op, mode caps.Mode, p string, scope int32) int32 {
	if !g.quiet {
		g.mu.Lock()
		g.asked = append(g.asked, ask{op, mode, strings.Clone(p), scope >= 0})
		g.mu.Unlock()
	}
	return scope
}

func (g *walker) Admit(op Op, mode caps.Mode, p string) int32 {
	return g.record(op, mode, p, g.find(mode, p))
}

func (g *walker) AdmitTree(op Op, mode caps.Mode, p string) int32 {
	scope := g.find(mode, p)
	for _, r := range g.rules {
		if links.Within(r.path, p) && r.modes&(1<<mode) == 0 {
			scope = -1
		}
	}
	return g.record(op, mode, p, scope)
}

func (g *walker) AdmitMove(op Op, from, to string) bool {
	if g.still == "" || !links.Within(from, g.still) && !links.Within(to, g.still) {
		return true
	}
	return g.record(op, caps.Write, from, -1) >= 0
}

func (g *walker) Holds(scope int32, mode caps.Mode) bool {
	return !g.gone[scope] && g.rules[scope].modes&(1<<mode) != 0
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
	g := &walker{rules: rules, gone: make(map[int32]bool)}
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
