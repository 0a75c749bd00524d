package gate

import (
	"errors"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
)

// A disk is a log of which only what was synced is there after the power failed.
type disk struct {
	*audit.Memory
	kept  int // decisions on disk
	syncs int
	fails error
}

func (d *disk) Sync() error {
	if d.fails != nil {
		return d.fails
	}
	d.syncs++
	d.kept = len(d.Decisions)
	return nil
}

var everything = []string{
	"fs:read:/", "fs:write:/", "fs:delete:/", "network:https:example.org", "time:read:*", "kb:read:notes",
	"kb:write:notes",
	"secrets:read:runloop/a/b", "model:use:*", "process:exec:/bin/true", "env:read:PATH", "mcp:call:github",
	"agents:launch:critic",
}

// requestsOf are requests of every family and mode, each of which everything allows.
func requestsOf(set caps.Set) []caps.Request {
	var list []caps.Request
	for _, g := range set.Grants() {
		for m := caps.Mode(0); caps.AllModes(g.Family).Has(m); m++ {
			name := g.Scope
			if g.Family == caps.Secrets && m == caps.Use {
				name += "@example.org:443"
			}
			if r := (caps.Request{Family: g.Family, Mode: m, Name: name}); set.Check(r).Allow {
				list = append(list, r)
			}
		}
	}
	return list
}

// Before a call of any family goes on its record is on disk, as far as the
// durability promises it; where it does not, the record is not waited for, which
// is the control.
func TestRecordsAreOnDiskBeforeTheCall(t *testing.T) {
	set := baseOf(t, everything...)
	requests := requestsOf(set)
	seen := map[caps.Family]bool{}
	for _, d := range []audit.Durability{audit.PerRun, audit.PerEffect, audit.PerRecord} {
		log := &disk{Memory: audit.NewMemory()}
		opt := keepAll
		opt.Durability = d
		g, err := New(set, log, opt)
		if err != nil {
			t.Fatal(err)
		}
		op := opOf(t, g, "op")
		admit := func(r caps.Request, allow, want bool) {
			t.Helper()
			for range 2 { // the second is what a repetition of the first would be
				before := log.syncs
				a := g.Admit(op, r, r.Name, nil)
				if a.OK() != allow {
					t.Fatalf("%s: %v is allowed: %v", d, r, a.OK())
				}
				if synced := log.syncs > before; synced != want || want && log.kept != len(log.Decisions) {
					t.Errorf("%s: %v, allowed %v: synced %v, want %v; %d of %d on disk", d, r, allow, synced, want, log.kept,
						len(log.Decisions))
				}
				if g.Again(&a) && want {
					t.Errorf("%s: %v is repeated without a barrier", d, r)
				}
			}
		}
		for _, r := range requests {
			seen[r.Family] = true
			admit(r, true, d == audit.PerRecord || d == audit.PerEffect && caps.Acts(r.Family, r.Mode))
		}
		admit(caps.Request{Family: caps.KBWrite, Name: "contacts"}, false, d == audit.PerRecord)
		before := log.syncs
		if !g.Give(op, caps.Request{Family: caps.Env, Name: "PATH"}, "PATH") ||
			(log.syncs > before) != (d == audit.PerRecord) {
			t.Errorf("%s: a variable: %d syncs", d, log.syncs-before)
		}
	}
	for f := range caps.NumFamilies {
		if !seen[f] {
			t.Errorf("no request of %s was tried", f)
		}
	}
}

// A record that cannot be brought to the disk denies the call and shuts the gate.
func TestADiskThatFailsDenies(t *testing.T) {
	for _, fails := range []bool{false, true} {
		log := &disk{Memory: audit.NewMemory()}
		opt := keepAll
		opt.Durability = audit.PerEffect
		g, err := New(baseOf(t, everything...), log, opt)
		if err != nil {
			t.Fatal(err)
		}
		op := opOf(t, g, "path_open")
		if fails {
			log.fails = errors.New("the disk is gone")
		}
		if a := g.Admit(op, readNote, readNote.Name, nil); !a.OK() || g.Err() != nil {
			t.Fatalf("reading waits for no disk: %v %v", a.OK(), g.Err())
		}
		a := g.Admit(op, writeNote, writeNote.Name, nil)
		if a.OK() == fails || a.Permit.OK() == fails {
			t.Errorf("the disk fails: %v; writing is allowed: %v", fails, a.OK())
		}
		if !fails { // the control
			continue
		}
		if a.Denial.Code != caps.AuditUnavailable || !errors.Is(g.Err(), log.fails) {
			t.Errorf("refused for %s, %v", a.Denial.Code, g.Err())
		}
		if a := g.Admit(op, readNote, readNote.Name, nil); a.OK() {
			t.Error("the gate is open again")
		}
	}
}
