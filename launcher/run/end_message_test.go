package run

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/audit"
)

// What is said of an end is what ended the run: the time as it was then, and not
// an operator who did nothing.
func TestEndsAreNotBlamedOnOthers(t *testing.T) {
	for _, c := range []struct {
		outcome Outcome
		end     guest.End
		parent  string
		want    string
	}{
		{Timeout, guest.End{Kind: guest.Timeout, Given: 20 * time.Second}, "", "the run passed limits.wall_time_ms = 20000"},
		{Cancelled, guest.End{Kind: guest.Cancelled}, "", "interrupted by the operator"},
		{Cancelled, guest.End{Kind: guest.Cancelled, Err: &Ending{"nothing came"}}, "", "nothing came"},
		{
			Cancelled,
			guest.End{Kind: guest.Cancelled, Err: &Ending{"nothing came"}},
			"01a2",
			"the run that launched this one ended",
		},
		{Cancelled, guest.End{Kind: guest.Cancelled}, "01a2", "the run that launched this one ended"},
	} {
		r := newRun(&Spec{Identity: Identity{ParentRun: c.parent}}, Plan{})
		r.report.Outcome = c.outcome
		r.plan.Limits = caps.Limits{}.With(caps.WallTimeMS, DefaultWallMS)
		if got := r.endMessage(c.end); got != c.want {
			t.Errorf("%s: %q, want %q", c.outcome, got, c.want)
		}
	}
}

// Why a run was ended is in its report and in its last record, whether it had
// begun or not; an interruption is the control.
func TestAnEndSaysWhy(t *testing.T) {
	for want, why := range map[string]error{"interrupted": nil, "nothing came": &Ending{"nothing came"}} {
		ctx, end := context.WithCancelCause(t.Context())
		end(why)
		log := audit.NewMemory()
		r := Launch(ctx, specOf(t, log))
		last := log.Events[len(log.Events)-1]
		if r.Outcome != Cancelled || r.ExitCode != StatusCancelled || !strings.Contains(r.Message, want) ||
			last.Message != r.Message || last.Outcome != string(Cancelled) {
			t.Errorf("%s: %s, %q, recorded %q", want, r.Outcome, r.Message, last.Message)
		}
	}
}

// A run that ends at a limit which its bundle asked more of says so, and what to
// write; control: what the bundle asked for holds.
func TestAnEndSaysThatTheBundleAskedForMore(t *testing.T) {
	const asks = "; the bundle asks for memory_bytes = 512, and gets 256, "
	layer := func(name string, n int64) *caps.Layer {
		return &caps.Layer{Name: name, Limits: caps.Limits{}.With(caps.MemoryBytes, n)}
	}
	for _, c := range []struct {
		policy Policy
		given  int64
		want   string
	}{
		{Policy{}, 256, asks + "the default; to give it, write memory_bytes = 512 under [limits] in its override"},
		{
			Policy{Layers: []*caps.Layer{layer("config", 256), layer("override:x.toml", 1024)}},
			256,
			asks + "by config; to give it, write memory_bytes = 512 under [limits] there",
		},
		{
			Policy{Layers: []*caps.Layer{layer("config", 300), layer("override:x.toml", 256)}},
			256,
			asks + "by config and override:x.toml; to give it, write memory_bytes = 512 under [limits] there",
		},
		{Policy{Layers: []*caps.Layer{layer(CallerLayer, 256)}}, 256, asks + "by caller"},
		{Policy{Layers: []*caps.Layer{layer("token:ci", 256)}, Asked: 1}, 256, asks + "by token:ci"},
		{Policy{Within: layer("parent", 256)}, 256, asks + "by parent"},
		{Policy{}, 512, ""},
	} {
		c.policy.BaseLimits = caps.Limits{}.With(caps.MemoryBytes, 512)
		r := newRun(&Spec{Policy: c.policy}, Plan{})
		r.report.Outcome = Memory
		r.plan.Limits = caps.Limits{}.With(caps.MemoryBytes, c.given)
		if got, _ := strings.CutPrefix(r.endMessage(guest.End{Kind: guest.Memory}),
			"the guest asked for more than limits.memory_bytes = "+strconv.FormatInt(c.given, 10)); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	r := newRun(&Spec{Policy: Policy{BaseLimits: caps.Limits{}.With(caps.MemoryBytes, 512)}}, Plan{})
	r.report.Outcome, r.scarce = Memory, true
	r.plan.Limits = caps.Limits{}.With(caps.MemoryBytes, 256)
	if got := r.endMessage(guest.End{Kind: guest.Memory}); strings.Contains(got, "override") {
		t.Errorf("no override gives what the process has not: %q", got)
	}
}
