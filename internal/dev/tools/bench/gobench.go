package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A suite is a program that prints figures as `go test -bench` does. picks says
// under which key each is kept: of "HostCall/floor=empty ns/call" what stands
// there as the value. With " + " between them figures are added up.
type suite struct {
	name    string
	args    []string // the program's path first
	dir     string
	env     []string
	picks   map[string]string
	rounds  int    // how many of the rounds it is part of; 0 is all
	missing string // why it cannot run
	ours    bool   // not to be measured is a failure
}

// suiteTime is the most that one run of a suite may take.
const suiteTime = 2 * time.Minute

// run adds one sample to each figure that the suite is about.
func (s *suite) run(ctx context.Context, figures map[string]*figure) error {
	ctx, cancel := context.WithTimeout(ctx, suiteTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.args[0], s.args[1:]...)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", s.name, err, tail(out))
	}
	found := readFigures(out)
	for name, key := range s.picks {
		v, ok := sum(found, name)
		unit := name[strings.LastIndexByte(name, ' ')+1:]
		f := figures[key]
		if f == nil {
			f = &figure{Unit: unit}
			figures[key] = f
		}
		if ok {
			f.Samples = append(f.Samples, v)
		} else if len(f.Samples) == 0 {
			f.Missing = fmt.Sprintf("%s prints no %q", s.name, name)
		}
	}
	return nil
}

// sum adds up the figures that a pick names.
func sum(found map[string]float64, pick string) (total float64, ok bool) {
	for name := range strings.SplitSeq(pick, " + ") {
		v, there := found[name]
		if !there {
			return 0, false
		}
		total += v
	}
	return total, true
}

// tail is the end of what a program said.
func tail(out []byte) []byte { return out[max(0, len(out)-2000):] }

// readFigures returns the figures by "name unit", without "Benchmark" and the
// number of processors.
func readFigures(out []byte) map[string]float64 {
	found := map[string]float64{}
	for line := range bytes.Lines(out) {
		f := strings.Fields(string(line))
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		name := withoutProcs(strings.TrimPrefix(f[0], "Benchmark"))
		for i := 2; i+1 < len(f); i += 2 {
			if v, err := strconv.ParseFloat(f[i], 64); err == nil {
				found[name+" "+f[i+1]] = v
			}
		}
	}
	return found
}

// withoutProcs cuts the "-8" that go test puts behind a name.
func withoutProcs(name string) string {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return name
	}
	if _, err := strconv.Atoi(name[i+1:]); err != nil {
		return name
	}
	return name[:i]
}

// testBinary builds the tests of a package, once, and returns a suite of those
// of its benchmarks that match.
func (b *bench) testBinary(s source) (*suite, error) {
	name := strings.ReplaceAll(strings.TrimPrefix(s.pkg, "./"), "/", "-") + ".test"
	file := filepath.Join(b.work, name)
	if !b.built[file] {
		if err := b.goBuild(s.module, nil, "test", "-c", "-vet=off", "-ldflags=-w", "-o", file, s.pkg); err != nil {
			return nil, err
		}
		b.built[file] = true
	}
	args := []string{
		file, "-test.run", "^$", "-test.bench", s.match, "-test.benchtime", s.benchtime, "-test.timeout",
		suiteTime.String(),
	}
	if b.rounds == 1 { // to see that it works
		args = append(args, "-test.short")
	}
	return &suite{
		name: s.pkg + " " + s.match, args: append(args, s.args...), dir: filepath.Join(s.module, s.pkg),
		env: append(b.env(""), s.env...), picks: s.picks, rounds: s.rounds, ours: s.ours,
	}, nil
}

// program builds a package of the tools as bin/rlp is built: without C, for
// which a program would have to be linked together at each start.
func (b *bench) program(out, pkg string, env ...string) error {
	return b.goBuild(filepath.Join(b.root, "internal", "dev", "tools"), append(env, "CGO_ENABLED=0"), "build", "-trimpath",
		"-ldflags=-s -w", "-o", out, pkg)
}

// goBuild runs the go command in a module.
func (b *bench) goBuild(module string, env []string, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = module, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, tail(out))
	}
	return nil
}
