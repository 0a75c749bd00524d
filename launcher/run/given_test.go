package run

import (
	"context"
	"slices"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/record/audit"
)

// withVariables is a run that is granted FOO and BAR, which are set.
func withVariables(t *testing.T, layers ...*caps.Layer) (*Spec, *audit.Memory) {
	t.Helper()
	log := audit.NewMemory()
	spec := specOf(t, log, "env:read:FOO", "env:read:BAR")
	spec.Env = func(name string) (string, bool) { return "of " + name, true }
	spec.Policy.Layers = layers
	return spec, log
}

// given says which variables a run was given, by its records.
func given(log *audit.Memory) (allowed, denied []string) {
	for _, d := range log.Decisions {
		switch {
		case d.Cap != "env.read":
		case d.Deny:
			denied = append(denied, d.Target+" "+d.Reason)
		default:
			allowed = append(allowed, d.Target)
		}
	}
	slices.Sort(allowed)
	slices.Sort(denied)
	return allowed, denied
}

func hiding(scope string) *caps.Layer {
	return &caps.Layer{
		Name: "profile:p",
		Deny: []caps.Entry{{Grant: caps.Grant{Family: caps.Tool, Modes: 1, Scope: scope}}},
	}
}

// The environment is a host call like any other, though the host makes it: who
// hides environ_get hides the variables, a lease that is over or used up gives
// none, and what marks the run before it begins counts.
//
//rlp:holds Y13
func TestVariablesPassTheGate(t *testing.T) {
	lease := func(expires, uses int64) *caps.Layer {
		return &caps.Layer{Name: "override:a.toml", Leases: []caps.Lease{{
			Entry: entryOf(t, "env:read:FOO"), Expires: expires,
			MaxUses: uses,
		}}}
	}
	for name, c := range map[string]struct {
		layer           *caps.Layer
		allowed, denied []string
	}{
		"control":      {nil, []string{"BAR", "FOO"}, nil},
		"the call":     {hiding("env:environ_get"), nil, []string{"BAR tool_hidden", "FOO tool_hidden"}},
		"the category": {hiding("env:*"), nil, []string{"BAR tool_hidden", "FOO tool_hidden"}},
		"another call": {hiding("file:path_open"), []string{"BAR", "FOO"}, nil},
		"no use":       {lease(caps.Forever, 0), []string{"BAR"}, []string{"FOO lease_expired"}},
		"one use":      {lease(caps.Forever, 1), []string{"BAR", "FOO"}, nil},
		"over":         {lease(1, caps.Unbounded), []string{"BAR"}, []string{"FOO lease_expired"}},
	} {
		t.Run(name, func(t *testing.T) {
			var layers []*caps.Layer
			if c.layer != nil {
				layers = append(layers, c.layer)
			}
			spec, log := withVariables(t, layers...)
			if r := Launch(t.Context(), spec); r.Outcome != OK {
				t.Fatalf("%s: %s", r.Outcome, r.Message)
			}
			allowed, denied := given(log)
			if !slices.Equal(allowed, c.allowed) || !slices.Equal(denied, c.denied) {
				t.Errorf("given %v, denied %v; want %v, %v", allowed, denied, c.allowed, c.denied)
			}
		})
	}
	t.Run("marked by its input", func(t *testing.T) {
		for _, marked := range []bool{false, true} {
			spec, log := withVariables(t)
			spec.Input = []byte(`"x"`)
			spec.Taint.Floor = &caps.Layer{
				Name: "_untrusted", Because: caps.UntrustedContext,
				Deny: []caps.Entry{entryOf(t, "env:read:FOO")},
			}
			if marked {
				spec.Taint.Untrusted = []caps.Source{{Word: caps.SourceInput}}
			}
			Launch(t.Context(), spec)
			if _, denied := given(log); slices.Contains(denied, "FOO untrusted_context") != marked {
				t.Errorf("marked %v: denied %v", marked, denied)
			}
		}
	})
}

// What is recorded of a clock is what the guest sees of it: no use that a lease
// or a limit leaves is no time.
func TestADeniedClockTellsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		uses, calls int64
		real        bool
	}{
		"control": {caps.Unbounded, -1, true}, "no use": {0, -1, false}, "one use": {1, -1, true},
		"no call": {caps.Unbounded, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := talkOf(t, "time:read:*")
			lease := &caps.Layer{Name: "a", Leases: []caps.Lease{{
				Entry: entryOf(t, "time:read:*"), Expires: caps.Forever,
				MaxUses: c.uses,
			}}}
			must(t, k.run.gate.Hold(lease))
			k.run.gate.Bound(c.calls)
			clock, used := k.run.clock()
			must(t, used("clock_time_get", false))
			for range 2 {
				ns, _ := clock.Now(wasi.Realtime)
				if d := time.Since(time.Unix(0, int64(ns))); (d < time.Hour) != c.real {
					t.Errorf("the clock is %v off", d)
				}
			}
			if n := len(k.log.Decisions); n != 1 || k.log.Decisions[0].Deny == c.real {
				t.Errorf("%d records, the first %+v", n, k.log.Decisions[0])
			}
			must(t, k.run.gate.Hold(denying(t, "kb:read:notes"))) // anything that changes what is held
			ns, _ := clock.Now(wasi.Realtime)
			if d := time.Since(time.Unix(0, int64(ns))); (d < time.Hour) != c.real {
				t.Errorf("after a swap the clock is %v off", d)
			}
		})
	}
}

// The limits of a floor hold once the run is marked, and not before.
func TestAFloorsLimitsHoldOnceTheRunIsMarked(t *testing.T) {
	for _, marked := range []bool{false, true} {
		k := talkOf(t, "kb:read:notes")
		floor := &caps.Layer{Name: "_untrusted", Because: caps.UntrustedContext, Limits: caps.Limits{}.With(caps.HostcallsMax,
			3)}
		spec, _ := withVariables(t)
		spec.Taint.Floor = floor
		k.run.spec.Taint.Floor = floor
		r := k.run
		r.spec.OpenJournal = spec.OpenJournal
		must(t, r.open())
		call := r.floored([]abi.Func{{Call: func(context.Context, []byte, []uint64) error {
			r.gate.Spend()
			if marked {
				return r.gate.Taint("http:https://evil.example/")
			}
			return nil
		}}})[0].Call
		for range 5 {
			must(t, call(t.Context(), nil, nil))
		}
		if left := r.gate.Spend(); left == marked {
			t.Errorf("marked %v: a sixth call is allowed: %v", marked, left)
		}
	}
}

// What was opened goes with the call that opened it: hidden in the middle of a
// run, it leaves no descriptor to read from.
//
//rlp:holds Y13
func TestOpenFilesGoWithTheirCall(t *testing.T) {
	for scope, gone := range map[string]bool{
		"file:path_open": true, "file:*": true, "file:path_rename": false,
		"web:*": false,
	} {
		dir, fs, g := files(t)
		f, e := fs.Open(dir+"/own/c.txt", false, wasi.OpenFlags{Read: true})
		if e != 0 {
			t.Fatal(e)
		}
		if _, err := g.Reload("turn", []*caps.Layer{hiding(scope)}); err != nil {
			t.Fatal(err)
		}
		if _, e := f.Read(make([]byte, 1)); (e == wasi.EACCES) != gone || gone && g.reason() != "tool_hidden" {
			t.Errorf("%s hidden: errno %d, %s", scope, e, g.reason())
		}
		if _, err := g.Reload("turn", nil); err != nil {
			t.Fatal(err)
		}
		if _, e := f.Read(make([]byte, 1)); e != wasi.Success {
			t.Errorf("%s shown again: errno %d", scope, e)
		}
		_ = f.Close()
	}
}
