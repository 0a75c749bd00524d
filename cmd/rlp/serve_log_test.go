//go:build !slim

package main

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
	l, err := openRotated(path, most, 1000)
	if err != nil {
		t.Fatal(err)
	}
	l.own()
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

// So many older files are kept, the newest as .1, and no more; and a log that an
// earlier service left is gone on with.
func TestTheServiceLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "serve.jsonl")
	line := func(l *rotatedLog, n int) {
		t.Helper()
		slog.New(slog.NewJSONHandler(l, nil)).Info("line", "n", n)
	}
	for n := range 7 {
		l, err := openRotated(path, 20, olderLogs) // a line is more than that
		if err != nil {
			t.Fatal(err)
		}
		if n == 3 {
			line(l, 100) // one that is not alone puts nothing away
			line(l, 101)
		}
		l.own()
		line(l, n)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if n == 3 {
			if was := logLines(t, path+".1"); was[2] != 1 || was[100] != 1 || was[101] != 1 {
				t.Errorf("what was written before is not kept: %v", was)
			}
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
	l, err := openRotated(path, 20, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.own()
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
