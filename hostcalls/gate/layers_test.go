package gate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/record/audit"
)

var grants = []caps.Grant{
	{Family: caps.FS, Modes: 7, Scope: "/a"},
	{Family: caps.FS, Modes: 1, Scope: "/a/b"},
	{Family: caps.FS, Modes: 6, Scope: "/x"},
	{Family: caps.Net, Modes: caps.HTTPS, Scope: "a.example:443"},
	{Family: caps.Net, Modes: 3, Scope: "*"},
	{Family: caps.Net, Modes: caps.HTTPS, Scope: "*.example:443"},
	{Family: caps.KBRead, Modes: 1, Scope: "notes"},
	{Family: caps.KBWrite, Modes: 1, Scope: "*"},
	{Family: caps.Secrets, Modes: 2, Scope: "runloop/a/k@a.example:443"},
	{Family: caps.Secrets, Modes: 3, Scope: "runloop/a/k"},
	{Family: caps.Exec, Modes: 1, Scope: "*"},
}

func drawLayer(t *rapid.T, name string) *caps.Layer {
	l := &caps.Layer{Name: name}
	entry := func(g caps.Grant, line int) caps.Entry {
		return caps.Entry{Grant: g, Pos: caps.Pos{
			File: rapid.SampledFrom([]string{"o.toml", "--deny x"}).Draw(t, "file"),
			Line: line, Column: 3,
		}}
	}
	some := rapid.SliceOfN(rapid.SampledFrom(append(grants[:len(grants):len(grants)], caps.Grant{
		Family: caps.Tool,
		Modes:  1, Scope: "web:*",
	})), 0, 4)
	for i, g := range some.Draw(t, "allow") {
		l.Allow = append(l.Allow, entry(g, i+1))
		l.Bounds = append(l.Bounds, caps.Bound{
			Family: g.Family, Modes: caps.AllModes(g.Family) & 7,
			Pos: caps.Pos{File: "o.toml", Line: i + 1},
		})
	}
	for i, g := range some.Draw(t, "deny") {
		l.Deny = append(l.Deny, entry(g, i+100))
	}
	for i, g := range some.Draw(t, "spare") {
		l.Spare = append(l.Spare, entry(g, i+200))
	}
	if rapid.Bool().Draw(t, "more") {
		l.Limits = l.Limits.With(caps.CPUFuel, 0)
		l.Constraints = l.Constraints.With(caps.NetMinTLS, 13)
		l.Leases = []caps.Lease{{Entry: entry(grants[0], 300), Expires: caps.Forever, MaxUses: 0}}
		l.Because = caps.DelegateFloor
	}
	return l
}

// What a record holds of its layers decides everything as they did, and names
// the same lines.
func TestRecordedLayersAreTheLayers(t *testing.T) {
	codec, err := audit.NewCodec()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		var entries []caps.Entry
		for _, g := range rapid.SliceOfN(rapid.SampledFrom(grants), 0, 6).Draw(t, "base") {
			entries = append(entries, caps.Entry{Grant: g})
		}
		base, err := caps.Base(entries, caps.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		layers := []*caps.Layer{drawLayer(t, "protected"), drawLayer(t, "override:o.toml")}
		p, err := codec.Marshal(&audit.Event{Kind: audit.KindRunStart, Layers: gate.Recorded(base, layers)})
		if err != nil {
			t.Fatal(err)
		}
		var e audit.Event
		if err := codec.Unmarshal(p, &e); err != nil {
			t.Fatal(err)
		}
		want, got := base, base
		for _, l := range layers {
			if want, _, err = want.Narrow(l); err != nil {
				t.Fatal(err)
			}
		}
		for i := range e.Layers {
			l, err := gate.ReadLayer(&e.Layers[i])
			if err != nil {
				t.Fatal(err)
			}
			if got, _, err = got.Narrow(l); err != nil {
				t.Fatal(err)
			}
		}
		if want.Digest() != got.Digest() {
			t.Fatalf("%v\n%v", want, got)
		}
		for _, r := range []caps.Request{
			{Family: caps.FS, Mode: caps.Write, Name: "/a/b/c"},
			{Family: caps.Net, Name: "a.example:443"},
			{Family: caps.Exec, Name: "/bin/x"},
		} {
			a, b := want.Explain(r), got.Explain(r)
			if a.Allow != b.Allow || a.Code != b.Code || base.Check(r).Allow && refusals(a) != refusals(b) {
				t.Fatalf("%s: %+v\n%+v", r, a, b)
			}
		}
	})
}

func refusals(e caps.Explanation) string {
	text := ""
	for _, v := range e.Votes {
		if !v.Allow {
			text += v.Layer + " " + v.Pos.String() + "\n"
		}
	}
	return text
}

// A record is small: what is about nothing that was granted is not in it, the
// built-in floor is there by its name, and very many entries are cut, and said
// to be.
func TestRecordedLayersAreSmall(t *testing.T) {
	base, err := caps.Base([]caps.Entry{{Grant: caps.Grant{Family: caps.FS, Modes: 7, Scope: "/work"}}}, caps.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	protected := &caps.Layer{
		Name: "protected",
		Deny: []caps.Entry{
			{Grant: caps.Grant{Family: caps.FS, Modes: 7, Scope: "/proc"}},
			{Grant: caps.Grant{Family: caps.FS, Modes: 7, Scope: "/workshop"}},
		},
	}
	exec := &caps.Layer{
		Name: "override:o.toml",
		Deny: []caps.Entry{{Grant: caps.Grant{Family: caps.Exec, Modes: 1, Scope: "*"}}},
	}
	if got := gate.Recorded(base, []*caps.Layer{protected, exec, {Name: "caller"}}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	big := &caps.Layer{Name: "big"}
	for i := range 5000 {
		big.Deny = append(big.Deny, caps.Entry{Grant: caps.Grant{Family: caps.FS, Modes: 2, Scope: "/srv/" +
			strings.Repeat("x", i%50) + "/y"}})
	}
	if got := gate.Recorded(base, []*caps.Layer{big}); len(got) != 1 || !got[0].Left || len(got[0].Deny) != 4096 {
		t.Errorf("%d layers", len(got))
	}
	floor := &caps.Layer{
		Name: "_untrusted", Because: caps.UntrustedContext,
		Deny: []caps.Entry{{
			Grant: caps.Grant{Family: caps.Exec, Modes: 1, Scope: "*"},
			Pos:   caps.Pos{File: "_untrusted.toml (built-in)"},
		}},
	}
	if p, err := json.Marshal(gate.RecordedFloor(floor)); err != nil ||
		string(p) != `{"name":"_untrusted","because":"untrusted_context","file":"_untrusted.toml (built-in)"}` {
		t.Errorf("%s, %v", p, err)
	}
	floor.Deny[0].Pos = caps.Pos{File: "/home/u/.runloop/caps/profiles/_untrusted.toml", Line: 3, Column: 2}
	if got := gate.RecordedFloor(floor); len(got.Deny) != 1 || got.Deny[0].Line != 3 {
		t.Errorf("%+v", got)
	}
	if gate.RecordedFloor(nil) != nil {
		t.Error("a floor out of nothing")
	}
}
