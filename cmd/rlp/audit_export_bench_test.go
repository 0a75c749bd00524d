package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/journal"
)

// BenchmarkExport writes a log of 200,000 records in each format to a file, and
// to nowhere in turn with reading the log alone, which is what it is measured
// against.
func BenchmarkExport(b *testing.B) {
	runs, each := 20, 10_000
	if testing.Short() {
		each = 100
	}
	dir := filepath.Join(b.TempDir(), "home")
	if _, err := home.Open(dir, kb.DefaultTenant); err != nil {
		b.Fatal(err)
	}
	at, err := kb.JournalDir(dir, "")
	if err != nil {
		b.Fatal(err)
	}
	for i := range runs {
		j, err := journal.Create(journal.Options{Dir: at, Head: audit.Head{
			RunID:   "0198d2c4-7f1e-7000-8000-0000000000" + string(rune('a'+i/10)) + string(rune('0'+i%10)),
			TraceID: strings.Repeat("ab", 16),
			Tenant:  kb.DefaultTenant, Agent: "writer", BundleDigest: strings.Repeat("ab", 32),
			EffectiveDigest: strings.Repeat("cd", 32),
		}})
		if err != nil {
			b.Fatal(err)
		}
		benchRun(b, j, each)
	}
	s, err := kb.Open(b.Context(), kb.Options{Home: dir})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Ingest(b.Context()); err != nil {
		b.Fatal(err)
	}
	read := func() time.Duration {
		began := time.Now()
		n := 0
		for _, err := range s.Glances(b.Context(), kb.Filter{}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != runs*each {
			b.Fatal(n, "records")
		}
		return time.Since(began)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for _, format := range []string{"jsonl", "csv", "ocsf", "otlp"} {
		b.Run(format, func(b *testing.B) {
			var reading, exporting, filing time.Duration
			for b.Loop() {
				if s, err = kb.Open(b.Context(), kb.Options{Home: dir}); err != nil {
					b.Fatal(err)
				}
				r := read()
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				e := exportOnce(b, dir, format, "-")
				f := exportOnce(b, dir, format, filepath.Join(b.TempDir(), "out"))
				if exporting == 0 || e < exporting {
					reading, exporting = r, e
				}
				if filing == 0 || f < filing {
					filing = f
				}
			}
			b.ReportMetric(float64(runs*each)/exporting.Seconds(), "records/s")
			b.ReportMetric(float64(runs*each)/filing.Seconds(), "records/s-to-disk")
			b.ReportMetric(exporting.Seconds()/reading.Seconds(), "x-reading")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func exportOnce(b *testing.B, dir, format, to string) time.Duration {
	b.Helper()
	began := time.Now()
	if code := invoke(b.Context(), environment{
		args: []string{"--home", dir, "audit", "export", "--format", format, "--output", to}, stdin: strings.NewReader(""),
		stdout: io.Discard, stderr: io.Discard,
	}); code != 0 {
		b.Fatal("exit", code)
	}
	return time.Since(began)
}

// benchRun records a run of n records: calls with an end, and files.
func benchRun(b *testing.B, j *journal.Journal, n int) {
	b.Helper()
	name := func(s string) audit.Name {
		w, err := j.Intern(s)
		if err != nil {
			b.Fatal(err)
		}
		return w
	}
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	decide := func(d *audit.Decision) {
		_, err := j.Decide(d)
		check(err)
	}
	check(j.Event(&audit.Event{Kind: audit.KindRunStart}))
	file := audit.Decision{Cap: name("fs.read"), Op: name("path_open"), Reason: name("granted"), Keep: true}
	put := audit.Decision{Cap: name("kb.write"), Op: name("kb_put"), Reason: name("granted"), Keep: true}
	for i := range n / 5 {
		for k := range 3 {
			file.Target = "/srv/agent/docs/notes/2026/" + strings.Repeat("x", i%30) + string(rune('a'+k))
			decide(&file)
		}
		if i < n/5-1 {
			put.Target = "drafts/" + strings.Repeat("y", i%30)
			decide(&put)
			check(j.Event(&audit.Event{
				Kind: audit.KindCallDone, Verb: "kb_put", Status: "ok", DurationMS: 0.25, Bytes: 1,
				ResultHash: strings.Repeat("ef", 32),
			}))
		}
	}
	check(j.Event(&audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"}))
	check(j.Close())
}
