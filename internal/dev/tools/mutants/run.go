package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A test is one top-level test of a package, and which mutants it reaches.
type test struct {
	name  string
	took  time.Duration
	seen  []byte
	suite *suite
}

// A suite is the tests of one package.
type suite struct {
	pkg    pkg
	binary string
	tests  []*test
	idle   time.Duration // how long tests may wait beside their time on the processor
	broken []string      // that fail or take too long without any mutant
}

// learn runs each test alone, with no mutant on, and marks what it reaches.
func (s *suite) learn(b *build, most time.Duration, jobs int) error {
	cmd := exec.Command(s.binary, "-test.list", "^(Test|Fuzz|Example)")
	cmd.Dir = s.pkg.Dir
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("listing the tests of %s: %w", s.pkg.ImportPath, err)
	}
	var mu sync.Mutex
	each(jobs, strings.Fields(string(out)), func(name string) {
		seen := filepath.Join(b.work, "seen-"+filepath.Base(s.binary)+"-"+name)
		if err := os.WriteFile(seen, make([]byte, b.total+1), 0o600); err != nil {
			panic(err)
		}
		start := time.Now()
		err := s.run([]string{name}, "RLP_MUTANT_SEEN="+seen, most)
		took := time.Since(start)
		marks, readErr := os.ReadFile(seen)
		os.Remove(seen)
		mu.Lock()
		defer mu.Unlock()
		if err != nil || readErr != nil || took > most {
			s.broken = append(s.broken, name)
			return
		}
		s.tests = append(s.tests, &test{name: name, took: took, seen: marks, suite: s})
	})
	slices.SortFunc(s.tests, func(a, b *test) int { return int(a.took - b.took) })
	return nil
}

// run is nil when the tests pass within the processor's time, and within that
// and idle more of waiting.
func (s *suite) run(names []string, env string, cpu time.Duration) error {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = regexp.QuoteMeta(n)
	}
	ctx, stop := context.WithTimeout(context.Background(), cpu+s.idle)
	defer stop()
	// A busy machine lengthens the wait, and not the processor's time.
	limit := fmt.Sprint(int(cpu/time.Second) + 1)
	args := []string{
		"-c", `ulimit -t "$0"; exec "$@"`, limit, s.binary, "-test.short", "-test.failfast", "-test.run",
		"^(" + strings.Join(quoted, "|") + ")$",
	}
	cmd := exec.CommandContext(ctx, "sh", append(args, s.pkg.flags()...)...)
	cmd.Dir = s.pkg.Dir
	cmd.Env = append(os.Environ(), env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd.Run()
}

// kills reports whether a test notices the mutant, and whether any reaches it.
// The quick ones are asked first, the package's own before the others'.
func kills(mut mutant, suites []*suite) (killed, reached bool) {
	for _, s := range suites {
		for _, names := range rounds(s.tests, mut.id) {
			reached = true
			if s.run(names.tests, fmt.Sprintf("RLP_MUTANT=%d", mut.id), 2*time.Second+5*names.took) != nil {
				return true, true
			}
		}
	}
	return false, reached
}

type round struct {
	tests []string
	took  time.Duration
}

// rounds are the tests that reach a mutant, as many at once as take a second,
// then ten, then all others.
func rounds(tests []*test, id int) []round {
	var all []round
	var now round
	most := time.Second
	for _, t := range tests {
		if t.seen[id] == 0 {
			continue
		}
		if len(now.tests) > 0 && now.took+t.took > most {
			all = append(all, now)
			now = round{}
			most *= 10
		}
		now.tests = append(now.tests, t.name)
		now.took += t.took
	}
	if len(now.tests) > 0 {
		all = append(all, now)
	}
	return all
}

// each does one thing for every item, some at a time.
func each[T any](jobs int, items []T, do func(T)) {
	work := make(chan T)
	var wait sync.WaitGroup
	for range jobs {
		wait.Go(func() {
			for item := range work {
				do(item)
			}
		})
	}
	for _, item := range items {
		work <- item
	}
	close(work)
	wait.Wait()
}
