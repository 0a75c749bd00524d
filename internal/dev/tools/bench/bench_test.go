package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		samples []float64
		want    spread
	}{
		{[]float64{3}, spread{3, 3, 3, 3, 1}},
		{[]float64{3, 1, 2}, spread{2, 1, 1, 3, 3}},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 100}, spread{5.5, 1, 2, 9, 10}},
	} {
		if got := spreadOf(c.samples); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.samples, got, c.want)
		}
	}
}

func TestQuotientIsByRound(t *testing.T) {
	// The machine was ten times slower in the last rounds: the quotient is the same.
	a := &figure{Samples: []float64{2, 2, 20, 20, 20}}
	b := &figure{Samples: []float64{1, 1, 10, 10, 10, 7}}
	if q := quotient(a, b); q.Median != 2 || q.Low != 2 || q.High != 2 || q.Count != 5 {
		t.Errorf("%+v", q)
	}
}

func TestVerdict(t *testing.T) {
	clear := func(v float64) *spread { return &spread{v, v, v, v, 20} }
	for _, c := range []struct {
		goal goal
		s    *spread
		want string
	}{
		{atMost(1.5), clear(1.4), "met"},
		{atMost(1.5), clear(1.6), "missed"},
		{atMost(1.5), &spread{1.4, 1, 1.3, 1.6, 20}, "met?"},
		{atMost(1.5), &spread{1.6, 1, 1.4, 1.7, 20}, "missed?"},
		{atMost(1.5), &spread{1.4, 1.4, 1.4, 1.4, 1}, "met?"},
		{atLeast(0.8), clear(0.9), "met"},
		{atLeast(0.8), clear(0.7), "missed"},
		{ownAtMost(50), clear(40), "met"},
		{goal{}, clear(4), ""},
		{atMost(1), nil, "not measured"},
	} {
		if got := c.goal.verdict(c.s); got != c.want {
			t.Errorf("%v of %+v: %q, want %q", c.goal, c.s, got, c.want)
		}
	}
}

func TestReadFigures(t *testing.T) {
	got := readFigures([]byte("pkg: x\nBenchmarkA/b=c-2 \t 10 \t 5.5 ns/op\t 7 ns/call\nBenchmarkMillion 1 3 " +
		"s/op\nBenchmark\nPASS\n"))
	want := map[string]float64{"A/b=c ns/op": 5.5, "A/b=c ns/call": 7, "Million s/op": 3}
	for name, v := range want {
		if got[name] != v {
			t.Errorf("%q: %v, want %v", name, got[name], v)
		}
	}
}

// full is a bench in which everything that a line names was measured, but of
// one peer and, when broken, of one thing of ours.
func full(t *testing.T, broken bool) *bench {
	b := &bench{options: options{rounds: 20}, figures: map[string]*figure{}}
	measured := &figure{Samples: []float64{4, 5, 6, 5, 4, 5}}
	for _, l := range lines() {
		b.figures[l.ours], b.figures[l.against] = measured, measured
		for _, key := range l.peers {
			b.figures[key] = measured
		}
	}
	delete(b.figures, "")
	b.lacks("tiny/deno", "not there; fetch it")
	if broken {
		b.fails("call/allowed", os.ErrInvalid)
	}
	return b
}

func TestPrint(t *testing.T) {
	b := full(t, false)
	var out strings.Builder
	if err := b.print(&out, machine{Others: 40}); err != nil || len(b.broken) != 0 {
		t.Fatal(err, b.broken)
	}
	for _, want := range []string{
		"BUSY: other programs took 40 %", "tiny/deno: not there; fetch it", "launch, tiny agent",
		"met",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "not measured") {
		t.Errorf("something was not measured:\n%s", out.String())
	}
	b = full(t, true)
	out.Reset()
	if err := b.print(&out, machine{}); err != nil || len(b.broken) != 1 || !strings.Contains(out.String(),
		"not measured") || strings.Contains(out.String(), "BUSY") {
		t.Errorf("%v, %v:\n%s", err, b.broken, out.String())
	}
}

func TestDocument(t *testing.T) {
	b := full(t, true)
	b.json = true
	var out bytes.Buffer
	if err := b.print(&out, machine{}); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Lines   []row
		Figures map[string]struct {
			Median  float64
			Samples []float64
			Missing string
		}
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if f := doc.Figures["tiny/rlp"]; f.Median != 5 || len(f.Samples) != 6 || len(doc.Lines) != len(lines()) ||
		doc.Figures["call/allowed"].Missing == "" {
		t.Errorf("%+v", doc)
	}
}

// Every figure that a line names is one that something measures.
func TestLinesAreMeasured(t *testing.T) {
	b := &bench{options: options{rounds: 1}, figures: map[string]*figure{}}
	measured := map[string]bool{"": true}
	for _, s := range b.sources() {
		for _, key := range s.picks {
			measured[key] = true
		}
	}
	for _, s := range b.scripts() {
		for _, key := range s.picks {
			measured[key] = true
		}
	}
	for _, guest := range []string{"tiny", "go"} {
		for _, what := range []string{"bare", "bare+sync", "rlp", "daemon", "extism", "deno", "deno-audit", "node", "bwrap"} {
			measured[guest+"/"+what] = true
		}
	}
	for _, l := range lines() {
		keys := []string{l.ours, l.against}
		for _, key := range l.peers {
			keys = append(keys, key)
		}
		for _, key := range keys {
			if !measured[key] {
				t.Errorf("%s: nothing measures %s", l.what, key)
			}
		}
	}
}

func TestSpawnerJudges(t *testing.T) {
	s, err := newSpawner(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	sh := func(script, says string) command {
		return command{args: []string{"/bin/sh", "-c", script}, says: says}
	}
	if took, err := s.run(sh("echo ok", "ok")); err != nil || took <= 0 {
		t.Error(took, err)
	}
	for _, c := range []command{
		sh("echo no", "ok"), sh("exit 3", ""), sh("kill -9 $$", ""),
		{args: []string{"/nonexistent"}},
	} {
		if _, err := s.run(c); err == nil {
			t.Errorf("%q passed", c.args)
		}
	}
}

// What fails costs its own figure: of a peer a line, of ours the run's success.
func TestWhatFailsIsLeftOut(t *testing.T) {
	b := &bench{options: options{rounds: 3}, figures: map[string]*figure{}}
	s, err := newSpawner(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	well, ill := command{args: []string{"/bin/sh", "-c", ":"}}, command{args: []string{"/bin/sh", "-c", "exit 1"}}
	ready := b.warmed(s, []contender{
		{key: "works", command: well},
		{key: "absent", missing: "get it there"},
		{key: "ill", command: ill},
		{key: "ours", command: ill, ours: true},
	})
	if len(ready) != 1 || ready[0].key != "works" || len(b.broken) != 1 {
		t.Fatalf("%+v, %v", ready, b.broken)
	}
	if got := b.figures["absent"].Missing; got != "get it there" {
		t.Errorf("%q", got)
	}
	b.start(s, &ready[0])
	ready[0].command = ill
	b.start(s, &ready[0])
	if f := b.figures["works"]; f.there() || f.Missing == "" || ready[0].missing == "" || len(b.broken) != 1 {
		t.Errorf("%+v, %v", f, b.broken)
	}
}

func TestEventsOfAStream(t *testing.T) {
	var got []string
	read := func(text string) error {
		got = nil
		return events(bufio.NewReader(strings.NewReader(text)), func(e event) error {
			got = append(got, fmt.Sprintf("%d %s%s", e.id, e.name, e.data))
			return nil
		})
	}
	if err := read("id: 1\nevent: a\ndata: {}\n\n: heartbeat\n\nid: 2\r\nevent: b\r\ndata: x:y\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if want := "[1 a{} 2 bx:y]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	if read("id: 1\nevent: a\n") == nil {
		t.Error("half an event")
	}
	if read("id: one\n\n") == nil {
		t.Error("an id that is no number")
	}
}

func TestShareOfTimes(t *testing.T) {
	var times []time.Duration
	for i := range 1000 {
		times = append(times, time.Duration(i))
	}
	if at(times, 50) != 500 || at(times, 99) != 990 || at(times, 100) != 999 || at(times[:1], 99) != 0 {
		t.Error(at(times, 50), at(times, 99), at(times, 100))
	}
}
