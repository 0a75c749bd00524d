package caps_test

import (
	"testing"

	"runloop.dev/rlp/caps"
)

// What others came to is named only where nothing else refuses: its reasons are
// elsewhere. What is decided is the same.
func TestASumIsNamedLast(t *testing.T) {
	grant := func(text string) caps.Entry {
		g, err := caps.ParseGrant(text)
		if err != nil {
			t.Fatal(err)
		}
		return caps.Entry{Grant: g}
	}
	base := []caps.Entry{grant("kb:write:notes"), grant("kb:write:drafts"), grant("kb:write:events")}
	parent := &caps.Layer{Name: caps.SumPrefix + "a", Sum: true, Deny: base[:2]}
	floor := &caps.Layer{Name: "_untrusted", Because: caps.UntrustedContext, Deny: base[1:]}
	for domain, want := range map[string]string{
		"notes": "parent:a cap_missing", "drafts": "_untrusted untrusted_context",
		"events": "_untrusted untrusted_context",
	} {
		set, err := caps.Base(base, caps.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []*caps.Layer{parent, floor} {
			if set, _, err = set.Narrow(l); err != nil {
				t.Fatal(err)
			}
		}
		r := caps.Request{Family: caps.KBWrite, Name: domain}
		d := set.Check(r)
		if got := set.LayerName(d.Layer) + " " + d.Code.String(); d.Allow || got != want {
			t.Errorf("%s: %v %s, want %s", domain, d.Allow, got, want)
		}
	}
}
