package gate

import (
	"testing"

	"runloop.dev/rlp/caps"
)

// An answer is worth nothing once the run holds something else: whatever narrows
// it, and a reload that leaves it the same, has the request judged anew. The
// control is the same answer, given out without looking at what is held: it still
// permits what was taken away.
//
//rlp:holds C20
func TestAnAnswerDoesNotOutliveWhatIsHeld(t *testing.T) {
	less := &caps.Layer{Name: "taint", Deny: []caps.Entry{entry(t, "fs:read:/notes")}}
	leased := func(uses, until int64) *caps.Layer {
		l := caps.Lease{Entry: entry(t, "fs:read:/notes"), MaxUses: uses, Expires: until}
		return &caps.Layer{Name: "lease", Leases: []caps.Lease{l}}
	}
	for name, c := range map[string]struct {
		change func(g *Gate) error
		allows int // how many more requests, of three
	}{
		"nothing":              {func(*Gate) error { return nil }, 3},
		"hold":                 {func(g *Gate) error { return g.Hold(less) }, 0},
		"reload":               {func(g *Gate) error { _, err := g.Reload("turn", []*caps.Layer{less}); return err }, 0},
		"reload to the same":   {func(g *Gate) error { _, err := g.Reload("turn", nil); return err }, 3},
		"taint":                {func(g *Gate) error { return g.Taint("http:evil.example") }, 0},
		"a lease of one use":   {func(g *Gate) error { return g.Hold(leased(1, caps.Forever)) }, 1},
		"a lease that is over": {func(g *Gate) error { return g.Hold(leased(caps.Unbounded, 1)) }, 0},
		"a budget":             {func(g *Gate) error { g.Bound(g.Calls() + 2); return nil }, 2},
		"calls elsewhere":      {func(g *Gate) error { g.Bound(10); g.Charge(7); return nil }, 1},
		"the end":              {func(g *Gate) error { g.Close(nil); return nil }, 0},
	} {
		opt := keepAll
		opt.Floor, opt.Now = less, func() int64 { return 5 }
		g, log := open(t, baseOf(t, "fs:read:/notes"), opt)
		op := opOf(t, g, "path_open")
		a := g.Admit(op, readNote, readNote.Name, nil)
		if !a.OK() || !g.Again(&a) || len(log.Decisions) != 2 || log.Decisions[1] != log.Decisions[0] {
			t.Fatalf("%s: control: %+v", name, log.Decisions)
		}
		if err := c.change(g); err != nil {
			t.Fatal(err)
		}
		stale, allowed := a, 0
		for range 3 {
			before := g.Calls()
			if !g.Again(&a) {
				if g.Calls() != before {
					t.Errorf("%s: what is not given again is counted", name)
				}
				a = g.Admit(op, readNote, readNote.Name, nil)
			}
			if a.OK() {
				allowed++
			}
		}
		if allowed != c.allows {
			t.Errorf("%s: %d allowed, want %d", name, allowed, c.allows)
		}
		if stale.held = g.now.Load(); c.allows == 0 && name != "the end" && (!g.Again(&stale) || !stale.OK()) {
			t.Errorf("%s: control: an answer that outlives what is held is refused by something else", name)
		}
	}
}
