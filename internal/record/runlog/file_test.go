package runlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"runloop.dev/rlp/internal/base/config"
)

// A logBench is a folder of logs on a day that the test sets.
type logBench struct {
	t     *testing.T
	dir   string
	bound config.Log
	day   time.Time
}

func newLogBench(t *testing.T, days, bytes int64) *logBench {
	return &logBench{
		t: t, dir: filepath.Join(t.TempDir(), "log"), bound: config.Log{Days: days, Bytes: bytes},
		day: time.Date(2026, 1, 1, 23, 59, 0, 0, time.UTC),
	}
}

func (b *logBench) open() *lineFile {
	return &lineFile{dir: b.dir, bound: b.bound, now: func() time.Time { return b.day }}
}

// write is one run, which writes one line.
func (b *logBench) write(line string) {
	b.t.Helper()
	f := b.open()
	if _, err := f.Write([]byte(line + "\n")); err != nil {
		b.t.Fatal(err)
	}
	if err := f.flush(); err != nil {
		b.t.Fatal(err)
	}
}

// names are the files that there are, and the bytes of those of days.
func (b *logBench) names() (list []string, sum int64) {
	b.t.Helper()
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			b.t.Fatal(err)
		}
		list = append(list, e.Name())
		if strings.HasPrefix(e.Name(), "2") && info.Mode().IsRegular() {
			sum += info.Size()
		}
	}
	return list, sum
}

func (b *logBench) lines() []string {
	b.t.Helper()
	all, err := b.open().files()
	if err != nil {
		b.t.Fatal(err)
	}
	var text strings.Builder
	for _, l := range all {
		p, err := os.ReadFile(filepath.Join(b.dir, l.name))
		if err != nil {
			b.t.Fatal(err)
		}
		text.Write(p)
	}
	return strings.Fields(text.String())
}

// So many days are kept, and nothing is removed that is no log of a day.
func TestLogsOfOldDaysGo(t *testing.T) {
	b := newLogBench(t, 3, 1<<24)
	if err := os.MkdirAll(filepath.Join(b.dir, "2020-01-01.jsonl"), 0o700); err != nil { // a folder
		t.Fatal(err)
	}
	others := []string{
		"2020-01-01.1.jsonl", "2020-01-01.02.jsonl", "2020-01-01.jsonl.gz", "2020-13-01.jsonl",
		"notes.jsonl", "serve.jsonl", "serve.jsonl.1",
	}
	for _, name := range others {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(b.dir, "2020-01-01.2.jsonl"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		b.write(fmt.Sprint("day", n))
		b.write(fmt.Sprint("day", n))
		b.day = b.day.AddDate(0, 0, 1)
	}
	want := slices.Sorted(slices.Values(append(others, "2020-01-01.jsonl", "2026-01-03.jsonl", "2026-01-04.jsonl",
		"2026-01-05.jsonl")))
	if got, _ := b.names(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := b.lines(); !slices.Equal(got, []string{"day2", "day2", "day3", "day3", "day4", "day4"}) {
		t.Errorf("%q", got)
	}
}

// All files together are within the bound at any time, whatever one day brings,
// and what is kept is the newest.
func TestLogsAreBounded(t *testing.T) {
	const bytes = 8000
	b := newLogBench(t, 3650, bytes)
	for n := range 500 {
		b.write(fmt.Sprintf("%04d%s", n, strings.Repeat("x", 95)))
		if _, sum := b.names(); sum > bytes {
			t.Fatalf("%d bytes after %d lines", sum, n+1)
		}
		if n == 250 {
			b.day = b.day.AddDate(0, 0, 1)
		}
	}
	lines := b.lines()
	if len(lines) < 60 {
		t.Errorf("control: %d lines are kept", len(lines))
	}
	for i, line := range lines {
		if want := fmt.Sprintf("%04d", 500-len(lines)+i); !strings.HasPrefix(line, want) {
			t.Fatalf("line %d is %.4s, want %s", i, line, want)
		}
	}
	if names, _ := b.names(); len(names) < 6 || !strings.HasPrefix(names[0], "2026-01-02.") {
		t.Errorf("%q", names)
	}
}

// A file that somebody writes to is not removed, however old; it is when they
// are done.
func TestALogThatIsWrittenToStays(t *testing.T) {
	b := newLogBench(t, 1, 1<<24)
	long := b.open()
	if err := writeNow(long, "begun"); err != nil {
		t.Fatal(err)
	}
	b.day = b.day.AddDate(0, 0, 100)
	b.write("later")
	if err := writeNow(long, "goes-on"); err != nil {
		t.Fatal(err)
	}
	if got := b.lines(); !slices.Equal(got, []string{"begun", "goes-on", "later"}) {
		t.Errorf("%q", got)
	}
	if err := long.flush(); err != nil {
		t.Fatal(err)
	}
	b.day = b.day.AddDate(0, 0, 1)
	b.write("latest")
	if got := b.lines(); !slices.Equal(got, []string{"latest"}) {
		t.Errorf("%q", got)
	}
}

// writeNow appends a line without giving up the file.
func writeNow(f *lineFile, line string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.buf.WriteString(line + "\n")
	return f.append()
}

// Runs that write at once lose no line when a file is full, and each line is
// whole; a run goes on in the next file in its middle.
func TestRunsShareFullLogs(t *testing.T) {
	const writers, each, line = 8, 200, 50 // bytes
	b := newLogBench(t, 3650, 2*writers*each*line)
	var all sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		f := b.open()
		all.Go(func() {
			for n := range each {
				errs[w] = errors.Join(errs[w], writeNow(f, fmt.Sprintf("%d-%d-%s", w, n, strings.Repeat("x", line))[:line-1]))
			}
			errs[w] = errors.Join(errs[w], f.flush())
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	seen := map[string]int{}
	for _, text := range b.lines() {
		seen[strings.TrimRight(text, "x")]++
	}
	for w := range writers {
		for n := range each {
			if line := fmt.Sprintf("%d-%d-", w, n); seen[line] != 1 {
				t.Errorf("line %s is there %d times", line, seen[line])
			}
		}
	}
	if names, _ := b.names(); len(seen) != writers*each || len(names) < 4 {
		t.Errorf("%d lines that differ in %q", len(seen), names)
	}
}
