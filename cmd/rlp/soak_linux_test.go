package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/compose"
)

// Thousands of launches of agents that mean harm, in this process and as
// processes of their own, some of them killed, beside an agent that does its
// work: that one never fails, every attack ends as it may, and afterwards no
// goroutine, descriptor, process, temporary file or working folder is left, and
// memory is what it was. RLP_SOAK=1 makes it 10,000 launches.
//
//rlp:holds K73
func TestHostileMix(t *testing.T) {
	launches := 100
	switch {
	case os.Getenv("RLP_SOAK") != "":
		launches = 10_000
	case testing.Short():
		launches = 10
	}
	if err := adoptNobody(); err != nil { // a test before this one may have opened a lane
		t.Fatal(err)
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	h := newHouse(t, "default")
	mix := h.mix(t)
	h.launchAll(mix, len(mix), 2) // every attack once, and what is made once is made
	h.healthy()
	before := h.measure(tmp)
	start := time.Now()
	runs := h.launchAll(mix, launches, 2)
	took := time.Since(start)
	after := h.settle(tmp, before)
	t.Logf("%d launches beside %d of the healthy agent in %s, %d as processes, %d of them killed", launches,
		runs.healthy.Load(), took.Round(time.Second), runs.processes.Load(), runs.killed.Load())
	t.Logf("before %s", before)
	t.Logf("after  %s", after)
	before.working += 2 * int(runs.killed.Load()) // who is killed leaves its folder, and that of its agent, empty
	after.held(t, before)
	h.everyRunEnded(t)
}

// A state is what a process and a home hold.
type state struct {
	goroutines, files, threads, maps, children, temporary, working, journals int
	rss, home                                                                int64
	links                                                                    []string // of the descriptors
}

func (s state) String() string {
	return fmt.Sprintf("goroutines %d, descriptors %d, threads %d, mappings %d, children %d, temporary files %d, "+
		"working folders %d, journals %d, resident %d MiB, home %d MiB",
		s.goroutines, s.files, s.threads, s.maps, s.children, s.temporary, s.working, s.journals, s.rss>>20, s.home>>20)
}

// measure collects garbage first.
func (h *house) measure(tmp string) state {
	h.t.Helper()
	debug.FreeOSMemory()
	s := state{
		goroutines: runtime.NumGoroutine(), children: children(h.t) + h.leftovers(),
		maps: bytes.Count(slurp(h.t, "/proc/self/maps"), []byte("\n")),
	}
	s.links = links(h.t, "/proc/self/fd")
	s.files, s.threads = len(s.links), len(links(h.t, "/proc/self/task"))
	s.temporary, _ = tree(h.t, tmp)
	s.working, _ = tree(h.t, filepath.Join(h.dir, "work"))
	s.journals, _ = tree(h.t, filepath.Join(h.dir, "journal"))
	_, s.home = tree(h.t, h.dir)
	for line := range strings.Lines(string(slurp(h.t, "/proc/self/status"))) {
		if text, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(text)[0], 10, 64)
			if err != nil {
				h.t.Fatal(err)
			}
			s.rss = kib << 10
		}
	}
	return s
}

// settle measures until what ends by itself has ended.
func (h *house) settle(tmp string, before state) state {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(time.Minute); ; <-tick.C {
		s := h.measure(tmp)
		if s.goroutines <= before.goroutines && s.files <= before.files && s.children <= before.children ||
			time.Now().After(until) {
			return s
		}
	}
}

// held fails for whatever is more than it was. The runtime never gives threads
// back, and a collected heap is not always as tight as a new one.
func (s state) held(t *testing.T, before state) {
	t.Helper()
	for _, c := range []struct {
		what       string
		was, is, m int
	}{
		{"goroutines", before.goroutines, s.goroutines, 0},
		{"descriptors", before.files, s.files, 0},
		{"children", before.children, s.children, 0},
		{"temporary files", before.temporary, s.temporary, 0},
		{"working folders", before.working, s.working, 0},
		{"threads", before.threads, s.threads, 24},
		{"mappings", before.maps, s.maps, 96},
		{"journals", 0, s.journals, 2 * compose.MaxJournals},
		{"MiB of memory", int(before.rss >> 20), int(s.rss >> 20), 48},
	} {
		if testing.Short() && strings.HasPrefix(c.what, "M") { // the race detector's own
			continue
		}
		if c.is > c.was+c.m {
			t.Errorf("%s: %d, and %d before (descriptors %q, %q before)", c.what, c.is, c.was, s.links, before.links)
		}
	}
}

func slurp(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// links are the names in dir, with what they lead to.
func links(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]string, len(entries))
	for i, e := range entries {
		target, _ := os.Readlink(filepath.Join(dir, e.Name()))
		list[i] = e.Name() + " " + target
	}
	return list
}

// tree counts what lies below dir, and its bytes.
func tree(t *testing.T, dir string) (n int, size int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || p == dir {
			return err
		}
		n++
		if info, err := d.Info(); err == nil && !d.IsDir() {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				size += st.Blocks * 512
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n, size
}

// children counts the processes that are this one's, zombies too.
func children(t *testing.T) int {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range lists {
		data, err := os.ReadFile(path)
		if err == nil { // a thread may be gone
			n += len(bytes.Fields(data))
		}
	}
	return n
}

// tally counts what was launched.
type tally struct{ healthy, processes, killed atomic.Int64 }

// launchAll launches n of the mix by so many workers, with the healthy agent
// beside them until they are done.
func (h *house) launchAll(mix []attack, n, workers int) *tally {
	var count tally
	done := make(chan struct{})
	var beside, group sync.WaitGroup
	beside.Go(func() {
		for {
			h.healthy()
			count.healthy.Add(1)
			select {
			case <-done:
				return
			default:
			}
		}
	})
	var next atomic.Int64
	for w := range workers {
		random := rand.New(rand.NewPCG(uint64(w), 1))
		group.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				a := mix[int(i)%len(mix)]
				if a.programs || i%16 == 0 {
					h.process(a, random, &count)
					continue
				}
				status, text := h.in("default", "", a.args...)
				a.judge(h.t, status, text)
			}
		})
	}
	group.Wait()
	close(done)
	beside.Wait()
	return &count
}

// process launches an attack as a process of its own, and kills every other one
// at some moment of its life.
func (h *house) process(a attack, random *rand.Rand, count *tally) {
	var out bytes.Buffer
	c := exec.Command("rlp", append([]string{"--home", h.dir}, a.args...)...)
	c.Stdout, c.Stderr, c.SysProcAttr = &out, &out, &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		h.t.Error(err)
		return
	}
	count.processes.Add(1)
	kill := count.processes.Load()%2 == 0
	if kill {
		count.killed.Add(1)
		timer := time.AfterFunc(time.Duration(random.IntN(120))*time.Millisecond, func() { _ = c.Process.Kill() })
		defer timer.Stop()
	}
	_ = c.Wait()
	if status := c.ProcessState.ExitCode(); !kill || status >= 0 {
		a.judge(h.t, status, out.String())
	}
}

// healthy launches the agent that does its work, which nothing keeps it from.
func (h *house) healthy() {
	if testing.Short() {
		if status, text := h.in("default", "", "launch", h.own("own"), "--param", "x="+h.out); status != 0 {
			h.t.Errorf("the healthy agent: %d %s", status, text)
		}
		return
	}
	note, out := filepath.Join(h.out, "healthy-note"), filepath.Join(h.out, "healthy-out")
	status, text := h.in("default", "", "launch", filepath.Join(h.out, "healthy"), "--", "read", note, "write", out+"/x",
		"digest", "read", out+"/x", "put", "notes", "healthy", "value", "get", "notes", "healthy")
	for _, want := range []string{": a note\n", "digest: ok\n", "/x: digest\n", ": revision ", "healthy: value\n"} {
		if status != 0 || !strings.Contains(text, want) {
			h.t.Errorf("the healthy agent: %d %s", status, text)
			return
		}
	}
}

// everyRunEnded: the log knows an end of each run, and no run has two.
func (h *house) everyRunEnded(t *testing.T) {
	t.Helper()
	s, err := kb.Open(t.Context(), kb.Options{
		Home: h.dir, Mask: compose.NewMasks(h.owner).Index,
		MaskVersion: compose.MaskVersion,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	taken, err := s.Ingest(t.Context())
	if err != nil || len(taken.Damaged) > 0 {
		t.Errorf("damaged journals: %v, %v", taken.Damaged, err)
	}
	begun, ended, records := map[string]int{}, map[string]int{}, 0
	for r, err := range s.Audit(t.Context(), kb.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		records++
		if r.Event == nil {
			continue
		}
		switch kind := r.Event.Kind; {
		case kind == "run.start":
			begun[r.Head.RunID]++
		case slices.Contains([]string{"run.complete", "run.failed", "policy.rejected"}, kind):
			ended[r.Head.RunID]++
		}
	}
	for run := range begun {
		if begun[run] != 1 || ended[run] != 1 {
			t.Errorf("run %s began %d times and ended %d times", run, begun[run], ended[run])
		}
	}
	t.Logf("%d records of %d runs", records, len(begun))
}
