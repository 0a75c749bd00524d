package run

import (
	"slices"
	"testing"

	"runloop.dev/rlp/caps"
)

// What one plan leaves and another does not is listed limit by limit and grant by
// grant; what differs in neither is said to be in the leases or constraints.
func TestWhatAPlanLeavesBeyondAnother(t *testing.T) {
	base := entriesOf(t, "kb:read:notes", "fs:read:/a")
	limit := func(n int64) *caps.Layer {
		return &caps.Layer{Name: "o", Limits: caps.Limits{}.With(caps.NetBytes, n)}
	}
	lease := &caps.Layer{Name: "o", Leases: []caps.Lease{{
		Entry: entryOf(t, "kb:read:notes"), Expires: caps.Forever,
		MaxUses: 1,
	}}}
	for name, c := range map[string]struct {
		is, may *caps.Layer
		want    []string
	}{
		"the same": {limit(5), limit(5), nil},
		"more":     {limit(6), limit(5), []string{"[limits] net_bytes = 6, now 5"}},
		"any":      {&caps.Layer{Name: "o"}, limit(5), []string{"[limits] net_bytes, now 5"}},
		"a grant":  {&caps.Layer{Name: "o"}, denying(t, "kb:read:notes"), []string{"kb:read:notes"}},
		"a use":    {&caps.Layer{Name: "o"}, lease, []string{"[leases] or [constraints]"}},
		"a grant and a use": {&caps.Layer{Name: "o"}, &caps.Layer{
			Name: "o", Leases: lease.Leases,
			Deny: entriesOf(t, "fs:read:/a"),
		}, []string{"fs:read:/a"}},
	} {
		is, err := NewPlan(Policy{Base: base, Layers: []*caps.Layer{c.is}})
		must(t, err)
		may, err := NewPlan(Policy{Base: base, Layers: []*caps.Layer{c.may}})
		must(t, err)
		if got := is.Beyond(may); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
