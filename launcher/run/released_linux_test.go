package run

import (
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/audit"
)

// A launch that is refused after its grants were opened closes them.
func TestARefusedLaunchLeavesNothingOpen(t *testing.T) {
	const mib = 1 << 20
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	lib := guest.NewLibrary(0)
	t.Cleanup(func() { lib.Close() })
	lib.Bound(100 * mib)
	granted := func() *Spec { return specOf(t, audit.NewMemory(), "fs:read:"+dir) }
	refused := map[string]*Spec{"no module": granted(), "no memory": granted()}
	refused["no module"].Module = []byte("no module")
	small := refused["no memory"]
	small.Library, small.Above = lib, budget.New(caps.Limits{}, nil)
	small.Policy.BaseLimits = caps.Limits{}.With(caps.MemoryBytes, 60*mib)

	outer := specOf(t, audit.NewMemory(), "kb:read:notes")
	outer.Library, outer.Module, outer.Components.Masks = lib, []byte(gets), spyMasks{}
	outer.Policy.BaseLimits = small.Policy.BaseLimits
	reports := map[string]*Report{}
	outer.Components.KB = &faultyKB{get: func() {
		for name, s := range refused {
			reports[name] = Launch(t.Context(), s)
		}
	}}
	if r := Launch(t.Context(), outer); r.Outcome != OK {
		t.Fatalf("%s %s", r.Outcome, r.Message)
	}
	for name, status := range map[string]int{"no module": StatusInput, "no memory": StatusUnavailable} {
		if r := reports[name]; r.ExitCode != status || r.GuestExit != nil {
			t.Errorf("%s: %s %d %s", name, r.Outcome, r.ExitCode, r.Message)
		}
	}
	if n := held(t, dir); n != 0 {
		t.Errorf("%d handles of the grant are open", n)
	}
}

// A run that the process has less memory for than its limit is given that much, in
// its report, its limits and the message that ends it.
func TestARunIsToldOfTheMemoryThatThereIs(t *testing.T) {
	const mib = 1 << 20
	for limit, want := range map[int64]struct {
		bytes int64
		says  string
	}{
		40 * mib: {16 * mib, "memory_bytes = 16777216, which is all that one run of this process can have"},
		8 * mib:  {8 * mib, "limits.memory_bytes = 8388608"},
	} {
		lib := guest.NewLibrary(0)
		lib.Bound(20 * mib)
		s := specOf(t, audit.NewMemory(), "kb:read:notes")
		s.Library, s.Components = lib, hostcalls.Components{KB: largeKB{}, Masks: spyMasks{}}
		s.Module = repeats(hostcalls.ImportModule, "kb_get", 0x7e, "noteskey", 0, 5, 5, 3, 64, 0)
		s.Policy.Layers = []*caps.Layer{{Name: "operator", Limits: caps.Limits{}.With(caps.MemoryBytes,
			limit).With(caps.CPUFuel, 2_000_000)}}
		r := Launch(t.Context(), s)
		if r.Outcome != Memory || r.Limits["memory_bytes"] != want.bytes ||
			!strings.HasSuffix(strings.Split(r.Message, ";")[0], want.says) {
			t.Errorf("%d: %s %q, limits %v", limit, r.Outcome, r.Message, r.Limits)
		}
		must(t, lib.Close())
	}
}
