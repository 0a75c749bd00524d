//go:build linux || darwin

package jail

import (
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/effect/links"
	"runloop.dev/rlp/internal/effect/wasi"
)

// A script turns bytes into operations: what a hostile guest, and a careless
// neighbour who makes links of any kind, could do in any order.
type script struct {
	data  []byte
	p     place
	j     *Jail
	files []wasi.File
}

func (s *script) next(n int) int {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return int(b) % n
}

// path is one of few, so that operations meet.
func (s *script) path() string {
	names := []string{"a", "b", "c", "l", "ro", "denied", "..", "f"}
	p := s.p.grant
	for range 1 + s.next(3) {
		p += "/" + names[s.next(len(names))]
	}
	return path.Clean(p)
}

func (s *script) target() string {
	targets := []string{
		"a", "../b", "..", "../..", "../out", "../../out/secret.txt", s.p.out, s.p.out + "/victim.txt", "denied",
		"../denied/key",
		"../ro/f", "l", "/proc/self/cwd", "/", s.p.grant, s.p.grant + "/denied", "b/../../out", "",
	}
	return targets[s.next(len(targets))]
}

// step does one operation, and returns what was read.
func (s *script) step() (read string) {
	j, p, dir := s.j, s.path(), s.next(8) == 0
	switch s.next(16) {
	case 0, 1:
		read, _ = slurp(j, p)
	case 2, 3:
		spill(j, p, "pwned", wasi.OpenFlags{
			Create: true, Trunc: s.next(2) == 0, Append: s.next(2) == 0,
			NoFollow: s.next(2) == 0,
		})
	case 4, 5:
		j.Mkdir(p)
	case 6:
		j.Rmdir(p)
	case 7:
		j.Unlink(p, dir)
	case 8, 9:
		j.Rename(p, s.path(), dir)
	case 10:
		j.Link(p, s.next(2) == 0, s.path())
	case 11:
		j.Symlink(s.target(), p)
	case 12:
		j.SetTimes(p, dir, s.next(2) == 0, wasi.Times{Mtim: 1e18, OmitAtim: true})
	case 13: // a neighbour's link, to anywhere
		if !links.Within(p, s.p.grant+"/denied") && !links.Within(p, s.p.grant+"/ro") && links.Within(p, s.p.grant) &&
			plainDir(path.Dir(p), s.p.grant) {
			_ = os.Symlink(s.target(), p)
		}
	case 14: // keep a file open across what follows
		if f, e := j.Open(p, dir, wasi.OpenFlags{Read: true, Write: s.next(2) == 0}); e == 0 {
			s.files = append(s.files, f)
		}
	case 15:
		for _, f := range s.files {
			f.Pwrite([]byte("pwned"), 0)
			f.SetTimes(wasi.Times{NowMtim: true})
			buf := make([]byte, 64)
			n, _ := f.Pread(buf, 0)
			read += string(buf[:n])
		}
	}
	return read
}

// plainDir reports whether dir lies in top and no link is on the way to it.
func plainDir(dir, top string) bool {
	r, err := Canonical(dir)
	return err == nil && !r.Missing && r.Path == dir && links.Within(dir, top)
}

// guarded is what no operation may change: what is outside, and what the rules
// protect inside.
func (p place) guarded(t testing.TB) string {
	q := p
	q.out = p.grant + "/denied"
	text := p.outside(t) + q.outside(t)
	q.out = p.grant + "/ro"
	return text + q.outside(t)
}

// play runs a script in a fresh place and judges what came of it.
func play(t testing.TB, data []byte, walk bool) {
	p := newPlace(t)
	for _, d := range []string{"/denied", "/ro", "/a/b"} {
		must(t, os.MkdirAll(p.grant+d, 0o755))
	}
	put(t, p.grant+"/denied/key", "CANARY")
	put(t, p.grant+"/ro/f", "read only")
	j, g := open(t, walk, rule{p.grant, all}, rule{p.grant + "/denied", 0}, rule{p.grant + "/ro", read})
	g.quiet = true
	s := &script{data: data, p: p, j: j}
	defer func() {
		for _, f := range s.files {
			f.Close()
		}
	}()
	before := p.guarded(t)
	for len(s.data) > 0 {
		if read := s.step(); strings.Contains(read, "CANARY") {
			t.Fatalf("read %q", read)
		}
	}
	if after := p.guarded(t); after != before {
		t.Fatalf("what is guarded was\n%s\nand is\n%s", before, after)
	}
}

// TestNothingOutsideChanges plays random scripts.
func TestNothingOutsideChanges(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 40
	}
	for seed := range uint64(rounds) {
		play(t, noise(seed), seed%2 == 1)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// noise is a random script, the same for a seed.
func noise(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, 400)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// FuzzOperations plays whatever scripts the fuzzer finds.
func FuzzOperations(f *testing.F) {
	f.Add([]byte("a guest, a neighbour and a folder"), false)
	f.Add([]byte{11, 3, 0, 1, 4, 8, 2, 2, 0, 1, 0, 3, 13, 7, 7, 1}, true)
	f.Fuzz(func(t *testing.T, data []byte, walk bool) { play(t, data[:min(len(data), 1000)], walk) })
}

// TestScriptsReachThings is the control of the two above: without a jail the
// same kind of script reads the canary or changes what is guarded.
func TestScriptsReachThings(t *testing.T) {
	p := newPlace(t)
	must(t, os.Mkdir(p.grant+"/denied", 0o755))
	put(t, p.grant+"/denied/key", "CANARY")
	j, _ := open(t, false, rule{p.base, all}) // a grant of everything
	s := &script{p: p, j: j}
	r, reached := rand.New(rand.NewPCG(7, 7)), false
	before := p.outside(t)
	for i := 0; i < 100_000 && !reached; i++ {
		s.data = []byte{
			byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()),
			byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()),
		}
		reached = strings.Contains(s.step(), "CANARY") || i%500 == 0 && p.outside(t) != before
	}
	if !reached {
		t.Error("scripts reach nothing that is guarded: they show nothing")
	}
}
