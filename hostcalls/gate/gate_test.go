package gate

import (
	"errors"
	"testing"
	"unsafe"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
)

func entry(t testing.TB, text string) caps.Entry {
	t.Helper()
	g, err := caps.ParseGrant(text)
	if err != nil {
		t.Fatal(err)
	}
	return caps.Entry{Grant: g}
}

func baseOf(t testing.TB, grants ...string) caps.Set {
	t.Helper()
	var entries []caps.Entry
	for _, g := range grants {
		entries = append(entries, entry(t, g))
	}
	s, err := caps.Base(entries, caps.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func open(t testing.TB, set caps.Set, opt Options) (*Gate, *audit.Memory) {
	t.Helper()
	log := audit.NewMemory()
	g, err := New(set, log, opt)
	if err != nil {
		t.Fatal(err)
	}
	return g, log
}

func opOf(t testing.TB, g *Gate, name string) *Op {
	t.Helper()
	op, err := g.Op(name)
	if err != nil {
		t.Fatal(err)
	}
	return op
}

var keepAll = Options{KeepAllowed: true, KeepDenied: true, MaxCalls: -1}

var (
	readNote  = caps.Request{Family: caps.FS, Mode: caps.Read, Name: "/notes/a"}
	writeNote = caps.Request{Family: caps.FS, Mode: caps.Write, Name: "/notes/a"}
)

// Every decision is one record, allowed or denied, and two equal denials are two.
//
//rlp:holds C15 R72
func TestEveryDecisionIsRecorded(t *testing.T) {
	g, log := open(t, baseOf(t, "fs:read:/notes"), keepAll)
	op := opOf(t, g, "path_open")
	if a := g.Admit(op, readNote, readNote.Name, nil); !a.OK() || !a.Permit.OK() {
		t.Fatal("control: what is granted is denied")
	}
	for range 2 {
		if a := g.Admit(op, writeNote, writeNote.Name, nil); a.OK() || a.Permit.OK() {
			t.Fatal("writing was not granted")
		}
	}
	if len(log.Decisions) != 3 {
		t.Fatalf("%d records for 3 decisions: %+v", len(log.Decisions), log.Decisions)
	}
	allowed, denied := log.Decisions[0], log.Decisions[1]
	if allowed.Deny || allowed.Cap != "fs.read" || allowed.Reason != "granted" || allowed.Op != "path_open" ||
		allowed.Target != "/notes/a" {
		t.Errorf("allowed: %+v", allowed)
	}
	if !denied.Deny || denied.Cap != "fs.write" || denied.Reason != "path_not_permitted" || denied.Severity != audit.Warn {
		t.Errorf("denied: %+v", denied)
	}
	if log.Decisions[2] != denied {
		t.Errorf("the second denial differs: %+v", log.Decisions[2])
	}
}

// A call that cannot be recorded is denied, and so is every one after it.
//
//rlp:holds R71
func TestUnrecordedIsDeniedForGood(t *testing.T) {
	g, log := open(t, baseOf(t, "fs:read:/notes"), keepAll)
	op := opOf(t, g, "path_open")
	if a := g.Admit(op, readNote, readNote.Name, nil); !a.OK() {
		t.Fatal("control: denied while the log works")
	}
	log.Room = 0
	a := g.Admit(op, readNote, readNote.Name, nil)
	if a.OK() {
		t.Error("allowed without a record")
	}
	if !errors.Is(g.Err(), audit.ErrFull) || a.Denial.Code != caps.AuditUnavailable {
		t.Errorf("Err() = %v, code %s", g.Err(), a.Denial.Code)
	}
	log.Room = -1
	if a := g.Admit(op, readNote, readNote.Name, nil); a.OK() {
		t.Error("the gate opened again after a record was lost")
	}
}

// What is kept follows the options; what is decided does not.
//
//rlp:holds R65 R66
func TestOptionsChooseWhatIsKept(t *testing.T) {
	for _, opt := range []Options{
		{MaxCalls: -1}, {KeepAllowed: true, MaxCalls: -1}, {KeepDenied: true, MaxCalls: -1}, keepAll,
	} {
		g, log := open(t, baseOf(t, "fs:read:/notes"), opt)
		op := opOf(t, g, "path_open")
		allowed := g.Admit(op, readNote, "", nil).OK()
		written := g.Admit(op, writeNote, "", nil).OK()
		if !allowed || written {
			t.Errorf("%+v changed a decision", opt)
		}
		if log.Decisions[0].Keep != opt.KeepAllowed || log.Decisions[1].Keep != opt.KeepDenied {
			t.Errorf("%+v: kept %v and %v", opt, log.Decisions[0].Keep, log.Decisions[1].Keep)
		}
	}
}

// The denial names the layer that took the capability away.
func TestDenialNamesTheLayer(t *testing.T) {
	layer := &caps.Layer{Name: "override:x.toml", Deny: []caps.Entry{entry(t, "fs:read:/notes/private")}}
	set, _, err := baseOf(t, "fs:read:/notes").Narrow(layer)
	if err != nil {
		t.Fatal(err)
	}
	g, log := open(t, set, keepAll)
	op := opOf(t, g, "path_open")
	if a := g.Admit(op, readNote, "", nil); !a.OK() {
		t.Fatal("control: the rest of the folder is denied")
	}
	r := caps.Request{Family: caps.FS, Mode: caps.Read, Name: "/notes/private/diary"}
	a := g.Admit(op, r, r.Name, nil)
	if a.OK() {
		t.Fatal("allowed what the layer denies")
	}
	if got := log.Decisions[1].Layer; got != "override:x.toml" {
		t.Errorf("layer %q", got)
	}
	if d := a.Denial; d.Layer != "override:x.toml" || d.Request != r {
		t.Errorf("denial %+v", d)
	}
}

// Narrowing during a run takes effect at once, on open descriptors too, and is recorded.
//
//rlp:holds C20
func TestHoldNarrowsAndRecords(t *testing.T) {
	g, log := open(t, baseOf(t, "fs:read:/notes"), keepAll)
	op := opOf(t, g, "path_open")
	first := g.Admit(op, readNote, "", nil)
	if !first.OK() || !g.Holds(first.Permit.Scope(), caps.FS, caps.Read) {
		t.Fatal("control: not held before")
	}
	if err := g.Hold(&caps.Layer{Name: "taint", Deny: []caps.Entry{entry(t, "fs:read:*")}}); err != nil {
		t.Fatal(err)
	}
	if a := g.Admit(op, readNote, "", nil); a.OK() || g.Holds(first.Permit.Scope(), caps.FS, caps.Read) {
		t.Error("still held after narrowing")
	}
	if len(log.Events) != 1 || log.Events[0].Kind != audit.KindCapsSwap || log.Events[0].Before == log.Events[0].After {
		t.Errorf("events: %+v", log.Events)
	}
}

// Zero calls are none at all, and the limit is exact.
func TestMaxCallsIsExact(t *testing.T) {
	for _, limit := range []int64{0, 1, 3} {
		opt := keepAll
		opt.MaxCalls = limit
		g, _ := open(t, baseOf(t, "fs:read:/notes"), opt)
		op := opOf(t, g, "path_open")
		allowed := int64(0)
		var last Answer
		for range 5 {
			if last = g.Admit(op, readNote, "", nil); last.OK() {
				allowed++
			}
		}
		if allowed != limit || last.Denial.Code != caps.BudgetExhausted {
			t.Errorf("limit %d allowed %d, then %s", limit, allowed, last.Denial.Code)
		}
	}
}

// A refusal for another reason never tells a guest more than the policy does.
func TestRefuseTellsThePolicyFirst(t *testing.T) {
	g, log := open(t, baseOf(t, "kb:read:notes"), keepAll)
	op := opOf(t, g, "kb_search")
	if got := g.Refuse(op, caps.Request{Family: caps.KBRead, Name: "notes"}, "notes",
		caps.Unavailable); got.Code != caps.Unavailable {
		t.Errorf("granted: %+v", got)
	}
	if got := g.Refuse(op, caps.Request{Family: caps.KBRead, Name: "contacts"}, "contacts",
		caps.Unavailable); got.Code != caps.DomainNotPermitted {
		t.Errorf("not granted: %+v", got)
	}
	for _, d := range log.Decisions {
		if !d.Deny {
			t.Errorf("a refusal was recorded as allowed: %+v", d)
		}
	}
}

func TestZeroPermitProvesNothing(t *testing.T) {
	if (Permit{}).OK() {
		t.Error("the zero Permit permits")
	}
}

func TestAdmitDoesNotAllocate(t *testing.T) {
	g, err := New(baseOf(t, "fs:read:/notes"), nullSink{}, keepAll)
	if err != nil {
		t.Fatal(err)
	}
	op := opOf(t, g, "path_open")
	for name, r := range map[string]caps.Request{"allowed": readNote, "denied": writeNote} {
		if n := testing.AllocsPerRun(1000, func() { g.Admit(op, r, r.Name, nil) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// nullSink costs nothing, so that the gate's own cost shows.
type nullSink struct{}

func (nullSink) Intern(string) (audit.Name, error)          { return 1, nil }
func (nullSink) Decide(*audit.Decision) (audit.Mark, error) { return 1, nil }
func (nullSink) Sync() error                                { return nil }
func (nullSink) ResultHash([]byte) [32]byte                 { return [32]byte{} }
func (nullSink) Again(audit.Mark) bool                      { return true }
func (nullSink) Event(*audit.Event) error                   { return nil }
func (nullSink) ArgsHash(string, ...[]byte) (sum [32]byte)  { return sum }

func BenchmarkAdmit(b *testing.B) {
	g, err := New(baseOf(b, "fs:read:/notes"), nullSink{}, keepAll)
	if err != nil {
		b.Fatal(err)
	}
	op := opOf(b, g, "path_open")
	b.ReportAllocs()
	for b.Loop() {
		g.Admit(op, readNote, readNote.Name, nil)
	}
}

func BenchmarkAdmitName(b *testing.B) {
	g, err := New(baseOf(b, "kb:read:notes", "kb:read:contacts"), nullSink{}, keepAll)
	if err != nil {
		b.Fatal(err)
	}
	op := opOf(b, g, "kb_get")
	r := caps.Request{Family: caps.KBRead, Name: "notes"}
	b.ReportAllocs()
	for b.Loop() {
		g.Admit(op, r, r.Name, nil)
	}
}

// The gate remembers its newest answer; it never takes it for the answer to
// something else.
//
//rlp:holds C20
func TestRememberedAnswersAreTheRightOnes(t *testing.T) {
	set := baseOf(t, "fs:read:/notes", "fs:write:/out", "kb:read:notes")
	g, _ := open(t, set, keepAll)
	op := opOf(t, g, "op")
	name := []byte("/notes/a")
	requests := []caps.Request{
		readNote, writeNote, readNote,
		{Family: caps.FS, Mode: caps.Read, Name: "/out/a"},
		{Family: caps.FS, Mode: caps.Write, Name: "/out/a"},
		{Family: caps.KBRead, Name: "notes"},
		{Family: caps.KBWrite, Name: "notes"},
		{Family: caps.KBRead, Name: "note"},
	}
	for range 3 {
		for _, r := range requests {
			if a := g.Admit(op, r, "", nil); a.OK() != set.Check(r).Allow {
				t.Errorf("%v: allowed %v", r, a.OK())
			}
		}
	}
	// A name that views a buffer is another name once the buffer changed.
	view := func() caps.Request {
		return caps.Request{Family: caps.FS, Mode: caps.Read, Name: unsafe.String(&name[0], len(name))}
	}
	if a := g.Admit(op, view(), "", nil); !a.OK() {
		t.Fatal("control: denied")
	}
	copy(name, "/other/a")
	if a := g.Admit(op, view(), "", nil); a.OK() {
		t.Error("the answer to another name")
	}
}
