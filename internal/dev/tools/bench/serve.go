package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"runloop.dev/rlp/internal/dev/tools/bench/wasm"
)

// How much is asked of the service. All of it is bounded, and ends by itself.
const (
	inARow      = 500  // requests of one connection, each round
	atOnce      = 1000 // requests that are under way together, once a round
	subscribers = 50   // who follow one run, once a round
	steps       = 200  // of the run that is followed
)

// serveLines are the table, and what is promised.
func serveLines() []line {
	return []line{
		{
			what: "POST /run, keep-alive, p50", unit: "µs", ours: "serve/p50", against: "serve/in-process", floor: "in process",
			goal: atMost(3),
		},
		{
			what: "1,000 requests at once, p99", unit: "ms", ours: "storm/p99", against: "storm/p50", floor: "their p50",
			goal: atMost(20),
		},
		{what: "  errors", unit: "", ours: "storm/errors", goal: none},
		{what: "  requests", unit: "/s", ours: "storm/rate"},
		{what: "  peak memory of the service", unit: "MiB", ours: "storm/rss"},
		{what: "50 followers of a run, behind the record, p50", unit: "ms", ours: "follow/p50", goal: ownAtMost(10)},
		{what: "  p99", unit: "ms", ours: "follow/p99"},
		{what: "  gaps", unit: "", ours: "follow/gaps", goal: none},
		{what: "beside them: crashes, timeouts, cancellations", unit: "runs", ours: "trouble/runs"},
		{what: "  that ended otherwise", unit: "runs", ours: "trouble/wrong", goal: none},
		{what: "the log does not verify afterwards", unit: "", ours: "log/broken", goal: none},
	}
}

// none is promised of errors: that there is not one.
var none = goal{at: 0.5, own: true}

// A serving is `rlp serve` in a home of its own.
type serving struct {
	*bench
	cmd    *exec.Cmd
	env    []string
	url    string
	client *http.Client
}

// measureServe measures the service, and then verifies its log.
func measureServe(ctx context.Context, o options) (err error) {
	b, err := newBench(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.tmp)) }()
	m, since := describe(), newWatch()
	s, err := b.serving(ctx)
	if err != nil {
		return err
	}
	err = s.rounds(ctx)
	err = errors.Join(err, s.stop())
	if err != nil {
		return err
	}
	s.verify(ctx)
	m.Others = since.others()
	if err := b.table(os.Stdout, m, serveLines()); err != nil {
		return err
	}
	return errors.Join(b.broken...)
}

// agents are those that are asked for: one that ends well, and others that do not.
func (b *bench) agents() ([]guest, error) {
	loop := []byte{0x03, 0x40, 0x0c, 0, 0x0b}
	all := []guest{{name: "tiny"}, {name: "crash"}, {name: "spin"}, {name: "steps"}}
	notes := filepath.Join(b.tmp, "notes")
	if err := os.MkdirAll(notes, 0o755); err != nil {
		return nil, err
	}
	all[3].policy = fmt.Sprintf("[capabilities]\ntime = true\nfs = [%q]\n", notes)
	for i, module := range [][]byte{
		wasm.Says("ok\n"), wasm.Module{Code: []byte{0}, Pages: 1}.Bytes(), wasm.Module{Code: loop, Pages: 1}.Bytes(),
		wasm.Steps(steps, 5*time.Millisecond),
	} {
		if err := b.bundle(&all[i], module); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// serving starts the service and returns when it serves.
func (b *bench) serving(ctx context.Context) (*serving, error) {
	s := &serving{bench: b, env: b.env("home-serve")}
	agents, err := b.agents()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.tmp, "home-serve")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	// What a run is left is what its bundle asks for.
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte("[security]\nrun_grant = \"operator_full\"\n"),
		0o600); err != nil {
		return nil, err
	}
	for _, g := range agents {
		if _, err := s.rlp(ctx, "agent", "install", g.agent); err != nil {
			return nil, err
		}
	}
	s.cmd = exec.Command(b.rlp, "serve", "--json", "--listen", "127.0.0.1:0")
	s.cmd.Env, s.cmd.Stderr = s.env, os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	var said struct{ Addresses []string }
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&said); err != nil {
		return nil, errors.Join(fmt.Errorf("rlp serve does not say where it serves: %w", err), s.stop())
	}
	for _, a := range said.Addresses {
		if strings.HasPrefix(a, "http://127.0.0.1:") {
			s.url = a
		}
	}
	if s.url == "" {
		return nil, errors.Join(fmt.Errorf("rlp serve is not at a loopback address: %q", said.Addresses), s.stop())
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.Proxy = 0, atOnce+subscribers, nil
	s.client = &http.Client{Transport: t}
	return s, nil
}

// rlp runs a command in the home of the service.
func (s *serving) rlp(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, s.bench.rlp, args...)
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("rlp %s: %w\n%s", strings.Join(args, " "), err, tail(out))
	}
	return out, nil
}

// stopTime is more than the service gives to runs that are under way.
const stopTime = 30 * time.Second

// stop ends the service, kindly first; it must end well.
func (s *serving) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(stopTime, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("rlp serve ended: %w", err)
	}
	return nil
}

// verify holds the log against its tree.
func (s *serving) verify(ctx context.Context) {
	_, err := s.rlp(ctx, "audit", "verify")
	s.count("log/broken", err)
}

// sample keeps a figure of this round.
func (b *bench) sample(key string, v float64) {
	if b.figures[key] == nil {
		b.figures[key] = &figure{}
	}
	b.figures[key].Samples = append(b.figures[key].Samples, v)
}

// count keeps how many errors there were, and what they were for the end.
func (b *bench) count(key string, errs ...error) {
	n := 0
	for _, err := range errs {
		if err == nil {
			continue
		}
		if n == 0 {
			b.broken = append(b.broken, fmt.Errorf("%s: %w", key, err))
		}
		n++
	}
	b.sample(key, float64(n))
}
