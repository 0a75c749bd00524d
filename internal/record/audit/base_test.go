package audit

import "testing"

func TestByBase(t *testing.T) {
	for _, c := range []struct {
		layer, reason string
		base          bool
	}{
		{"", "cap_missing", true},
		{"", "path_not_permitted", true},
		{"", "not_in_base", true},
		{"base", "unavailable", true},
		{"", "address_not_permitted", false},
		{"", "rate_limited", false},
		{"", "budget_exhausted", false},
		{"", "unavailable", false},
		{"override:a.toml", "path_not_permitted", false},
	} {
		if is := ByBase(c.layer, c.reason); is != c.base {
			t.Errorf("%q, %q: %t", c.layer, c.reason, is)
		}
	}
}
