package run

import (
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
)

// A plan that cannot be made says of what; the limits of a base are recorded as a
// layer of its own, where it has any.
func TestWhatPlansSay(t *testing.T) {
	bad := []caps.Entry{{Grant: caps.Grant{Family: caps.FS, Modes: 1, Scope: "no path"}}}
	for why, p := range map[string]Policy{
		"planning: ":           {Base: bad},
		"planning: applying l": {Layers: []*caps.Layer{{Name: "l", Deny: bad}}},
	} {
		if _, err := NewPlan(p); err == nil || !strings.HasPrefix(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
	l := &caps.Layer{Name: "l"}
	limits := caps.Limits{}.With(caps.CPUFuel, 7)
	if got := (Policy{Layers: []*caps.Layer{l}}).recorded(); !slices.Equal(got, []*caps.Layer{l}) {
		t.Errorf("without limits: %v", got)
	}
	if got := (Policy{Layers: []*caps.Layer{l}, BaseLimits: limits}).recorded(); len(got) != 2 || got[0].Name != "base" ||
		got[0].Limits != limits || got[1] != l {
		t.Errorf("with limits: %v", got)
	}
	plan := Plan{Changes: []caps.Change{{Layer: "a", Kind: caps.Revoked}, {Layer: "b", Kind: caps.Ignored}}}
	if got := plan.Ignored(); len(got) != 1 || got[0].Layer != "b" {
		t.Errorf("ignored: %v", got)
	}
}

// What is read of an untrusted folder is not given out where the mark cannot be
// recorded.
//
//rlp:holds Y28
func TestNothingUntrustedIsReadUnrecorded(t *testing.T) {
	for _, full := range []bool{false, true} {
		log := audit.NewMemory()
		s := marking(t, true, caps.Limits{}, say(results+24, 8)...)
		s.OpenJournal = func(audit.Head) (Journal, error) { return log, nil }
		if full {
			log.Room = 2 // for the beginning of the run, and for what is decided of the folder
		}
		r := Launch(t.Context(), s)
		if (r.Outcome == OK) == full || (len(r.Stdout) == 16) == full {
			t.Errorf("full %v: %s %s, printed %q", full, r.Outcome, r.Message, r.Stdout)
		}
	}
}
