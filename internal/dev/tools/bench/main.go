// Bench prints one table: this project, the engine alone, and what people use
// instead, each measured in turn in one run on one machine.
//
// A figure of this project that cannot be measured is an error, after the
// table; a peer that is not there is a line that says how to get it.
//
//	bench [-rounds N] [-peers 1|deno,node] [-json] [-rlp bin/rlp] [-root .]
//	bench -serve [-rounds N] [-json] ...
//
// With -serve the table is of `rlp serve` under load: runs that end well, beside
// others that crash, time out and are cancelled.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 60, "how often each program is started; benchmarks take turns a tenth as often")
	flag.StringVar(&o.peers, "peers", "", "fetch these from the npm registry first: 1 for all, or deno,node")
	flag.BoolVar(&o.json, "json", false, "print one JSON document")
	flag.StringVar(&o.rlp, "rlp", "bin/rlp", "the program, as make build builds it")
	flag.StringVar(&o.root, "root", ".", "the project's folder")
	serve := flag.Bool("serve", false, "measure rlp serve under load, and nothing else")
	flag.Parse()
	what := measure
	if *serve {
		what = measureServe
	}
	if err := what(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	rounds           int
	peers, rlp, root string
	json             bool
}

// A bench is one run of everything.
type bench struct {
	options
	work, tmp string
	built     map[string]bool
	figures   map[string]*figure
	broken    []error // what is ours and could not be measured
}

func measure(ctx context.Context, o options) (err error) {
	b, err := newBench(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.tmp)) }()
	if err := b.fetch(o.peers); err != nil {
		return err
	}
	m, since := describe(), newWatch()
	if err := b.launches(ctx); err != nil {
		return err
	}
	b.benchmarks(ctx)
	m.Others = since.others()
	if err := b.print(os.Stdout, m); err != nil {
		return err
	}
	return errors.Join(b.broken...)
}

func newBench(o options) (*bench, error) {
	if o.rounds < 1 {
		return nil, fmt.Errorf("-rounds %d: at least 1", o.rounds)
	}
	root, err := filepath.Abs(o.root)
	if err != nil {
		return nil, err
	}
	o.root = root
	if o.rlp, err = filepath.Abs(o.rlp); err != nil {
		return nil, err
	}
	work := filepath.Join(root, ".work", "bench")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp(work, "run-")
	if err != nil {
		return nil, err
	}
	if tmp, err = filepath.EvalSymlinks(tmp); err != nil {
		return nil, err
	}
	return &bench{options: o, work: work, tmp: tmp, built: map[string]bool{}, figures: map[string]*figure{}}, nil
}

// say tells whoever waits what is being done.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: %s\n", strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// fails keeps an error for the end, after the table.
func (b *bench) fails(key string, err error) {
	b.figures[key] = &figure{Missing: err.Error()}
	b.broken = append(b.broken, fmt.Errorf("%s: %w", key, err))
}

// lacks notes why there is no figure of a peer.
func (b *bench) lacks(key, why string) { b.figures[key] = &figure{Missing: why} }

// env is what every program is started with: nothing of the caller's but what
// finds the Go command and its caches, and a home of its own under that name.
func (b *bench) env(home string) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + b.tmp, "TMPDIR=" + b.tmp, "NO_COLOR=1", "TERM=dumb", "LANG=C",
		"DENO_DIR=" + filepath.Join(b.work, "deno"), "DENO_NO_UPDATE_CHECK=1", "NODE_COMPILE_CACHE=" + filepath.Join(b.work,
			"node"),
	}
	if home != "" {
		env = append(env, "RUNLOOP_HOME="+filepath.Join(b.tmp, home))
	}
	return env
}
