package run

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/record/audit"
)

// realTime reports whether clock tells the host's time.
func realTime(t *testing.T, clock wasi.Clock) bool {
	t.Helper()
	ns, errno := clock.Now(wasi.Realtime)
	if errno != wasi.Success {
		t.Fatal(errno)
	}
	return time.Since(time.Unix(0, int64(ns))).Abs() < time.Hour
}

// A clock that a lease refused is asked for again when the operator edits what
// narrows the run, and the answer is recorded; one that was never granted is not.
func TestARefusedClockIsAskedForAgain(t *testing.T) {
	used := &caps.Layer{Name: "a", Leases: []caps.Lease{{Entry: entryOf(t, "time:read:*"), Expires: caps.Forever}}}
	for name, c := range map[string]struct {
		grants []string
		denied []bool // of each record
		real   bool
	}{
		"leased":        {[]string{"time:read:*", "kb:read:notes"}, []bool{true, false}, true},
		"never granted": {[]string{"kb:read:notes"}, []bool{true}, false},
	} {
		k := talkOf(t, c.grants...)
		reload := func(layers ...*caps.Layer) {
			t.Helper()
			_, err := k.run.gate.Reload("turn", layers)
			must(t, err)
		}
		if c.real {
			reload(used)
		}
		clock, use := k.run.clock()
		must(t, use("clock_time_get", false))
		if realTime(t, clock) {
			t.Errorf("%s: refused, and the clock tells the time", name)
		}
		reload(denying(t, "kb:read:notes"))
		if got := realTime(t, clock); got != c.real {
			t.Errorf("%s: after the edit the clock tells the time: %v", name, got)
		}
		var denied []bool
		for _, d := range k.log.Decisions {
			denied = append(denied, d.Deny)
		}
		if len(denied) != len(c.denied) || denied[0] != c.denied[0] || denied[len(denied)-1] != c.denied[len(denied)-1] {
			t.Errorf("%s: recorded %v, want %v", name, denied, c.denied)
		}
	}
}

// Each time that time is taken away it is recorded, once, and the clock goes on
// from what it said last; that it is given back is no use of it.
//
//rlp:holds C11
func TestEachLossOfTimeIsRecorded(t *testing.T) {
	k := talkOf(t, "time:read:*")
	clock, use := k.run.clock()
	must(t, use("clock_time_get", false))
	var last uint64
	for round := range 3 {
		for _, layers := range [][]*caps.Layer{{denying(t, "time:read:*")}, nil} {
			if _, err := k.run.gate.Reload("turn", layers); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				ns, _ := clock.Now(wasi.Realtime)
				if len(layers) > 0 && time.Duration(ns-last) > time.Hour && last > 0 {
					t.Errorf("round %d: the clock went from %d to %d", round, last, ns)
				}
				last = ns
			}
		}
		if n := len(k.log.Decisions); n != 2+round {
			t.Errorf("round %d: %d records", round, n)
		}
	}
}

// No use of a clock that cannot be recorded is one: the call fails, which ends
// the run, with time and without it.
//
//rlp:holds R71
func TestAClockIsNotReadUnrecorded(t *testing.T) {
	for _, grants := range [][]string{{"time:read:*"}, {"kb:read:notes"}} {
		k := talkOf(t, grants...)
		_, use := k.run.clock()
		must(t, use("clock_res_get", false)) // control
		k.log.Room = 0
		if err := use("clock_time_get", false); !errors.Is(err, audit.ErrFull) {
			t.Errorf("%v: full: %v", grants, err)
		}
		s := specOf(t, audit.NewMemory(), grants...)
		naming("clock_time_get")(s)
		s.Module = stepping(t, "x", append([]step{do("clock_time_get", 0, 0, 64)}, say(0, 1)...)...)
		if r := Launch(t.Context(), s); r.Stdout != "" || r.GuestExit != nil || r.ExitCode == 0 {
			t.Errorf("%v: without a name: %s %d %q, printed %q", grants, r.Outcome, r.ExitCode, r.Message, r.Stdout)
		}
	}
}

// A clock that there is not has no time, and who is ended while they sleep learns it.
func TestClocksOfARunKnowTheirNumbersAndEnd(t *testing.T) {
	for _, lost := range []bool{false, true} {
		k := talkOf(t, "time:read:*")
		clock, use := k.run.clock()
		must(t, use("clock_time_get", false))
		if lost {
			_, err := k.run.gate.Reload("turn", []*caps.Layer{denying(t, "time:read:*")})
			must(t, err)
		}
		if ns, errno := clock.Now(wasi.Monotonic); ns == 0 || errno != wasi.Success {
			t.Fatalf("control: %d, errno %d", ns, errno)
		}
		if ns, errno := clock.Now(99); ns != 0 || errno != wasi.EINVAL {
			t.Errorf("lost %v: %d, errno %d", lost, ns, errno)
		}
		ended, end := context.WithCancelCause(t.Context())
		over := errors.New("it is over")
		end(over)
		if err := clock.Sleep(ended, time.Hour); !errors.Is(err, over) {
			t.Errorf("lost %v: slept with %v", lost, err)
		}
	}
}

// What the start of a language asks of the clock is recorded and counted nowhere; what
// the agent asks for is a denial, once a run.
//
//rlp:holds D12
func TestTheStartOfALanguageIsNoDenial(t *testing.T) {
	clock, begin := do("clock_time_get", 0, 0, 64), do("fd_filestat_get", 1, 64)
	starting := []step{do("args_sizes_get", 64, 68), do("random_get", 64, 8), clock, do("sched_yield"), clock}
	for name, c := range map[string]struct {
		steps   []step
		grants  []string
		denied  int64
		allowed int64
		records int
	}{
		"at the start":        {starting, nil, 0, 0, 1},
		"after it":            {append(slices.Clone(starting), begin, clock, clock), nil, 1, 0, 2},
		"without a start":     {[]step{begin, clock, clock}, nil, 1, 0, 1},
		"granted, after it":   {append(slices.Clone(starting), begin, clock), []string{"time:read:*"}, 0, 1, 1},
		"control: no clock":   {[]step{begin}, nil, 0, 0, 0},
		"granted, at no time": {[]step{begin}, []string{"time:read:*"}, 0, 0, 0},
	} {
		log := audit.NewMemory()
		s := specOf(t, log, append(c.grants, "kb:read:notes")...)
		s.Module = stepping(t, "x", c.steps...)
		r := Launch(t.Context(), s)
		clocks := 0
		for i, d := range log.Decisions {
			if d.Cap != "time.now" {
				continue
			}
			if clocks++; d.Deny && (d.Severity == audit.Info) != (clocks == 1 && c.steps[0].name != begin.name) {
				t.Errorf("%s: record %d has severity %s", name, i, d.Severity)
			}
		}
		if r.Outcome != OK || r.Usage.Denied != c.denied || r.Usage.Allowed != c.allowed || clocks != c.records {
			t.Errorf("%s: %s, %d denied, %d allowed, %d records of clocks", name, r.Outcome, r.Usage.Denied, r.Usage.Allowed, clocks)
		}
	}
}
