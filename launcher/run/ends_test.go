package run

import (
	"os"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/audit"
)

// What a run used is told in the units of its limits, each begun one whole; of one
// that was left behind no result is told, for it may be about to change.
func TestAnEndIsToldInItsUnits(t *testing.T) {
	for _, c := range []struct {
		fuel, units int64
		abandoned   bool
	}{{0, 0, false}, {1, 1, false}, {fuelUnit, 1, false}, {fuelUnit + 1, 2, false}, {3 * fuelUnit, 3, true}} {
		k := talkOf(t)
		k.run.ended(guest.End{
			Kind: guest.OK, Fuel: c.fuel, Wall: 2 * time.Second, Waited: 3 * time.Second, PeakMemory: 7,
			Abandoned: c.abandoned,
		})
		u := k.run.report.Usage
		if u.Fuel != c.units || u.WallMS != 2000 || u.WaitedMS != 3000 || u.MemoryBytes != 7 ||
			k.run.report.GuestExit == nil {
			t.Errorf("%+v: %+v", c, u)
		}
	}
}

// What a guest printed last is in its report though a secret might have begun there,
// and no value is, on either stream.
//
//rlp:holds K11
func TestThePrintedIsLookedThroughToItsEnd(t *testing.T) {
	var live, errors strings.Builder
	s := specOf(t, audit.NewMemory())
	s.Components.Secrets, s.Stdout, s.Stderr = &marked{known: true}, &live, &errors
	s.Module = stepping(t, "x the-value y the-", append(write(1, 0, 18), write(2, 0, 18)...)...)
	r := Launch(t.Context(), s)
	if want := "x [gone] y the-"; r.Stdout != want || r.Stderr != want || live.String() != want ||
		errors.String() != want || r.Usage.SecretsReplaced != 2 {
		t.Errorf("%s: %q, %q, passed on %q and %q, %d replaced", r.Outcome, r.Stdout, r.Stderr, &live, &errors,
			r.Usage.SecretsReplaced)
	}
}

// A run for which the process has no memory is refused and linked to nothing; when
// another one has ended there is room again.
func TestARunThatThereIsNoMemoryForIsRefused(t *testing.T) {
	const mib = 1 << 20
	lib := guest.NewLibrary(0)
	t.Cleanup(func() { lib.Close() })
	lib.Bound(100 * mib)
	sized := func() *Spec {
		s := specOf(t, audit.NewMemory(), "kb:read:notes")
		s.Library, s.Module, s.Components.Masks = lib, []byte(gets), spyMasks{}
		s.Above = budget.New(caps.Limits{}, nil) // who is launched by another run does not wait
		s.Policy.BaseLimits = caps.Limits{}.With(caps.MemoryBytes, 60*mib)
		s.Components.KB = &faultyKB{get: func() {}}
		return s
	}
	outer, within := sized(), (*Report)(nil)
	outer.Components.KB = &faultyKB{get: func() { within = Launch(t.Context(), sized()) }}
	r := Launch(t.Context(), outer)
	if r.Outcome != OK || within == nil || within.Outcome != Refused || within.ExitCode != StatusUnavailable ||
		!strings.Contains(within.Message, "no memory left") || within.GuestExit != nil {
		t.Errorf("%s; within it %+v", r.Outcome, within)
	}
	if r := Launch(t.Context(), sized()); r.Outcome != OK {
		t.Errorf("afterwards: %s %s", r.Outcome, r.Message)
	}
}

// Where compiled code cannot be kept the run goes on, and its operator is told.
func TestACacheThatCannotBeUsedIsTold(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/file", nil, 0o600))
	for cache, told := range map[string]bool{dir + "/cache": false, dir + "/file": true} {
		s := specOf(t, audit.NewMemory())
		s.CacheDir, s.Module, s.Compiler = cache, large(), os.Executable
		if r := Launch(t.Context(), s); r.Outcome != OK || (len(r.Warnings) > 0) != told {
			t.Errorf("%s: %s %s, warned %q", cache, r.Outcome, r.Message, r.Warnings)
		}
	}
}
