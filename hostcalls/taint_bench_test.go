package hostcalls

import (
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
)

// What it costs to narrow a run that is marked, the record in its journal
// included. Without the record it is the gate's own benchmark.
func BenchmarkTaintRecorded(b *testing.B) {
	j, err := journal.Create(journal.Options{Dir: b.TempDir() + "/journal", Head: audit.Head{RunID: "bench"}})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	g, err := caps.ParseGrant("kb:write:notes")
	if err != nil {
		b.Fatal(err)
	}
	set, err := caps.Base([]caps.Entry{{Grant: g}}, caps.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	floor := &caps.Layer{
		Name: "_untrusted", Because: caps.UntrustedContext,
		Deny: []caps.Entry{{Grant: caps.Grant{Family: caps.KBWrite, Modes: 1, Scope: "*"}}},
	}
	gates := make([]*gate.Gate, b.N)
	for i := range gates {
		if gates[i], err = gate.New(set, j, gate.Options{MaxCalls: -1, Floor: floor}); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for _, g := range gates {
		if err := g.Taint("http:https://evil.example/page"); err != nil {
			b.Fatal(err)
		}
	}
}
