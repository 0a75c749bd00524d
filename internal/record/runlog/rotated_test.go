package runlog

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// logLines are the numbers of the lines in files, each of which is private.
func logLines(t *testing.T, files ...string) map[int]int {
	t.Helper()
	seen := map[int]int{}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s is %v", f, info.Mode())
		}
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for text := range strings.Lines(string(data)) {
			var l struct {
				N *int `json:"n"`
			}
			if err := json.Unmarshal([]byte(text), &l); err != nil || !strings.HasSuffix(text, "}\n") {
				t.Fatalf("%s: a torn line %q: %v", f, text, err)
			}
			if l.N != nil {
				seen[*l.N]++
			}
		}
	}
	return seen
}

// Many write, and each line is once, whole, in the log or in one put away.
func TestTheServiceLogLosesNoLineWhenPutAway(t *testing.T) {
	const writers, each, most = 8, 400, 64 << 10
	path := filepath.Join(t.TempDir(), "serve.jsonl")
	l, err := OpenRotated(path, most, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for w := range writers {
		log := slog.New(slog.NewJSONHandler(l, nil)) // handlers of their own hold no lock in common
		all.Go(func() {
			for i := range each {
				log.Info("line", "n", w*each+i, "pad", strings.Repeat("x", i))
			}
		})
	}
	all.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) < 5 {
		t.Fatalf("nothing was put away: %v %v", files, err)
	}
	seen := logLines(t, files...)
	for n := range writers * each {
		if seen[n] != 1 {
			t.Errorf("line %d is there %d times", n, seen[n])
		}
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Size() > most {
			t.Errorf("%v %v", info, err)
		}
	}
}

// Processes that share a log, here each by a file of its own, put it away one at
// a time, and lose no line of each other's.
func TestProcessesShareTheServiceLog(t *testing.T) {
	const processes, each, most = 6, 300, 8 << 10
	path := filepath.Join(t.TempDir(), "serve.jsonl")
	var all sync.WaitGroup
	for p := range processes {
		l, err := OpenRotated(path, most, 1000)
		if err != nil {
			t.Fatal(err)
		}
		log := slog.New(slog.NewJSONHandler(l, nil))
		all.Go(func() {
			for i := range each {
				log.Info("line", "n", p*each+i)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) < 5 {
		t.Fatalf("nothing was put away: %v %v", files, err)
	}
	seen := logLines(t, files...)
	for n := range processes * each {
		if seen[n] != 1 {
			t.Errorf("line %d is there %d times", n, seen[n])
		}
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Size() > most+processes*200 { // a line of each may come at once
			t.Errorf("%v %v", info, err)
		}
	}
}

// A process that had nothing to tell for long, while others filled so many files
// that its own is not kept any more, goes on in the file of now.
func TestALogThatIsNotKeptIsLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "serve.jsonl")
	open := func(most int64) *Rotated {
		t.Helper()
		l, err := OpenRotated(path, most, 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	idle, busy := open(1<<20), open(20)
	for n := range 4 {
		slog.New(slog.NewJSONHandler(busy, nil)).Info("line", "n", n)
	}
	slog.New(slog.NewJSONHandler(idle, nil)).Info("line", "n", 9)
	if seen := logLines(t, path); seen[9] != 1 || seen[3] != 1 {
		t.Errorf("%v", seen)
	}
}

// So many older files are kept, the newest as .1, and no more; and a log that an
// earlier service left is gone on with.
func TestTheServiceLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "serve.jsonl")
	line := func(l *Rotated, n int) {
		t.Helper()
		slog.New(slog.NewJSONHandler(l, nil)).Info("line", "n", n)
	}
	for n := range 7 {
		l, err := OpenRotated(path, 20, Older) // a line is more than that
		if err != nil {
			t.Fatal(err)
		}
		line(l, n)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for suffix, n := range map[string]int{"": 6, ".1": 5, ".2": 4, ".3": 3} {
		if seen := logLines(t, path+suffix); seen[n] != 1 || len(seen) != 1 {
			t.Errorf("serve.jsonl%s has %v, want %d", suffix, seen, n)
		}
	}
	if _, err := os.Stat(path + ".4"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a fourth is kept: %v", err)
	}
}

// Where nothing can be put away the log grows on, and says why.
func TestTheServiceLogThatCannotBePutAwayGrowsOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "serve.jsonl")
	if err := os.MkdirAll(filepath.Join(path+".1", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := OpenRotated(path, 20, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	log := slog.New(slog.NewJSONHandler(l, nil))
	log.Info("line", "n", 1)
	log.Info("line", "n", 2)
	if seen := logLines(t, path); seen[1] != 1 || seen[2] != 1 {
		t.Errorf("%v", seen)
	}
	if data, err := os.ReadFile(path); err != nil || !strings.Contains(string(data), "could not be put away") {
		t.Errorf("it does not say so: %s %v", data, err)
	}
}
