package run

import (
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/wasi"
)

// A run that loses time in the middle, by its family or by the call's name, sees
// no more of it: its clocks go on from where they were, by what it does, and
// never back. With time it has the host's again. The loss is recorded.
//
//rlp:holds Y57 C11
func TestClocksStopWhenTimeIsTakenAway(t *testing.T) {
	for name, lost := range map[string]*caps.Layer{
		"the family": denying(t, "time:read:*"),
		"the call": {
			Name: "override:a.toml",
			Deny: []caps.Entry{{Grant: caps.Grant{Family: caps.Tool, Modes: 1, Scope: "time:clock_time_get"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := talkOf(t, "time:read:*")
			clock, used := k.run.clock()
			last := uint64(0)
			now := func() time.Time {
				t.Helper()
				mono, _ := clock.Now(wasi.Monotonic)
				if mono < last {
					t.Errorf("monotonic time went back from %d to %d", last, mono)
				}
				last = mono
				ns, errno := clock.Now(wasi.Realtime)
				if errno != wasi.Success {
					t.Fatal(errno)
				}
				return time.Unix(0, int64(ns))
			}
			if err := used("clock_time_get", false); err != nil {
				t.Fatal(err)
			}
			before := now()
			if d := time.Since(before); d < 0 || d > time.Hour {
				t.Fatalf("control: with time the clock is %v off", d)
			}
			if _, err := k.run.gate.Reload("turn", []*caps.Layer{lost}); err != nil {
				t.Fatal(err)
			}
			if err := clock.Sleep(t.Context(), 24*time.Hour); err != nil { // which takes no time
				t.Fatal(err)
			}
			if d := now().Sub(before); d < 24*time.Hour || d > 24*time.Hour+time.Minute {
				t.Errorf("without time the clock went on by %v and not by the guest's sleep", d)
			}
			rec := k.log.Decisions[len(k.log.Decisions)-1]
			if len(k.log.Decisions) != 2 || !rec.Deny || rec.Layer != "override:a.toml" || rec.Cap != "time.now" {
				t.Errorf("%d records, the last %+v", len(k.log.Decisions), rec)
			}
			if _, err := k.run.gate.Reload("turn", nil); err != nil {
				t.Fatal(err)
			}
			if d := time.Until(now()).Abs(); d > time.Hour {
				t.Errorf("with time again the clock is %v off", d)
			}
		})
	}
}

// A call that is hidden from the beginning tells no time.
func TestAHiddenClockTellsNothing(t *testing.T) {
	k := talkOf(t, "time:read:*")
	hidden := &caps.Layer{Name: "a", Deny: []caps.Entry{{Grant: caps.Grant{Family: caps.Tool, Modes: 1, Scope: "time:*"}}}}
	for _, hide := range []bool{false, true} {
		if hide {
			var err error
			if k.run.plan.Effective, _, err = k.run.plan.Effective.Narrow(hidden); err != nil {
				t.Fatal(err)
			}
		}
		clock, _ := k.run.clock()
		ns, _ := clock.Now(wasi.Realtime)
		if off := time.Since(time.Unix(0, int64(ns))); (off > time.Hour) != hide {
			t.Errorf("hidden %v: the clock is %v off", hide, off)
		}
	}
}
