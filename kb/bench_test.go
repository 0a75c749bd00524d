package kb_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/journal"
)

// both runs a benchmark on an owner and on its client.
func both(b *testing.B, f func(b *testing.B, s *kb.Store)) {
	home := b.TempDir() + "/home"
	owner := openStore(b, home)
	client := openStore(b, home)
	b.Run("owner", func(b *testing.B) { f(b, owner) })
	b.Run("client", func(b *testing.B) { f(b, client) })
}

func BenchmarkGet(b *testing.B) {
	both(b, func(b *testing.B, s *kb.Store) {
		v := s.View(kb.Origin{})
		if _, err := v.Put(b.Context(), "notes", "a", make([]byte, 100)); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := v.Get(b.Context(), "notes", "a"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkPut(b *testing.B) {
	both(b, func(b *testing.B, s *kb.Store) {
		v := s.View(kb.Origin{})
		for b.Loop() {
			if _, err := v.Put(b.Context(), "notes", "a", make([]byte, 100)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkPutGroup is durable puts by 64 writers at once.
func BenchmarkPutGroup(b *testing.B) {
	v := openStore(b, b.TempDir()+"/home").View(kb.Origin{})
	var n atomic.Int64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		key := fmt.Sprint(n.Add(1))
		for pb.Next() {
			if _, err := v.Put(b.Context(), "notes", key, make([]byte, 100)); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkOpenClose(b *testing.B) {
	home := b.TempDir() + "/home"
	for b.Loop() {
		s, err := kb.Open(b.Context(), kb.Options{Home: home})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIngest is records a second from a journal into the log.
func BenchmarkIngest(b *testing.B) {
	home := b.TempDir() + "/home"
	s := openStore(b, home)
	dir, err := kb.JournalDir(home, "")
	if err != nil {
		b.Fatal(err)
	}
	const records = 20000
	i := 0
	for b.Loop() {
		b.StopTimer()
		i++
		j := writeRun(b, dir, fmt.Sprintf("run%d", i), records)
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		got, err := s.Ingest(b.Context())
		if err != nil || got.Records != records+1 {
			b.Fatal(got, err)
		}
	}
	b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkIngestMany is runs a second, of three records each, into the log.
func BenchmarkIngestMany(b *testing.B) {
	home := b.TempDir() + "/home"
	s := openStore(b, home)
	dir, err := kb.JournalDir(home, "")
	if err != nil {
		b.Fatal(err)
	}
	const runs = 500
	i := 0
	for b.Loop() {
		b.StopTimer()
		for range runs {
			i++
			if err := writeRun(b, dir, fmt.Sprintf("run%d", i), 2).Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		if got, err := s.Ingest(b.Context()); err != nil || got.Records != 3*runs {
			b.Fatal(got, err)
		}
	}
	b.ReportMetric(float64(runs)*float64(b.N)/b.Elapsed().Seconds(), "runs/s")
}

// writeRun records n denials of different targets in a new journal and leaves it open.
func writeRun(t testing.TB, dir, run string, n int) *journal.Journal {
	t.Helper()
	j, err := journal.Create(journal.Options{Dir: dir, Head: audit.Head{
		RunID: run, TraceID: "t", Tenant: "default",
		Agent: "writer",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	d := decision(t, j)
	for i := range n {
		d.Target = fmt.Sprintf("/home/user/notes/%d.md", i)
		if _, err := j.Decide(&d); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

// decision returns a usual denial with its words interned in j.
func decision(t testing.TB, j *journal.Journal) audit.Decision {
	t.Helper()
	name := func(s string) audit.Name {
		n, err := j.Intern(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return audit.Decision{
		Cap: name("kb.write"), Op: name("kb_put"), Reason: name("domain_not_permitted"), Layer: name("override:writer.toml"),
		Deny: true, Keep: true, Severity: audit.Warn, Target: "drafts",
	}
}
