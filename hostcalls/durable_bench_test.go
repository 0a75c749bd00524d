package hostcalls

import (
	"os"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
)

// BenchmarkDurability is a decision with its record in a run's journal: of a call
// that only reads and of one that changes something, under each durability.
//
//	go test -c -o /tmp/hc.test ./hostcalls && /tmp/hc.test -test.run '^$' -test.bench Durability -test.benchtime 3000x
//
// -test.count 5
func BenchmarkDurability(b *testing.B) {
	set, err := caps.Base([]caps.Entry{
		{Grant: caps.Grant{Family: caps.FS, Modes: caps.Modes(caps.Read, caps.Write), Scope: "/srv"}},
	}, caps.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("floor", func(b *testing.B) { // a file synced after each 64 bytes
		f, err := os.Create(b.TempDir() + "/file")
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		for b.Loop() {
			if _, err := f.Write(make([]byte, 64)); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, d := range []audit.Durability{audit.PerRun, audit.PerEffect, audit.PerRecord} {
		for name, mode := range map[string]caps.Mode{"read": caps.Read, "write": caps.Write} {
			b.Run(d.String()+"/"+name, func(b *testing.B) {
				j, err := journal.Create(journal.Options{
					Dir: b.TempDir() + "/journal", Head: audit.Head{RunID: "bench"}, Synced: d != audit.PerRun, MaxDecisions: 1 << 31,
					MaxBytes: 64 << 30,
				})
				if err != nil {
					b.Fatal(err)
				}
				defer j.Close()
				g, err := gate.New(set, j, gate.Options{KeepAllowed: true, KeepDenied: true, MaxCalls: -1, Durability: d})
				if err != nil {
					b.Fatal(err)
				}
				op, err := g.Op("path_open")
				if err != nil {
					b.Fatal(err)
				}
				// two that take turns: no record is a repetition
				names := [2]string{"/srv/notes/2026-01.md", "/srv/notes/2026-02.md"}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					r := caps.Request{Family: caps.FS, Mode: mode, Name: names[i&1]}
					if a := g.Admit(op, r, r.Name, nil); !a.OK() {
						b.Fatal("denied")
					}
				}
			})
		}
	}
}
