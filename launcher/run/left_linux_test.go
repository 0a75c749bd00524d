package run

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/audit"
)

// writes is a module that writes one byte to stdout.
const writes = "\x00asm\x01\x00\x00\x00" +
	"\x01\x0c\x02\x60\x04\x7f\x7f\x7f\x7f\x01\x7f\x60\x00\x00" +
	"\x02\x23\x01\x16wasi_snapshot_preview1\x08fd_write\x00\x00" +
	"\x03\x02\x01\x01\x05\x03\x01\x00\x01" +
	"\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x01" +
	"\x0a\x0f\x01\x0d\x00\x41\x01\x41\x00\x41\x01\x41\x10\x10\x00\x1a\x0b" +
	"\x0b\x0f\x01\x00\x41\x00\x0b\x09\x08\x00\x00\x00\x01\x00\x00\x00x"

// unread is where nobody reads what is written until it is let go.
type unread struct {
	once  sync.Once
	begun chan struct{}
	let   chan struct{}
}

func (s *unread) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.begun) })
	<-s.let
	return len(p), nil
}

// A guest that a call holds up beyond its deadline is left behind; when the call
// ends, what was opened for the guest is closed after all.
func TestWhatWasLeftBehindIsClosedLater(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const memory = 60 << 20
	lib := guest.NewLibrary(0)
	t.Cleanup(func() { lib.Close() })
	lib.Bound(100 << 20)
	out := &unread{begun: make(chan struct{}), let: make(chan struct{})}
	var r *Report
	// on a slow machine it has not begun by then
	for wall, begun := int64(100), false; !begun && wall < 60_000; wall *= 8 {
		s := specOf(t, audit.NewMemory(), "fs:read:"+dir)
		s.Module, s.Stdout, s.Library = []byte(writes), out, lib
		s.Policy.BaseLimits = caps.Limits{}.With(caps.WallTimeMS, wall).With(caps.MemoryBytes, memory)
		r = Launch(t.Context(), s)
		select {
		case <-out.begun:
			begun = true
		default:
		}
	}
	if r.Outcome != Timeout || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "left behind") {
		t.Fatalf("%s %v %s", r.Outcome, r.Warnings, r.Message)
	}
	if held(t, dir) != 1 || lib.Room(memory) {
		t.Errorf("control: %d handles of the grant, room for its memory %v", held(t, dir), lib.Room(memory))
	}
	close(out.let)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(time.Minute); held(t, dir) > 0 || !lib.Room(memory); <-tick.C {
		if time.Now().After(until) {
			t.Fatal("the handle of the grant is never closed, or the memory never given back")
		}
	}
}

// Files that a guest leaves open are closed when it ends.
func TestFilesAreClosedWithTheRun(t *testing.T) {
	s := marking(t, false, caps.Limits{}, say(results+24, 8)...)
	r := Launch(t.Context(), s)
	if len(r.Stdout) != 16 || answered(r.Stdout[8:], 0) != 0 {
		t.Fatalf("control: opening the folder answered %x", r.Stdout)
	}
	if n := held(t, s.Policy.Base[0].Grant.Scope); n != 0 {
		t.Errorf("%d handles of the grant are open", n)
	}
}

// held counts this process's descriptors of dir.
func held(t *testing.T, dir string) int {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, l := range links {
		if target, err := os.Readlink(l); err == nil && target == dir {
			n++
		}
	}
	return n
}
