//go:build linux || darwin

package jail

import (
	"os"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/experimental/sysfs"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/wasi"
)

// yes is a gate that costs nothing, for it has one permit for everything: what
// remains is the jail.
type yes struct{ permit gate.Permit }

func (y yes) Admit(Op, caps.Mode, string) gate.Permit     { return y.permit }
func (y yes) AdmitTree(Op, caps.Mode, string) gate.Permit { return y.permit }
func (yes) AdmitMove(Op, string, string) bool             { return true }
func (yes) Holds(gate.Permit, caps.Mode) bool             { return true }
func (yes) Revoked(Op, caps.Mode, string)                 {}

// measured is a jail and the engine's own directory mount of the same folder,
// with a file of 64 KiB in it, and one four folders down.
func measured(b testing.TB) (*Jail, sys.FS, string) {
	b.Helper()
	p := newPlace(b)
	must(b, os.MkdirAll(p.grant+"/a/b/c/d", 0o755))
	put(b, p.grant+"/f", string(make([]byte, 64<<10)))
	put(b, p.grant+"/a/b/c/d/f", "")
	j, err := Open(Config{Gate: yes{permits("/")[0]}, Roots: []string{p.grant}})
	must(b, err)
	b.Cleanup(func() { j.Close() })
	return j, sysfs.DirFS(p.grant), p.grant
}

func BenchmarkStat(b *testing.B) {
	j, mount, dir := measured(b)
	for _, name := range []string{"f", "a/b/c/d/f"} {
		whole := dir + "/" + name
		b.Run("jail/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, e := j.Stat(whole, false, true); e != 0 {
					b.Fatal(e)
				}
			}
		})
		b.Run("mount/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, e := mount.Stat(name); e != 0 {
					b.Fatal(e)
				}
			}
		})
		b.Run("os/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := os.Stat(whole); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOpenClose(b *testing.B) {
	j, mount, dir := measured(b)
	for _, name := range []string{"f", "a/b/c/d/f"} {
		whole := dir + "/" + name
		b.Run("jail/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f, e := j.Open(whole, false, wasi.OpenFlags{Read: true})
				if e != 0 {
					b.Fatal(e)
				}
				f.Close()
			}
		})
		b.Run("mount/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f, e := mount.OpenFile(name, sys.O_RDONLY, 0)
				if e != 0 {
					b.Fatal(e)
				}
				f.Close()
			}
		})
	}
}

func BenchmarkRead64K(b *testing.B) {
	j, mount, dir := measured(b)
	buf := make([]byte, 64<<10)
	f, e := j.Open(dir+"/f", false, wasi.OpenFlags{Read: true})
	m, me := mount.OpenFile("f", sys.O_RDONLY, 0)
	if e != 0 || me != 0 {
		b.Fatal(e, me)
	}
	defer f.Close()
	defer m.Close()
	b.Run("jail", func(b *testing.B) {
		for b.Loop() {
			if n, e := f.Pread(buf, 0); n != len(buf) || e != 0 {
				b.Fatal(n, e)
			}
		}
	})
	b.Run("mount", func(b *testing.B) {
		for b.Loop() {
			if n, e := m.Pread(buf, 0); n != len(buf) || e != 0 {
				b.Fatal(n, e)
			}
		}
	})
}

// TestAllocations: none to look, a descriptor and its path to open.
func TestAllocations(t *testing.T) {
	j, _, dir := measured(t)
	near, far := dir+"/f", dir+"/a/b/c/d/f"
	for _, name := range []string{near, far} {
		if n := testing.AllocsPerRun(100, func() { j.Stat(name, false, true) }); n != 0 {
			t.Errorf("stat: %v allocations", n)
		}
		if n := testing.AllocsPerRun(100, func() {
			f, _ := j.Open(name, false, wasi.OpenFlags{Read: true})
			f.Close()
		}); n > 2 {
			t.Errorf("open and close: %v allocations", n)
		}
	}
	f, _ := j.Open(near, false, wasi.OpenFlags{Read: true})
	defer f.Close()
	buf := make([]byte, 100)
	if n := testing.AllocsPerRun(100, func() { f.Pread(buf, 0) }); n != 0 {
		t.Errorf("read: %v allocations", n)
	}
}
