package guest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/effect/wasi/wasitest"
	"runloop.dev/rlp/internal/engine/guest"
)

// hostile is one entry of testdata/hostile/manifest.json.
type hostile struct {
	File, What, Expect string
	ExitCode           *uint32 `json:"exit_code"`
	Stdout             string
	StderrHas          string `json:"stderr_has"`
}

const hostileMemory = 64 << 20

// ending is what came of a module: refused, or run to an end.
type ending struct {
	refused error
	end     guest.End
	stdout  string
	fs      *wasitest.FS
}

func runHostile(t *testing.T, file string, clock wasi.Clock, wall time.Duration) ending {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join("testdata/hostile", file))
	if err != nil {
		t.Fatal(err)
	}
	e := ending{fs: wasitest.NewFS()}
	e.fs.Quiet = true
	e.fs.WriteFile("/outside/secret.txt", "CANARY")
	e.fs.Deny("/outside")
	var out bytes.Buffer
	sys, err := wasi.New(wasi.Config{
		Args: []string{"hostile"}, Stdout: &out, FS: e.fs, Clock: clock,
		Stdin: strings.NewReader("input"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close()
	mod, err := guest.Compile(t.Context(), guest.Config{
		Compiler: os.Executable, Module: wasm, Funcs: sys.Funcs(),
		MemoryBytes: hostileMemory,
	})
	if err != nil {
		e.refused = err
		return e
	}
	defer mod.Close()
	e.end = mod.Run(t.Context(), guest.RunConfig{Wall: wall, Grace: stops})
	e.stdout = out.String()
	return e
}

// wallOf is long for what ends by itself, so that a slow machine sees its end.
func wallOf(endless bool) time.Duration {
	if endless {
		return 300 * time.Millisecond
	}
	return wide
}

// kinds is which ends a word of the manifest allows, beside being refused.
func kinds(word string) []guest.Kind {
	switch word {
	case "timeout":
		return []guest.Kind{guest.Timeout}
	case "memory":
		return []guest.Kind{guest.Memory}
	case "trap":
		return []guest.Kind{guest.Trap}
	case "exit", "denied":
		return []guest.Kind{guest.OK, guest.Exit}
	}
	return nil
}

// Every hostile module ends as its manifest says, under a clock of either kind.
//
//rlp:holds K23 K27 K37
func TestHostileModules(t *testing.T) {
	raw, err := os.ReadFile("testdata/hostile/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []hostile
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	for _, h := range list {
		for name, clock := range map[string]wasi.Clock{"virtual": wasi.NewVirtualClock(), "real": wasi.NewRealClock()} {
			t.Run(h.File+"/"+name, func(t *testing.T) {
				h.check(t, runHostile(t, h.File, clock, wallOf(strings.Contains(h.Expect, "timeout"))))
			})
		}
	}
}

func (h hostile) check(t *testing.T, e ending) {
	words := strings.Split(h.Expect, "_or_")
	if e.refused != nil {
		if !slices.Contains(words, "reject") || !errors.Is(e.refused, guest.ErrModule) {
			t.Errorf("%s: refused: %v, want %s", h.What, e.refused, h.Expect)
		}
		return
	}
	var allowed []guest.Kind
	for _, w := range words {
		allowed = append(allowed, kinds(w)...)
	}
	if !slices.Contains(allowed, e.end.Kind) || e.end.Abandoned {
		t.Errorf("%s: %+v, want %s", h.What, e.end, h.Expect)
	}
	if e.end.PeakMemory > hostileMemory {
		t.Errorf("it had %d bytes", e.end.PeakMemory)
	}
	if e.end.Kind == guest.Exit && (h.ExitCode == nil || e.end.ExitCode != *h.ExitCode) && !strings.Contains(h.File,
		"exit_host_code") {
		t.Errorf("it exited with %d", e.end.ExitCode)
	}
	if h.StderrHas != "" && e.end.Trap != h.StderrHas {
		t.Errorf("trap %q, want %q", e.end.Trap, h.StderrHas)
	}
}

// What the manifest leaves to prose.
func TestHostileModulesInParticular(t *testing.T) {
	for file, c := range map[string]struct {
		kind   guest.Kind
		stdout string
	}{
		"sleep_hour.wasm":         {guest.Timeout, ""},
		"sleep_realtime_abs.wasm": {guest.Timeout, ""},
		"random_loop.wasm":        {guest.Timeout, ""},
		"mem_grow_once.wasm":      {guest.Memory, ""}, // and never gets to say "refused"
		"mem_grow_bomb.wasm":      {guest.Memory, ""},
		"exit_host_code.wasm":     {guest.Exit, ""},
		"probe_prestat.wasm":      {guest.OK, "preopens=1\n"},
		"fd_exhaust.wasm":         {guest.OK, "opened=252\n"},
		"renumber_bomb.wasm":      {guest.OK, "path_open=0\nfd_renumber=8\n"},
		"path_deep.wasm":          {guest.OK, "path_open=63\n"},
		"poll_many.wasm":          {guest.OK, ""},
		"poll_overflow.wasm":      {guest.OK, ""},
	} {
		e := runHostile(t, file, wasi.NewRealClock(), wallOf(c.kind == guest.Timeout))
		if e.refused != nil || e.end.Kind != c.kind || c.stdout != "" && e.stdout != c.stdout {
			t.Errorf("%s: %v %+v %q", file, e.refused, e.end, e.stdout)
		}
		if c.kind == guest.Memory && e.stdout != "" {
			t.Errorf("%s: went on to say %q", file, e.stdout)
		}
	}
	e := runHostile(t, "mem_grow_bomb.wasm", nil, wide)
	if e.end.PeakMemory != hostileMemory {
		t.Errorf("mem_grow_bomb had %d bytes of %d", e.end.PeakMemory, hostileMemory)
	}
	e = runHostile(t, "symlink_read.wasm", nil, wide)
	if strings.Contains(e.stdout, "CANARY") {
		t.Errorf("symlink_read: %q", e.stdout)
	}
}
