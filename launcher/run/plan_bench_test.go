package run_test

import (
	"fmt"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/launcher/run"
)

// manyEntries are n grants as operators write them: folders mostly, and hosts.
func manyEntries(n, from int) []caps.Entry {
	var list []caps.Entry
	for i := range n {
		g := caps.Grant{Family: caps.FS, Modes: 1 << caps.Read, Scope: fmt.Sprintf("/srv/data/%d/%d", (from+i)%40, from+i)}
		switch i % 5 {
		case 3:
			g = caps.Grant{Family: caps.Net, Modes: caps.HTTPS, Scope: fmt.Sprintf("h%d.example.org:443", from+i)}
		case 4:
			g = caps.Grant{Family: caps.Env, Modes: 1, Scope: fmt.Sprintf("V%d", from+i)}
		}
		list = append(list, caps.Entry{Grant: g, Pos: caps.Pos{File: "/home/u/.runloop/caps/profiles/x.toml", Line: from + i +
			1, Column: 5}})
	}
	return list
}

// BenchmarkPlan is a launch with 20 layers of 1,000 entries on a base of 1,000:
// all of them name what the base has, or each one also names 500 things of its own.
func BenchmarkPlan(b *testing.B) {
	for name, own := range map[string]int{"same": 0, "own": 500} {
		b.Run(name, func(b *testing.B) {
			p := run.Policy{Base: manyEntries(1000, 0)}
			for i := range 20 {
				l := &caps.Layer{Name: fmt.Sprintf("profile:p%d", i), Allow: append(manyEntries(1000-own, 0),
					manyEntries(own, 1000*(i+1))...)}
				for _, f := range []caps.Family{caps.FS, caps.Net, caps.Env} {
					l.Bounds = append(l.Bounds, caps.Bound{Family: f, Modes: caps.AllModes(f)})
				}
				p.Layers = append(p.Layers, l)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := run.NewPlan(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
