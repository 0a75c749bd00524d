package gate

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"runloop.dev/rlp/caps"
)

var putDraft = caps.Request{Family: caps.KBWrite, Name: "drafts"}

func floorOf(t testing.TB, denied ...string) *caps.Layer {
	t.Helper()
	l := &caps.Layer{Name: "_untrusted", Because: caps.UntrustedContext}
	for _, d := range denied {
		l.Deny = append(l.Deny, entry(t, d))
	}
	return l
}

// What a guest saw from outside narrows the rest of its run, and denials say
// which input it was.
//
//rlp:holds Y27 Y36
func TestTaintNarrowsForGood(t *testing.T) {
	opt := keepAll
	opt.Floor = floorOf(t, "kb:write:*")
	g, log := open(t, baseOf(t, "kb:write:drafts", "kb:read:notes"), opt)
	op := opOf(t, g, "kb_put")
	if a := g.Admit(op, putDraft, "drafts", nil); !a.OK() {
		t.Fatal("control: denied before")
	}
	for _, cause := range []string{"http:evil.example", "kb:notes/x"} {
		if err := g.Taint(cause); err != nil {
			t.Fatal(err)
		}
	}
	a := g.Admit(op, putDraft, "drafts", nil)
	if a.OK() {
		t.Error("allowed after content from outside")
	}
	if d := a.Denial; d.Code != caps.UntrustedContext || d.Layer != "_untrusted" || d.Label != "http:evil.example" {
		t.Errorf("denial %+v", d)
	}
	if rec := log.Decisions[1]; rec.Label != "http:evil.example" || rec.Reason != "untrusted_context" {
		t.Errorf("record %+v", rec)
	}
	if len(log.Events) != 1 || log.Events[0].Source != "_untrusted" || log.Events[0].Label != "http:evil.example" {
		t.Errorf("events %+v", log.Events)
	}
	if _, err := g.Reload("reload", nil); err != nil {
		t.Fatal(err)
	}
	if a := g.Admit(op, putDraft, "drafts", nil); a.OK() {
		t.Error("a reload lifted the floor")
	}
	if a := g.Admit(opOf(t, g, "kb_get"), caps.Request{Family: caps.KBRead, Name: "notes"}, "notes", nil); !a.OK() {
		t.Error("the floor takes what it does not name")
	}
}

// A taint that cannot be recorded lets nothing further through.
func TestTaintUnrecordedShuts(t *testing.T) {
	opt := keepAll
	opt.Floor = floorOf(t, "kb:write:*")
	g, log := open(t, baseOf(t, "kb:write:drafts"), opt)
	op := opOf(t, g, "kb_put")
	log.Room = 0
	if err := g.Taint("x"); err == nil {
		t.Fatal("no error")
	}
	log.Room = -1
	if a := g.Admit(op, putDraft, "drafts", nil); a.OK() {
		t.Error("allowed after the record was lost")
	}
}

// What a reload took away the next one gives back, up to what the launch left,
// and the ids that descriptors hold stay those of their scopes.
//
//rlp:holds Y62
func TestReloadReturns(t *testing.T) {
	g, log := open(t, baseOf(t, "fs:read:/notes", "kb:write:drafts"), keepAll)
	op := opOf(t, g, "path_open")
	before := g.Set().Digest()
	first := g.Admit(op, readNote, readNote.Name, nil)
	if !first.OK() {
		t.Fatal("control: denied")
	}
	narrow := &caps.Layer{Name: "profile:x", Deny: []caps.Entry{
		entry(t, "fs:read:/notes/deep/er"),
		entry(t, "kb:write:*"),
	}}
	if changed, err := g.Reload("turn", []*caps.Layer{narrow}); err != nil || !changed {
		t.Fatalf("%v, %v", changed, err)
	}
	if a := g.Admit(op, putDraft, "drafts", nil); a.OK() {
		t.Error("still held")
	}
	if !g.Holds(first.Permit.Scope(), caps.FS, caps.Read) || g.Set().Scope(caps.FS, first.Permit.Scope()) != "/notes" {
		t.Error("the descriptor's scope is another one")
	}
	wide := &caps.Layer{
		Name: "profile:x", Bounds: []caps.Bound{{Family: caps.FS, Modes: caps.AllModes(caps.FS)}},
		Allow: []caps.Entry{entry(t, "fs:write:*"), entry(t, "fs:read:*")},
	}
	if _, err := g.Reload("turn", []*caps.Layer{wide}); err != nil {
		t.Fatal(err)
	}
	if g.Set().Digest() != before || len(log.Events) != 2 {
		t.Errorf("%v after %d swaps", g.Set(), len(log.Events))
	}
	if changed, err := g.Reload("turn", nil); changed || err != nil || len(log.Events) != 2 {
		t.Errorf("a reload that changes nothing: %v, %v, %d records", changed, err, len(log.Events))
	}
}

// Whatever happens during a run, it holds no more than before it happened, but
// for what a reload takes back; never more than the launch left.
//
//rlp:holds P17
func TestRunOnlyNarrows(t *testing.T) {
	words := []string{
		"fs:read:/notes", "fs:write:/notes/out", "kb:write:drafts", "kb:read:notes", "process:exec:/bin/ls",
		"env:read:A",
	}
	rapid.Check(t, func(rt *rapid.T) {
		now := int64(0)
		opt := keepAll
		opt.Floor, opt.Now = floorOf(t, "kb:write:*", "process:exec:*"), func() int64 { return now }
		set := baseOf(t, words...)
		lease := &caps.Layer{Name: "lease", Leases: []caps.Lease{{
			Entry: entry(t, "kb:read:notes"), Expires: 5,
			MaxUses: caps.Unbounded,
		}}}
		set, _, err := set.Narrow(lease)
		if err != nil {
			rt.Fatal(err)
		}
		g, _ := open(t, set, opt)
		layer := func() *caps.Layer {
			return &caps.Layer{Name: "l", Deny: []caps.Entry{entry(t, rapid.SampledFrom(words).Draw(rt, "deny"))}}
		}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			before, reloaded := g.Set(), false
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				err = g.Taint("x")
			case 1:
				err = g.Hold(layer())
			case 2:
				_, err = g.Reload("turn", []*caps.Layer{layer()})
				reloaded = true
			case 3:
				now += 2
				g.Holds(0, caps.FS, caps.Read)
			}
			if err != nil {
				rt.Fatal(err)
			}
			above := before
			if reloaded {
				above = set
			}
			for _, grant := range g.Set().Grants() {
				if !above.Covers(grant) {
					rt.Fatalf("%v came back", grant)
				}
			}
			if _, tainted := g.Tainted(); tainted && (g.Set().Any(caps.KBWrite) || g.Set().Any(caps.Exec)) {
				rt.Fatal("the floor was lifted")
			}
			if now >= 5 && g.Set().Any(caps.KBRead) {
				rt.Fatal("a lease that was over came back")
			}
		}
	})
}

// A lease ends by the clock, also for what is open, and by how often it is used.
func TestLeases(t *testing.T) {
	now := int64(0)
	opt := keepAll
	opt.Now = func() int64 { return now }
	l := &caps.Layer{Name: "override:x.toml", Leases: []caps.Lease{
		{Entry: entry(t, "fs:read:/notes"), Expires: 100, MaxUses: caps.Unbounded},
		{Entry: entry(t, "kb:write:drafts"), Expires: caps.Forever, MaxUses: 2},
	}}
	set, _, err := baseOf(t, "fs:read:/", "kb:write:drafts").Narrow(l)
	if err != nil {
		t.Fatal(err)
	}
	g, log := open(t, set, opt)
	read, put := opOf(t, g, "path_open"), opOf(t, g, "kb_put")
	first := g.Admit(read, readNote, "", nil)
	if !first.OK() {
		t.Fatal("control: denied while the lease runs")
	}
	now = 100
	if g.Holds(first.Permit.Scope(), caps.FS, caps.Read) {
		t.Error("a descriptor outlives its lease")
	}
	if a := g.Admit(read, readNote, "", nil); a.OK() || a.Denial.Code != caps.LeaseExpired ||
		a.Denial.Layer != "override:x.toml" {
		t.Errorf("after its end: %v %+v", a.OK(), a.Denial)
	}
	if a := g.Admit(read, caps.Request{Family: caps.FS, Name: "/elsewhere"}, "", nil); !a.OK() {
		t.Error("the lease takes what it does not name")
	}
	if len(log.Events) != 1 || log.Events[0].Source != "lease" {
		t.Errorf("events %+v", log.Events)
	}
	var last Answer
	for i := range 4 {
		last = g.Admit(put, putDraft, "drafts", nil)
		if want := i < 2; last.OK() != want {
			t.Errorf("use %d: %v", i+1, last.OK())
		}
		if g.Again(&last) {
			t.Error("a leased answer is given again unseen")
		}
	}
	if last.Denial.Code != caps.LeaseExpired {
		t.Errorf("denial %+v", last.Denial)
	}
	if left := g.Layer("parent").Leases; len(left) != 2 || left[1].MaxUses != 0 {
		t.Errorf("left %+v", left)
	}
}

// Without a clock a lease that ends some day is over.
func TestLeaseWithoutClock(t *testing.T) {
	l := &caps.Layer{Name: "l", Leases: []caps.Lease{{
		Entry: entry(t, "fs:read:/notes"), Expires: 100,
		MaxUses: caps.Unbounded,
	}}}
	set, _, err := baseOf(t, "fs:read:/").Narrow(l)
	if err != nil {
		t.Fatal(err)
	}
	g, _ := open(t, set, keepAll)
	if a := g.Admit(opOf(t, g, "path_open"), readNote, "", nil); a.OK() {
		t.Error("allowed")
	}
}

// A hidden tool is refused by name, whoever shows or asks for it.
//
//rlp:holds Y13
func TestHiddenToolIsRefused(t *testing.T) {
	base := baseOf(t, "kb:write:drafts", "mcp:call:github")
	hide := &caps.Layer{Name: "profile:quiet", Deny: []caps.Entry{
		{Grant: caps.Grant{Family: caps.Tool, Modes: 1, Scope: "memory:kb_put"}},
		{Grant: caps.Grant{Family: caps.Tool, Modes: 1, Scope: "mcp:github/delete"}},
	}}
	set, _, err := base.Narrow(hide)
	if err != nil {
		t.Fatal(err)
	}
	g, log := open(t, set, keepAll)
	if a := g.Admit(opOf(t, g, "kb_cas"), putDraft, "drafts", nil); !a.OK() {
		t.Fatal("control: another tool of the same domain is denied")
	}
	if a := g.Admit(opOf(t, g, "kb_put"), putDraft, "drafts", nil); a.OK() || a.Denial.Code != caps.ToolHidden ||
		a.Denial.Layer != "profile:quiet" {
		t.Errorf("%v %+v", a.OK(), a.Denial)
	}
	call := caps.Request{Family: caps.MCP, Name: "github"}
	op := opOf(t, g, "mcp_call")
	for name, want := range map[string]bool{"github/search": true, "github/delete": false} {
		tool, err := g.ToolOp(op, "mcp:"+name, name)
		if err != nil {
			t.Fatal(err)
		}
		if a := g.Admit(tool, call, name, nil); a.OK() != want {
			t.Errorf("%s: %v", name, a.OK())
		}
		if rec := log.Decisions[len(log.Decisions)-1]; rec.Tool != name || rec.Op != "mcp_call" {
			t.Errorf("record %+v", rec)
		}
	}
	if d := g.Refuse(opOf(t, g, "kb_put"), putDraft, "drafts", caps.Unavailable); d.Code != caps.ToolHidden {
		t.Errorf("a refusal tells more than the policy: %+v", d)
	}
}

func BenchmarkTaint(b *testing.B) {
	opt := keepAll
	opt.Floor = floorOf(b, "kb:write:*", "process:exec:*", "secrets:read:*", "agents:launch:*")
	var words []string
	for i := range 100 {
		words = append(words, fmt.Sprintf("fs:read:/notes/%d", i))
	}
	g, err := New(baseOf(b, append(words, "kb:write:drafts")...), nullSink{}, opt)
	if err != nil {
		b.Fatal(err)
	}
	clean, s := g.now.Load(), g.slots
	b.ReportAllocs()
	for b.Loop() {
		g.slots = s
		g.now.Store(clean)
		if err := g.Taint("http:evil.example"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	set := baseOf(b, "fs:read:/notes", "kb:write:drafts", "kb:read:notes", "net:x.org")
	floor := floorOf(b, "kb:write:*", "process:exec:*", "secrets:read:*", "agents:launch:*")
	for name, opt := range map[string]Options{"plain": keepAll, "floor": {KeepAllowed: true, MaxCalls: -1, Floor: floor}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := New(set, nullSink{}, opt); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Leases bind by path: what is leased stays where it is leased, and so does all
// that holds it.
func TestWhatIsLeasedIsNotMoved(t *testing.T) {
	forever := func(text string) caps.Lease {
		return caps.Lease{Entry: entry(t, text), Expires: caps.Forever, MaxUses: 9}
	}
	l := &caps.Layer{Name: "override:x.toml", Leases: []caps.Lease{
		forever("fs:read:/data/a/leased"),
		forever("kb:write:drafts"),
	}}
	set, _, err := baseOf(t, "fs:write:/data", "fs:read:/data", "fs:delete:/data", "kb:write:drafts").Narrow(l)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"/data/x", "/data/y", true},
		{"/data/x", "/data/a/y", true},
		{"/data/x", "/data/a/leased/y", true}, // and is leased from then on
		{"/data/x", "/data/a/leased", true},
		{"/data/a/leased/x", "/data/a/leased/y", true},
		{"/data/a/leased2", "/data/x", true},
		{"/data/a/leased/x", "/data/x", false},
		{"/data/a/leased", "/data/x", false},
		{"/data/a", "/data/b", false},
		{"/data/b", "/data/a", false}, // which may hold a file called leased
		{"/data", "/other", false},
	} {
		g, log := open(t, set, keepAll)
		got := g.AdmitMove(opOf(t, g, "path_rename"), c.from, c.to)
		if got != c.want || got == (len(log.Decisions) > 0) {
			t.Errorf("%s to %s: %v, %d records", c.from, c.to, got, len(log.Decisions))
		}
		for _, d := range log.Decisions {
			if d.Reason != "path_not_permitted" || d.Layer != "override:x.toml" || d.Target != c.from || g.Calls() != 1 {
				t.Errorf("%s to %s: %+v, %d calls", c.from, c.to, d, g.Calls())
			}
		}
	}
	control, _ := open(t, baseOf(t, "fs:read:/data"), keepAll)
	if !control.AdmitMove(opOf(t, control, "path_rename"), "/data/a", "/data/b") {
		t.Error("control: refused without a lease")
	}
}
