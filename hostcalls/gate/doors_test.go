package gate

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
)

func hiding(t *testing.T, tool string, grants ...string) caps.Set {
	t.Helper()
	set, _, err := baseOf(t, grants...).Narrow(&caps.Layer{
		Name: "profile:x",
		Deny: []caps.Entry{{Grant: caps.Grant{Family: caps.Tool, Modes: 1, Scope: tool}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Who may not open files does nothing with those that are open; nothing else is
// closed by it.
func TestHidingOpenClosesWhatIsOpen(t *testing.T) {
	for tool, want := range map[string]bool{"file:path_open": false, "memory:kb_put": true} {
		g, _ := open(t, hiding(t, tool, "fs:read:/notes", "kb:read:notes"), keepAll)
		file, value := g.Set().ScopeID(caps.FS, "/notes"), g.Set().ScopeID(caps.KBRead, "notes")
		if got := g.Holds(file, caps.FS, caps.Read); got != want {
			t.Errorf("%s hidden: files that are open are held: %v", tool, got)
		}
		if !g.Holds(value, caps.KBRead, 0) {
			t.Errorf("%s hidden: values are not held", tool)
		}
		op, err := g.OpenedOp("fd_pread")
		if err != nil {
			t.Fatal(err)
		}
		if a := g.Admit(op, readNote, "", nil); a.OK() != want {
			t.Errorf("%s hidden: what was opened is read: %v", tool, a.OK())
		}
	}
}

// A closed gate says of each question that nothing is recorded any more.
func TestAClosedGateSaysWhy(t *testing.T) {
	for name, ask := range map[string]func(g *Gate, op *Op) Denial{
		"hidden":     func(g *Gate, op *Op) Denial { d, _ := g.Hidden(op); return d },
		"refuse":     func(g *Gate, op *Op) Denial { return g.Refuse(op, readNote, "", caps.Unavailable) },
		"admit":      func(g *Gate, op *Op) Denial { return g.Admit(op, readNote, "", nil).Denial },
		"admit tree": func(g *Gate, op *Op) Denial { return g.AdmitTree(op, readNote, "").Denial },
	} {
		g, _ := open(t, baseOf(t, "fs:read:/notes"), keepAll)
		op := opOf(t, g, "path_open")
		g.Close(nil)
		if d := ask(g, op); d.Code != caps.AuditUnavailable {
			t.Errorf("%s: %s", name, d.Code)
		}
		if g.latch.inside.Load() != 0 {
			t.Errorf("%s: somebody is inside", name)
		}
	}
	g, log := open(t, baseOf(t, "fs:read:/notes"), keepAll)
	op := opOf(t, g, "path_open")
	if g.ResultHash([]byte("x")) != log.ResultHash([]byte("x")) || g.ArgsHash(op, []byte("x")) != log.ArgsHash("path_open",
		[]byte("x")) || g.latch.inside.Load() != 0 {
		t.Error("control: the digests are not the log's")
	}
	g.Close(nil)
	if g.Bound(0); g.ResultHash([]byte("x")) != [32]byte{} || g.ArgsHash(op, []byte("x")) != [32]byte{} ||
		g.most != math.MaxInt64 {
		t.Error("a log that is closed is asked for digests")
	}
}

// Who closes waits for what is being decided, and for nothing once the guest's
// goroutine is over.
func TestClosingWaitsForWhoIsInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLatch()
		if !l.enter() {
			t.Fatal("control: shut from the start")
		}
		over, closed := make(chan struct{}), false
		go func() { l.close(over); closed = true }()
		synctest.Wait()
		if closed {
			t.Error("closed while somebody is inside")
		}
		l.leave()
		synctest.Wait()
		if !closed {
			t.Error("not closed when nobody is inside")
		}
		if l.enter() || l.inside.Load() != 0 {
			t.Error("entered after it was shut")
		}
	})
	l := newLatch()
	l.enter()
	over := make(chan struct{})
	close(over)
	l.close(over)
	l.close(nil)
}

// What came of a call is recorded as that.
func TestDoneIsCallDone(t *testing.T) {
	g, log := open(t, baseOf(t, "fs:read:/notes"), keepAll)
	if err := g.Done(&audit.Event{Verb: "GET"}); err != nil || len(log.Events) != 1 ||
		log.Events[0].Kind != audit.KindCallDone || g.latch.inside.Load() != 0 {
		t.Errorf("%v, %+v", err, log.Events)
	}
}

// What a run can be narrowed by has its bounds; beyond them nothing changes.
func TestALayerThatDoesNotFitChangesNothing(t *testing.T) {
	wide := &caps.Layer{Name: "wide"}
	for i := range 1 << 17 {
		wide.Deny = append(wide.Deny, entry(t, fmt.Sprintf("fs:read:/notes/%d", i)))
	}
	opt := keepAll
	opt.Floor = wide
	if _, err := New(baseOf(t, "fs:read:/notes"), audit.NewMemory(), opt); err == nil {
		t.Error("a floor that has no room is taken")
	}
	g, log := open(t, baseOf(t, "fs:read:/notes"), keepAll)
	before := g.Set().Digest()
	if err := g.Hold(wide); err == nil {
		t.Error("no error")
	}
	if changed, err := g.Reload("turn", []*caps.Layer{wide}); err == nil || changed {
		t.Errorf("%v, %v", changed, err)
	}
	if g.Set().Digest() != before || len(log.Events) != 0 || g.Err() != nil {
		t.Errorf("%d events, %v", len(log.Events), g.Err())
	}
}

// A lease that could not be taken away shuts the gate, once.
func TestAnUnrecordedEndOfALeaseShuts(t *testing.T) {
	now := int64(0)
	opt := keepAll
	opt.Now = func() int64 { return now }
	set, _, err := baseOf(t, "fs:read:/notes", "kb:read:notes").Narrow(&caps.Layer{
		Name:   "l",
		Leases: []caps.Lease{{Entry: entry(t, "kb:read:notes"), Expires: 5, MaxUses: caps.Unbounded}},
	})
	if err != nil {
		t.Fatal(err)
	}
	g, log := open(t, set, opt)
	now, log.Room = 9, 0
	g.Holds(0, caps.FS, caps.Read)
	first := g.Err()
	if !errors.Is(first, audit.ErrFull) {
		t.Fatalf("%v", first)
	}
	log.Room = -1
	if a := g.Admit(opOf(t, g, "kb_get"), caps.Request{Family: caps.KBRead, Name: "notes"}, "", nil); a.OK() ||
		g.Err() != first || len(log.Events) != 0 {
		t.Errorf("%v, %v, %d events", a.OK(), g.Err(), len(log.Events))
	}
}

// Records hold a bounded number of entries, say when there were more, and read
// no family that is not there.
func TestRecordedLayersAreBounded(t *testing.T) {
	base := baseOf(t, "fs:read:/notes")
	l := &caps.Layer{Name: "override:x.toml", Spare: []caps.Entry{entry(t, "fs:read:/elsewhere")}}
	for i := range mostEntries {
		l.Deny = append(l.Deny, entry(t, fmt.Sprintf("fs:read:/notes/%d", i)))
	}
	exact := Recorded(base, []*caps.Layer{{Name: l.Name, Deny: l.Deny}})
	if len(exact) != 1 || exact[0].Left || len(exact[0].Deny) != mostEntries {
		t.Errorf("what has room: %v", exact[0].Left)
	}
	more := Recorded(base, []*caps.Layer{l, {Name: "next", Deny: l.Deny[:1]}})
	if len(more) != 2 || !more[0].Left || !more[1].Left || len(more[1].Deny) != 0 {
		t.Errorf("what has no room: %d layers", len(more))
	}
	few := Recorded(base, []*caps.Layer{{Name: "few", Deny: l.Deny[:1], Spare: l.Spare}})
	back, err := ReadLayer(&few[0])
	if err != nil || len(back.Spare) != 1 || back.Spare[0].Grant != l.Spare[0].Grant || len(back.Deny) != 1 {
		t.Errorf("%+v, %v", back, err)
	}
	for _, part := range []func(*audit.Layer, []audit.LayerEntry){
		func(r *audit.Layer, x []audit.LayerEntry) { r.Deny = x },
		func(r *audit.Layer, x []audit.LayerEntry) { r.Bounds = x },
	} {
		bad := &audit.Layer{Name: "x"}
		part(bad, []audit.LayerEntry{{Family: "nonesuch", Modes: 1, Scope: "/"}})
		if _, err := ReadLayer(bad); err == nil {
			t.Error("a family that is not there is read")
		}
	}
}

// The layer that protects is recorded as far as it is about what was granted.
func TestProtectionIsRecordedWhereItIsNear(t *testing.T) {
	base := baseOf(t, "fs:read:/notes/a")
	for path, want := range map[string]bool{
		"/notes": true, "/notes/a": true, "/notes/a/b": true, "/": true,
		"/notes/ab": false, "/notes/b": false, "/other": false, "/other/abcdef": false,
	} {
		l := &caps.Layer{Name: caps.ProtectedLayer, Deny: []caps.Entry{entry(t, "fs:read:"+path)}}
		if got := len(Recorded(base, []*caps.Layer{l})) == 1; got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if all := Recorded(baseOf(t, "fs:read:/"),
		[]*caps.Layer{{Name: caps.ProtectedLayer, Deny: []caps.Entry{entry(t, "fs:read:/x")}}}); len(all) != 1 {
		t.Error("what lies in the root folder is not recorded")
	}
}
