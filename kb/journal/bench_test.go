package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
)

func testHead(run string) audit.Head {
	return audit.Head{
		RunID: run, TraceID: "trace-" + run, Tenant: "default", Agent: "writer", BundleDigest: "sha256:b",
		EffectiveDigest: "sha256:e",
	}
}

// dir returns a journal directory of the test's own.
func dir(t testing.TB) string { return filepath.Join(t.TempDir(), "journal") }

func create1(t testing.TB, o Options) *Journal {
	t.Helper()
	j, err := Create(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// words interns the words of a usual decision.
func words(t testing.TB, j *Journal) audit.Decision {
	t.Helper()
	name := func(s string) audit.Name {
		n, err := j.Intern(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return audit.Decision{
		Cap: name("fs.read"), Op: name("path_open"), Reason: name("path_not_permitted"), Layer: name("override:writer.toml"),
		Deny: true, Keep: true, Severity: audit.Warn, Target: "/srv/agent/docs/notes/2026-01.md",
	}
}

func BenchmarkDecide(b *testing.B) {
	args := [32]byte{1}
	for _, c := range []struct {
		name    string
		target  string
		args    *[32]byte
		observe bool
	}{
		{"target32", "/srv/agent/docs/notes/2026-01.md", nil, false},
		{"target8", "contacts", nil, false},
		{"target32_args", "/srv/agent/docs/notes/2026-01.md", &args, false},
		{"target32_synced", "/srv/agent/docs/notes/2026-01.md", nil, false}, // as it grows where effects are waited for
		{"target32_observed", "/srv/agent/docs/notes/2026-01.md", nil, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			o := Options{Dir: dir(b), Head: testHead("run1"), MaxBytes: 64 << 30, MaxDecisions: 1 << 31}
			o.Synced = c.name == "target32_synced"
			if c.observe {
				o.Observe = func(*audit.Record) bool { return true }
			}
			j := create1(b, o)
			d := words(b, j)
			d.Target, d.Args = c.target, c.args
			b.ReportAllocs()
			for b.Loop() {
				if _, err := j.Decide(&d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDecideHot is what a decision costs a run that records no more than
// its grower can keep up with: the same pages again and again.
func BenchmarkDecideHot(b *testing.B) {
	targets := [2]string{"/srv/agent/docs/notes/2026-01.md", "/srv/agent/docs/notes/2026-02.md"}
	for _, n := range []int{1, 2} {
		b.Run([]string{"repeated", "alternating"}[n-1], func(b *testing.B) {
			j := create1(b, Options{Dir: dir(b), Head: testHead("run1"), MaxBytes: 64 << 30, MaxDecisions: 1 << 31})
			d := words(b, j)
			off, index, runSeq := j.off, j.index, j.runSeq
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				d.Target = targets[i%n]
				if i&255 == 0 {
					j.off, j.index, j.runSeq, j.recent = off, index, runSeq, [repeatable]written{}
				}
				if _, err := j.Decide(&d); err != nil {
					b.Fatal(err)
				}
			}
			j.broken.Store(new(error)) // what was written over itself is no journal
			*j.broken.Load() = ErrBroken
		})
	}
}

func BenchmarkCreateClose(b *testing.B) {
	o := Options{Dir: dir(b), Clock: NewClock(nil)}
	defer o.Clock.Stop()
	i := 0
	for b.Loop() {
		i++
		o.Head = testHead(fmt.Sprintf("run%d", i))
		j, err := Create(o)
		if err != nil {
			b.Fatal(err)
		}
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCreateFloor is the system's part of BenchmarkCreateClose: a file made and closed.
func BenchmarkCreateFloor(b *testing.B) {
	d := b.TempDir()
	i := 0
	for b.Loop() {
		i++
		f, err := os.OpenFile(filepath.Join(d, strconv.Itoa(i)), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}

func BenchmarkSum(b *testing.B) {
	p := make([]byte, 64)
	var s uint32
	for b.Loop() {
		s += sum(1, uint64(s), 5, p)
	}
}
