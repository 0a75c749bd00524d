package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
)

// waiting is a module that waits for its next input, again and again, until
// there is none.
const waiting = "\x00asm\x01\x00\x00\x00" +
	"\x01\x0a\x02\x60\x02\x7f\x7f\x01\x7e\x60\x00\x00" + // types: (i32 i32) -> i64, () -> ()
	"\x02\x18\x01\x0arunloop_v1\x09turn_next\x00\x00" +
	"\x03\x02\x01\x01" + "\x05\x03\x01\x00\x01" + "\x07\x0a\x01\x06_start\x00\x01" +
	// loop { if turn_next(64, 512) >= 0 continue }
	"\x0a\x14\x01\x12\x00\x03\x40\x41\xc0\x00\x41\x80\x04\x10\x00\x42\x00\x59\x0d\x00\x0b\x0b"

// idleAgents are agents of one process that wait for their next turn.
type idleAgents struct {
	t       testing.TB
	dir     string
	clock   *journal.Clock
	library *guest.Library
	module  []byte
	change  func(*Spec)

	parked chan struct{}
	leave  chan struct{}
	ended  chan *Report
	all    sync.WaitGroup
}

func newIdleAgents(t testing.TB, module []byte) *idleAgents {
	c := &idleAgents{
		t: t, dir: t.TempDir(), clock: journal.NewClock(nil), library: guest.NewLibrary(0), module: module,
		parked: make(chan struct{}), leave: make(chan struct{}), ended: make(chan *Report),
	}
	t.Cleanup(func() {
		c.clock.Stop()
		if err := c.library.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Next is the operator, who says nothing until all leave.
func (c *idleAgents) Next(ctx context.Context) ([]byte, error) {
	c.parked <- struct{}{}
	select {
	case <-c.leave:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *idleAgents) spec(i int) *Spec {
	s := specOf(c.t, nil, "kb:read:notes", "fs:read:"+c.dir)
	s.RunID, s.Module, s.Inputs, s.Library = fmt.Sprintf("0190b1d2-7c4e-7a55-8f00-%012d", i), c.module, c, c.library
	s.CacheDir, s.Compiler = filepath.Join(c.dir, "cache"), os.Executable
	s.OpenJournal = func(h audit.Head) (Journal, error) {
		return journal.Create(journal.Options{Dir: filepath.Join(c.dir, "journal"), Head: h, Clock: c.clock})
	}
	if c.change != nil {
		c.change(s)
	}
	return s
}

// enter launches agents, and returns when each of them waits.
func (c *idleAgents) enter(from, to int) {
	for i := from; i < to; i++ {
		s := c.spec(i)
		c.all.Go(func() { c.ended <- Launch(c.t.Context(), s) })
		select {
		case <-c.parked:
		case r := <-c.ended:
			c.t.Fatalf("%s does not wait: %s, %s", r.RunID, r.Outcome, r.Message)
		}
	}
}

// end lets all go, and complains unless each ended well.
func (c *idleAgents) end() {
	close(c.leave)
	go func() {
		c.all.Wait()
		close(c.ended)
	}()
	for r := range c.ended {
		if r.Outcome != OK {
			c.t.Errorf("%s: %s, %s", r.RunID, r.Outcome, r.Message)
		}
	}
}

// footprint is what the process takes: its own share of its pages, and the tables that
// they are found by.
type footprint struct{ pss, anon, file, tables, threads, files, goroutines, stacks, heap int }

// less is what f takes more than before.
func (f footprint) less(before footprint) footprint {
	return footprint{
		f.pss - before.pss, f.anon - before.anon, f.file - before.file, f.tables - before.tables,
		f.threads - before.threads, f.files - before.files, f.goroutines - before.goroutines, f.stacks - before.stacks,
		f.heap - before.heap,
	}
}

func measure(t testing.TB) footprint {
	t.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	rollup, status := fields(t, "/proc/self/smaps_rollup"), fields(t, "/proc/self/status")
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{
		pss: rollup["Pss"], anon: rollup["Pss_Anon"], file: rollup["Pss_File"] + rollup["Pss_Shmem"], tables: status["VmPTE"],
		threads: status["Threads"], files: len(list), goroutines: runtime.NumGoroutine(),
		stacks: int(m.StackInuse) >> 10, heap: int(m.HeapAlloc) >> 10,
	}
}

// fields are the numbers of a file in /proc, by name.
func fields(t testing.TB, name string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if name, rest, ok := strings.Cut(line, ":"); ok {
			if words := strings.Fields(rest); len(words) > 0 {
				list[name], _ = strconv.Atoi(words[0]) // 0 is what is no number
			}
		}
	}
	return list
}

// BenchmarkIdle is what an agent takes that waits for its next turn, one of a
// thousand in a process.
func BenchmarkIdle(b *testing.B) {
	for _, g := range []struct {
		name string
		n    int
		wasm func(testing.TB) []byte
	}{
		{"tiny", 1000, func(testing.TB) []byte { return []byte(waiting) }},
		{"c", 1000, cGuest},
		{"go", 100, goGuest},
	} {
		name := fmt.Sprintf("%s=%d", g.name, g.n)
		if testing.Short() {
			g.n /= 50
		}
		b.Run(name, func(b *testing.B) {
			c := newIdleAgents(b, g.wasm(b))
			c.enter(0, 8) // what the first ones make is there for all
			before := measure(b)
			began := time.Now()
			c.enter(8, 8+g.n)
			took := time.Since(began)
			more := measure(b).less(before)
			if dir := os.Getenv("RLP_PROFILE"); dir != "" {
				profileTo(b, filepath.Join(dir, g.name))
			}
			cpu := processorTime(b)
			<-time.After(time.Second)
			cpu = processorTime(b) - cpu
			c.end()
			each := func(n int) float64 { return float64(n) / float64(g.n) }
			b.ReportMetric(each(more.pss+more.tables), "KiB/agent")
			b.ReportMetric(each(more.anon), "anonKiB/agent")
			b.ReportMetric(each(more.file), "fileKiB/agent")
			b.ReportMetric(each(more.stacks), "stackKiB/agent")
			b.ReportMetric(each(more.heap), "heapKiB/agent")
			b.ReportMetric(each(more.tables), "tablesKiB/agent")
			b.ReportMetric(each(more.files), "files/agent")
			b.ReportMetric(each(more.goroutines), "goroutines/agent")
			b.ReportMetric(float64(more.threads), "more-threads")
			b.ReportMetric(float64(cpu.Microseconds()), "idle-us/s")
			b.ReportMetric(float64(took.Microseconds())/float64(g.n), "launch-us")
		})
	}
}

func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// profileTo keeps what is on the heap, and what is mapped, for a reader.
func profileTo(t testing.TB, path string) {
	t.Helper()
	for name, write := range map[string]func(io.Writer) error{
		".heap":       func(w io.Writer) error { return pprof.Lookup("heap").WriteTo(w, 0) },
		".goroutines": func(w io.Writer) error { return pprof.Lookup("goroutine").WriteTo(w, 1) },
		".smaps": func(w io.Writer) error {
			text, err := os.ReadFile("/proc/self/smaps")
			_, werr := w.Write(text)
			return errors.Join(err, werr)
		},
	} {
		f, err := os.Create(path + name)
		if err == nil {
			err = errors.Join(write(f), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// cGuest and goGuest are what waiting is, by a compiler.
func cGuest(t testing.TB) []byte {
	return built(t, "main.c", `#include <stdio.h>
__attribute__((import_module("runloop_v1"), import_name("turn_next"))) long long turn_next(void *out, int room);
static char input[512];
int main(void) { puts("ready"); fflush(stdout); while (turn_next(input, sizeof input) >= 0) {} return 0; }
`, "clang", "--target=wasm32-wasi", "--sysroot=/usr", "-O2", "-o", "out.wasm", "main.c")
}

func goGuest(t testing.TB) []byte {
	return built(t, "main.go", `package main
import ("fmt"; "unsafe")
//go:wasmimport runloop_v1 turn_next
//go:noescape
func turnNext(out unsafe.Pointer, room uint32) int64
func main() { fmt.Println("ready"); var input [512]byte; for turnNext(unsafe.Pointer(&input), 512) >= 0 {} }
`, "go", "build", "-o", "out.wasm", "main.go")
}

func built(t testing.TB, name, source string, command ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wasm, err := os.ReadFile(filepath.Join(dir, "out.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// BenchmarkLaunches is launches in a row in one process, with a library and without
// one, from a warm cache. Records go nowhere: with a journal they wait for the disk.
func BenchmarkLaunches(b *testing.B) {
	for _, g := range []struct {
		name string
		wasm func(testing.TB) []byte
	}{{"tiny", func(testing.TB) []byte { return []byte(waiting) }}, {"c", cGuest}, {"go", goGuest}} {
		wasm := g.wasm(b)
		for _, shared := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/library=%v", g.name, shared), func(b *testing.B) {
				c, n := newIdleAgents(b, wasm), 0
				c.change = func(s *Spec) {
					s.Inputs = nil
					s.OpenJournal = func(audit.Head) (Journal, error) { return audit.NewMemory(), nil }
					if !shared {
						s.Library = nil
					}
				}
				launch := func() {
					n++
					if r := Launch(b.Context(), c.spec(n)); r.Outcome != OK {
						b.Fatal(r.Message)
					}
				}
				for launch(); b.Loop(); {
					launch()
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "launches/s")
			})
		}
	}
}
