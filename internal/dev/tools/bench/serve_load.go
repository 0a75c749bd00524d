package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// rounds measures everything in turn, a tenth as often as programs are started.
func (s *serving) rounds(ctx context.Context) error {
	inside, err := s.testBinary(source{
		module: s.root, pkg: "./cmd/rlp", match: "^BenchmarkHosted$", benchtime: strconv.Itoa(inARow) + "x", ours: true,
		env:   []string{"RLP_BENCH_AGENT=" + filepath.Join(s.tmp, "agents", "tiny.bundle")},
		picks: map[string]string{"Hosted p50-us": "serve/in-process"},
	})
	if err != nil {
		return err
	}
	for round := range max(1, s.bench.rounds/10) {
		s.say("round %d", round+1)
		if err := inside.run(ctx, s.figures); err != nil {
			return err
		}
		took, err := s.inARow(ctx)
		if err != nil {
			return err
		}
		s.sample("serve/p50", micros(at(took, 50)))
		trouble := s.trouble(ctx)
		s.storm(ctx)
		s.followed(ctx)
		trouble()
	}
	return nil
}

// inARow posts one request after the other, on one connection.
func (s *serving) inARow(ctx context.Context) ([]time.Duration, error) {
	var took []time.Duration
	for range inARow {
		began := time.Now()
		if err := s.post(ctx, `{"agent":"tiny"}`, "ok"); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took, nil
}

// storm posts all at once.
func (s *serving) storm(ctx context.Context) {
	took, errs := make([]time.Duration, atOnce), make([]error, atOnce)
	var all sync.WaitGroup
	began := time.Now()
	for i := range atOnce {
		all.Go(func() {
			errs[i] = s.post(ctx, `{"agent":"tiny"}`, "ok")
			took[i] = time.Since(began)
		})
	}
	all.Wait()
	s.sample("storm/rate", float64(atOnce)/time.Since(began).Seconds())
	slices.Sort(took)
	s.sample("storm/p50", millis(at(took, 50)))
	s.sample("storm/p99", millis(at(took, 99)))
	s.count("storm/errors", errs...)
	if rss, err := peak(s.cmd.Process.Pid); err == nil {
		s.sample("storm/rss", rss)
	} else {
		s.fails("storm/rss", err)
	}
}

// troubled is how many runs that end badly there are at a time.
const troubled = 6

// trouble asks for runs that end badly, each kind as often as the others, until the
// function that it returns is called.
func (s *serving) trouble(ctx context.Context) (stop func()) {
	var over atomic.Bool
	kinds := []func() error{
		func() error { return s.post(ctx, `{"agent":"crash"}`, "trap") },
		func() error { return s.post(ctx, `{"agent":"spin","limits":{"wall_time_ms":20}}`, "timeout") },
		func() error { return s.cancelled(ctx) },
	}
	var all sync.WaitGroup
	ends := make([][]error, troubled)
	for i := range ends {
		all.Go(func() {
			for !over.Load() {
				ends[i] = append(ends[i], kinds[i%len(kinds)]())
			}
		})
	}
	return func() {
		over.Store(true)
		all.Wait()
		errs := slices.Concat(ends...)
		s.sample("trouble/runs", float64(len(errs)))
		s.count("trouble/wrong", errs...)
	}
}

// cancelled begins a run that would never end, and cancels it.
func (s *serving) cancelled(ctx context.Context) error {
	id, err := s.begin(ctx, `{"agent":"spin","wait":false}`)
	if err != nil {
		return err
	}
	if _, err := s.ask(ctx, http.MethodPost, "/runs/"+id+"/cancel", "", http.StatusAccepted); err != nil {
		return err
	}
	return s.follow(ctx, id, func(event) {}) // until its last record
}

// begin begins a run and returns its id.
func (s *serving) begin(ctx context.Context, body string) (string, error) {
	text, err := s.ask(ctx, http.MethodPost, "/run", body, http.StatusAccepted)
	if err != nil {
		return "", err
	}
	var run struct {
		ID string `json:"run_id"`
	}
	if err := json.Unmarshal(text, &run); err != nil || run.ID == "" {
		return "", fmt.Errorf("no run in %s: %w", text, err)
	}
	return run.ID, nil
}

// post launches and waits, and expects an outcome.
func (s *serving) post(ctx context.Context, body, outcome string) error {
	text, err := s.ask(ctx, http.MethodPost, "/run", body, http.StatusOK)
	if err != nil {
		return err
	}
	var report struct{ Outcome, Message string }
	if err := json.Unmarshal(text, &report); err != nil {
		return err
	}
	if report.Outcome != outcome {
		return fmt.Errorf("%s ended with %q, not %q: %s", body, report.Outcome, outcome, report.Message)
	}
	return nil
}

// ask sends one request and reads its answer whole.
func (s *serving) ask(ctx context.Context, method, path, body string, status int) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != status {
		return nil, fmt.Errorf("%s %s: %s\n%s", method, path, answer.Status, tail(text))
	}
	return text, nil
}

// at is the time that so many of a hundred stay within.
func at(sorted []time.Duration, percent int) time.Duration {
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// peak is the most memory that a process has had, in MiB.
func peak(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) == 3 && f[0] == "VmHWM:" {
			kib, err := strconv.ParseFloat(f[1], 64)
			return kib / 1024, err
		}
	}
	return 0, errors.New("the system does not say how much memory a process had")
}
