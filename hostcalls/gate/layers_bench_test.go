package gate_test

import (
	"fmt"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/record/audit"
)

// BenchmarkRecorded is what a launch pays to have its layers in its record: of a
// plain launch, and of one with 20 layers of 1,000 entries.
func BenchmarkRecorded(b *testing.B) {
	codec, err := audit.NewCodec()
	if err != nil {
		b.Fatal(err)
	}
	base, err := caps.Base([]caps.Entry{
		{Grant: caps.Grant{Family: caps.FS, Modes: 7, Scope: "/srv/out"}},
		{Grant: caps.Grant{Family: caps.KBWrite, Modes: 1, Scope: "drafts"}},
	}, caps.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	protected := &caps.Layer{Name: "protected"}
	for _, p := range []string{"/proc", "/sys", "/dev", "/home/u/.runloop", "/srv/bundle", "/usr/bin/rlp"} {
		protected.Deny = append(protected.Deny, caps.Entry{Grant: caps.Grant{Family: caps.FS, Modes: 7, Scope: p}})
	}
	plain := []*caps.Layer{protected, {Name: "config"}, {Name: "caller"}}
	many := []*caps.Layer{protected}
	for l := range 20 {
		big := &caps.Layer{Name: fmt.Sprintf("profile:p%d", l)}
		for i := range 1000 {
			big.Deny = append(big.Deny, caps.Entry{Grant: caps.Grant{
				Family: caps.FS, Modes: 2,
				Scope: fmt.Sprintf("/srv/out/%d/%d", l, i),
			}, Pos: caps.Pos{File: "p.toml", Line: i + 1, Column: 3}})
		}
		many = append(many, big)
	}
	for name, layers := range map[string][]*caps.Layer{"plain": plain, "20x1000": many} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				p, err := codec.Marshal(&audit.Event{Kind: audit.KindRunStart, Layers: gate.Recorded(base, layers)})
				if err != nil {
					b.Fatal(err)
				}
				n = len(p)
			}
			b.ReportMetric(float64(n), "bytes")
		})
	}
}
