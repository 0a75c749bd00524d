package compose

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/launcher/run"
)

// execImport is exec_run of a run that may start the programs of the policy,
// recorded in a journal as a run's is.
func execImport(t testing.TB, grants ...string) func(req string) int64 {
	t.Helper()
	var p run.Policy
	for _, text := range grants {
		g, err := caps.ParseGrant(text)
		if err != nil {
			t.Fatal(err)
		}
		p.Base = append(p.Base, caps.Entry{Grant: g})
	}
	named := programsNamed(p)
	p, _, err := run.Canonical(p, run.Resolvers{Files: jail.Canonical, Programs: jail.Canonical})
	if err != nil {
		t.Fatal(err)
	}
	set, err := caps.Base(p.Base, caps.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	j, err := journal.Create(journal.Options{
		Dir: filepath.Join(t.TempDir(), "journal"), Head: audit.Head{RunID: "bench"},
		MaxDecisions: math.MaxUint32,
	})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(set, j, gate.Options{KeepAllowed: true, KeepDenied: true, MaxCalls: -1})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l, err := lane.Open(t.Context(), "native", lane.Config{Work: filepath.Join(dir, "a", "r"), ID: "bench-" +
		filepath.Base(filepath.Dir(dir))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		_ = j.Close()
	})
	h := hostcalls.New(hostcalls.Config{
		Components: hostcalls.Components{Exec: &programs{lane: l, named: named, home: filepath.Join(dir, "home")}}, Gate: g,
		Now: func() int64 { return time.Now().UnixNano() },
	})
	return calling(t, h)
}

// calling passes a request to exec_run as a guest would.
func calling(t testing.TB, h *hostcalls.Host) func(req string) int64 {
	t.Helper()
	funcs, err := h.Funcs()
	if err != nil {
		t.Fatal(err)
	}
	var f abi.Func
	for _, each := range funcs {
		if each.Name == "exec_run" {
			f = each
		}
	}
	mem := make([]byte, 1<<16)
	return func(req string) int64 {
		copy(mem, req)
		stack := []uint64{0, uint64(len(req)), 0, 0, 1 << 15, 1 << 15}
		if err := f.Call(context.Background(), mem, stack); err != nil {
			t.Fatal(err)
		}
		return int64(stack[0])
	}
}

// BenchmarkExec compares a program that is started through the import, with all
// that is decided, recorded and bounded, with the same program started by
// os/exec. Both take turns, so that the machine is the same for both, and the
// figures are medians, so that what else runs on it counts little.
func BenchmarkExec(b *testing.B) {
	run := execImport(b, "process:exec:/bin/true")
	var ours, theirs []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
		between := time.Now()
		if n := run(`{"argv":["/bin/true"]}`); n < 0 {
			b.Fatal(n)
		}
		theirs = append(theirs, between.Sub(began))
		ours = append(ours, time.Since(between))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	b.ReportMetric(float64(theirs[len(theirs)/2]), "ns/os_exec")
	b.ReportMetric(float64(ours[len(ours)/2]), "ns/import")
	b.ReportMetric(float64(ours[len(ours)/2])/float64(theirs[len(theirs)/2]), "times")
}

// FuzzExecImport gives the whole way, from the bytes of a request to a program,
// whatever it may hold: only the one program that is granted is ever started.
func FuzzExecImport(f *testing.F) {
	dir, err := filepath.EvalSymlinks(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	granted := filepath.Join(dir, "granted")
	if err := os.WriteFile(granted, []byte("#!/bin/sh\n"), 0o700); err != nil {
		f.Fatal(err)
	}
	if err := os.Symlink("granted", filepath.Join(dir, "link")); err != nil {
		f.Fatal(err)
	}
	run := execImport(f, "process:exec:"+granted)
	if n := run(`{"argv":["` + granted + `"]}`); n < 0 { // the control
		f.Fatal(n)
	}
	for _, s := range []string{
		`{"argv":["DIR/granted"]}`, `{"argv":["DIR/link","x"]}`, `{"argv":["/bin/true"]}`,
		`{"argv":["DIR"],"cwd":"DIR"}`, `{"argv":["DIR/granted"],"timeout_ms":1}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, request string) {
		request = strings.ReplaceAll(request, "DIR", dir)
		if len(request) > 1<<14 || run(request) < 0 {
			return
		}
		var r struct {
			Argv []string `json:"argv"`
		}
		if err := json.Unmarshal([]byte(request), &r); err != nil || r.Argv[0] != granted && r.Argv[0] != filepath.Join(dir,
			"link") {
			t.Errorf("%q was started: %v", request, err)
		}
	})
}
