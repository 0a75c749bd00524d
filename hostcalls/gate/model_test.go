package gate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
)

// A model is what a gate must do, said without memory of earlier answers: the
// set is made anew for each question, and nothing is kept but what happened.
type model struct {
	t      *rapid.T
	launch caps.Set
	opt    Options
	now    int64

	held, reload, floor, over []*caps.Layer

	cause  string
	used   map[caps.Grant]int64
	calls  int64
	counts map[caps.Family]Count
	swaps  int // of what is held, be it for the same
}

// layers are those that narrow the launch's set now, and how many of them are
// the taint's.
func (m *model) layers() (all []*caps.Layer, floors int) {
	all = slices.Concat(m.held, m.reload, m.over)
	if m.cause != "" && m.opt.Floor != nil {
		all = append(append(all, m.opt.Floor), m.floor...)
		floors = 1 + len(m.floor)
	}
	return all, floors
}

func (m *model) set() (s caps.Set, floors int) {
	all, floors := m.layers()
	s = m.launch
	for _, l := range all {
		var err error
		if s, _, err = s.Narrow(l); err != nil {
			m.t.Fatal(err)
		}
	}
	return s, floors
}

// tick takes what was leased until now.
func (m *model) tick() {
	for {
		s, _ := m.set()
		i := slices.IndexFunc(s.HeldLeases(), func(l caps.Held) bool { return l.Expires <= m.now && !m.isOver(l) })
		if i < 0 {
			return
		}
		l := s.HeldLeases()[i]
		m.over = append(m.over, &caps.Layer{
			Name: s.LayerName(l.Layer), Because: caps.LeaseExpired,
			Deny: []caps.Entry{l.Entry},
		})
	}
}

func (m *model) isOver(l caps.Held) bool {
	return slices.ContainsFunc(m.over, func(o *caps.Layer) bool { return o.Deny[0].Grant == l.Grant })
}

// answer is what is decided about r for a tool, by code, layer and label.
func (m *model) answer(scope string, r caps.Request) (code caps.Code, layer, label string) {
	m.tick()
	s, floors := m.set()
	d := s.Check(r)
	if d.Allow && scope != "" {
		if t := s.Check(caps.Request{Family: caps.Tool, Name: scope}); !t.Allow {
			d = t
		}
	}
	if d.Allow {
		for _, l := range s.HeldLeases() {
			if m.used[l.Grant] >= l.MaxUses && leased(l.Grant, r) {
				return caps.LeaseExpired, s.LayerName(l.Layer), m.label(s, l.Layer, floors)
			}
		}
		return caps.Granted, "", ""
	}
	if d.Layer > 0 {
		layer = s.LayerName(d.Layer)
	}
	return d.Code, layer, m.label(s, d.Layer, floors)
}

func (m *model) label(s caps.Set, layer int16, floors int) string {
	if layer > 0 && int(layer) >= s.NumLayers()-floors {
		return m.cause
	}
	return ""
}

func leased(g caps.Grant, r caps.Request) bool {
	return g.Family == r.Family && g.Modes.Has(r.Mode) && (g.Scope == r.Name || g.Scope == "*" || strings.HasPrefix(r.Name,
		g.Scope+"/"))
}

func (m *model) use(r caps.Request) {
	s, _ := m.set()
	for _, l := range s.HeldLeases() {
		if l.MaxUses != caps.Unbounded && leased(l.Grant, r) {
			m.used[l.Grant]++
		}
	}
}

// ask is a request that counts.
func (m *model) ask(scope string, r caps.Request, because caps.Code) (code caps.Code, layer, label string) {
	code, layer, label = m.answer(scope, r)
	switch {
	case because == caps.InvalidRequest || because == caps.SecretUnknown || because != caps.Granted &&
		code == caps.Granted:
		code, layer, label = because, "", ""
	}
	m.calls++
	if m.opt.MaxCalls >= 0 && m.calls > m.opt.MaxCalls {
		code, layer, label = caps.BudgetExhausted, "", ""
	}
	n := m.counts[r.Family]
	if code == caps.Granted {
		n.Allowed++
		m.use(r)
	} else {
		n.Denied++
	}
	m.counts[r.Family] = n
	return code, layer, label
}

var modelWords = []string{
	"fs:read:/notes", "fs:read:/notes/a", "fs:write:/notes/out", "kb:write:drafts",
	"kb:read:notes", "env:read:A", "process:exec:/bin/ls",
}

var modelRequests = []caps.Request{
	readNote, writeNote, putDraft,
	{Family: caps.FS, Mode: caps.Read, Name: "/notes/b"},
	{Family: caps.FS, Mode: caps.Write, Name: "/notes/out/x"},
	{Family: caps.FS, Mode: caps.Read, Name: "/elsewhere"},
	{Family: caps.KBRead, Name: "notes"},
	{Family: caps.Env, Name: "A"},
	{Family: caps.Exec, Name: "/bin/ls"},
}

func drawNarrowing(t *rapid.T, name string) *caps.Layer {
	l := &caps.Layer{Name: name}
	words := rapid.SliceOfNDistinct(rapid.SampledFrom(modelWords), 0, 2, rapid.ID[string]).Draw(t, "deny")
	for _, w := range words {
		g, err := caps.ParseGrant(w)
		if err != nil {
			t.Fatal(err)
		}
		l.Deny = append(l.Deny, caps.Entry{Grant: g})
	}
	if tool := rapid.SampledFrom([]string{"", "", "memory:kb_put", "file:path_open", "memory:*"}).Draw(t,
		"tool"); tool != "" {
		l.Deny = append(l.Deny, caps.Entry{Grant: caps.Grant{Family: caps.Tool, Modes: 1, Scope: tool}})
	}
	return l
}

func drawLease(t *rapid.T) caps.Lease {
	g, err := caps.ParseGrant(rapid.SampledFrom(modelWords).Draw(t, "leased"))
	if err != nil {
		t.Fatal(err)
	}
	return caps.Lease{
		Entry:   caps.Entry{Grant: g},
		Expires: rapid.SampledFrom([]int64{3, 6, caps.Forever}).Draw(t, "expires"),
		MaxUses: rapid.SampledFrom([]int64{0, 2, caps.Unbounded}).Draw(t, "uses"),
	}
}

// drawRun is a gate, what must be true of it, and its log.
func drawRun(t *rapid.T) (*Gate, *model, *audit.Memory) {
	var entries []caps.Entry
	for _, w := range modelWords {
		g, err := caps.ParseGrant(w)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, caps.Entry{Grant: g})
	}
	set, err := caps.Base(entries, caps.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	first := drawNarrowing(t, "override:first")
	if rapid.Bool().Draw(t, "leases") {
		first.Leases = append(first.Leases, drawLease(t), drawLease(t))
	}
	if set, _, err = set.Narrow(first); err != nil {
		t.Fatal(err)
	}
	m := &model{t: t, launch: set, used: map[caps.Grant]int64{}, counts: map[caps.Family]Count{}}
	m.opt = Options{
		KeepAllowed: rapid.Bool().Draw(t, "keep allowed"), KeepDenied: rapid.Bool().Draw(t, "keep denied"),
		MaxCalls: rapid.SampledFrom([]int64{-1, 0, 2, 1000}).Draw(t, "calls"), Now: func() int64 { return m.now },
		Durability: rapid.SampledFrom([]audit.Durability{audit.PerRun, audit.PerEffect, audit.PerRecord}).Draw(t,
			"durability"),
	}
	if rapid.Bool().Draw(t, "floor") {
		m.opt.Floor = drawNarrowing(t, "_untrusted")
		m.opt.Floor.Because = caps.UntrustedContext
	}
	log := audit.NewMemory()
	g, err := New(set, log, m.opt)
	if err != nil {
		t.Fatal(err)
	}
	return g, m, log
}

// Whatever a run asks and whatever narrows it, in whatever order, the gate says
// and records what a gate without memory would.
//
//rlp:holds C15 R72
func TestGateIsItsModel(t *testing.T) { rapid.Check(t, gateIsItsModel) }

func FuzzGateIsItsModel(f *testing.F) { f.Fuzz(rapid.MakeFuzz(gateIsItsModel)) }

// An answered request is one that may be asked again.
type answered struct {
	Answer
	scope   string
	r       caps.Request
	record  int // the first record of it
	swaps   int // when it was answered
	repeats bool
}

// check holds an answer against what has to be said now.
func (a *answered) check(t *rapid.T, code caps.Code, layer, label string) {
	want := Denial{Request: a.r, Code: code, Layer: layer, Label: label}
	if code == caps.Granted {
		want = Denial{}
	}
	if a.OK() != (code == caps.Granted) || a.Permit.OK() != a.OK() || a.Denial != want {
		t.Fatalf("%v: %v %+v, not %+v", a.r, a.OK(), a.Denial, want)
	}
}

func gateIsItsModel(rt *rapid.T) {
	g, m, log := drawRun(rt)
	ops := map[string]*Op{}
	for _, name := range []string{"kb_put", "path_open", "log"} {
		op, err := g.Op(name)
		if err != nil {
			rt.Fatal(err)
		}
		ops[name] = op
	}
	var answers []*answered
	for range rapid.IntRange(60, 120).Draw(rt, "steps") {
		op := ops[rapid.SampledFrom([]string{"kb_put", "path_open", "log"}).Draw(rt, "op")]
		r := rapid.SampledFrom(modelRequests).Draw(rt, "request")
		records := len(log.Decisions)
		what := rapid.SampledFrom([]string{
			"admit", "admit", "admit", "args", "again", "again", "again", "give", "hidden", "would", "refuse", "spend", "charge",
			"hold", "reload", "taint", "clock", "leases", "note", "bound", "tree",
		}).Draw(rt, "what")
		var code caps.Code
		var layer, label string
		recorded := 1
		switch what {
		case "admit", "args", "tree":
			code, layer, label = m.ask(op.scope, r, caps.Granted)
			var args *[32]byte
			if what == "args" {
				args = &[32]byte{1}
			}
			a := g.Admit
			if what == "tree" {
				a = func(op *Op, r caps.Request, target string, _ *[32]byte) Answer { return g.AdmitTree(op, r, target) }
			}
			s, _ := m.set()
			synced := m.opt.Durability == audit.PerRecord || m.opt.Durability == audit.PerEffect && caps.Acts(r.Family, r.Mode)
			last := &answered{
				Answer: a(op, r, "target", args), scope: op.scope, r: r, record: records, swaps: m.swaps,
				repeats: args == nil && len(s.HeldLeases()) == 0 && !synced && code != caps.BudgetExhausted,
			}
			last.check(rt, code, layer, label)
			answers = append(answers, last)
		case "again":
			recorded = 0
			if len(answers) == 0 {
				break
			}
			last := rapid.SampledFrom(answers).Draw(rt, "answer")
			known := g.Again(&last.Answer)
			if known != (last.repeats && last.swaps == m.swaps && (m.opt.MaxCalls < 0 || m.calls < m.opt.MaxCalls)) {
				rt.Fatalf("again: known is %v", known)
			}
			if !known {
				break
			}
			recorded = 1
			code, layer, label = m.ask(last.scope, last.r, caps.Granted)
			last.check(rt, code, layer, label)
			if prior := log.Decisions[last.record]; log.Decisions[records] != prior {
				rt.Fatalf("again recorded %+v, not %+v", log.Decisions[records], prior)
			}
		case "give":
			code, layer, label = m.answer(op.scope, r)
			if got := g.Give(op, r, "target"); got != (code == caps.Granted) {
				rt.Fatalf("give %v: %v, not %s", r, got, code)
			}
			if code == caps.Granted {
				m.use(r)
			}
		case "hidden":
			s, floors := m.set()
			d := s.Check(caps.Request{Family: caps.Tool, Name: op.scope})
			hidden := op.scope != "" && !d.Allow
			if recorded = 0; hidden {
				recorded = 1
				m.calls++
				code, layer, label = d.Code, s.LayerName(d.Layer), m.label(s, d.Layer, floors)
				if m.opt.MaxCalls >= 0 && m.calls > m.opt.MaxCalls {
					code, layer, label = caps.BudgetExhausted, "", ""
				}
				n := m.counts[caps.Tool]
				n.Denied++
				m.counts[caps.Tool] = n
			}
			den, got := g.Hidden(op)
			want := Denial{Request: caps.Request{Family: caps.Tool, Name: op.scope}, Code: code, Layer: layer, Label: label}
			if got != hidden || hidden && den != want {
				rt.Fatalf("hidden %s: %v %+v, not %+v", op, got, den, want)
			}
		case "would":
			want, _, _ := m.answer(op.scope, r)
			if got := g.Would(op, r); got != (want == caps.Granted) {
				rt.Fatalf("would %v: %v, not %s", r, got, want)
			}
			recorded = 0
		case "refuse":
			because := rapid.SampledFrom([]caps.Code{caps.Unavailable, caps.InvalidRequest, caps.SecretUnknown}).Draw(rt,
				"because")
			code, layer, label = m.ask(op.scope, r, because)
			want := Denial{Request: r, Code: code, Layer: layer, Label: label}
			if got := g.Refuse(op, r, "target", because); got != want {
				rt.Fatalf("refused %v for %s: %+v, not %+v", r, because, got, want)
			}
		case "spend":
			left := m.opt.MaxCalls < 0 || m.calls < m.opt.MaxCalls
			if left {
				m.calls++
			}
			if g.Spend() != left {
				rt.Fatalf("spend: not %v", left)
			}
			recorded = 0
		case "charge":
			n := rapid.Int64Range(-2, 2).Draw(rt, "n")
			g.Charge(n)
			m.calls += max(0, n)
			recorded = 0
		case "bound":
			m.opt.MaxCalls = rapid.SampledFrom([]int64{-1, 3, 1000}).Draw(rt, "most")
			g.Bound(m.opt.MaxCalls)
			recorded = 0
		case "clock":
			m.now += 2
			recorded = 0
		case "leases":
			grants := slices.Collect(maps.Keys(m.used))
			if len(grants) > 0 {
				grant := grants[0]
				m.used[grant]++
				g.SpendLeases(map[caps.Grant]int64{grant: 1})
			}
			recorded = 0
		case "note":
			n := Note{
				Cap: "caps.extra", Op: "_start", Layer: "l", Target: "target", Allow: rapid.Bool().Draw(rt, "allow"),
				Always: rapid.Bool().Draw(rt, "always"),
			}
			if err := g.Note(n); err != nil {
				rt.Fatal(err)
			}
			rec := log.Decisions[records]
			keep := n.Always || n.Allow && m.opt.KeepAllowed || !n.Allow && m.opt.KeepDenied
			if rec.Cap != n.Cap || rec.Op != n.Op || rec.Layer != n.Layer || rec.Deny == n.Allow || rec.Keep != keep ||
				(rec.Severity == audit.Warn) == n.Allow {
				rt.Fatalf("note %+v is %+v", n, rec)
			}
			continue
		default:
			if what != "taint" || m.cause == "" && m.opt.Floor != nil {
				m.swaps++
			}
			m.narrow(rt, g, log, what)
			recorded = 0
		}
		if len(log.Decisions) != records+recorded {
			rt.Fatalf("%s: %d records, not %d", what, len(log.Decisions)-records, recorded)
		}
		if recorded == 1 {
			m.checkRecord(log.Decisions[records], code, layer, label)
		}
		m.checkState(g)
	}
}

func (m *model) narrow(rt *rapid.T, g *Gate, log *audit.Memory, what string) {
	m.tick()
	g.Holds(0, caps.FS, caps.Read) // what was leased until now is taken by a record of its own
	events := len(log.Events)
	before, _ := m.set()
	source, label := "turn", ""
	var changed bool
	var err error
	switch what {
	case "hold":
		l := drawNarrowing(rt, "held")
		m.held = append(m.held, l)
		source = l.Name
		err = g.Hold(l)
	case "reload":
		m.reload, m.floor = []*caps.Layer{drawNarrowing(rt, "reloaded")}, nil
		if rapid.Bool().Draw(rt, "with floor") {
			m.floor = []*caps.Layer{drawNarrowing(rt, "more floor")}
		}
		changed, err = g.Reload("turn", m.reload, m.floor...)
		after, _ := m.set()
		if changed != (before.Digest() != after.Digest()) {
			rt.Fatalf("changed: %v", changed)
		}
	case "taint":
		cause := rapid.SampledFrom([]string{"", "http:a.example"}).Draw(rt, "cause")
		err = g.Taint(cause)
		if m.cause != "" {
			if len(log.Events) != events {
				rt.Fatal("a second taint is recorded")
			}
			break
		}
		if m.cause, source, label = cause, "_untrusted", cause; cause == "" {
			m.cause, label = "unknown", "unknown"
		}
		if len(log.Events) != events+1 || log.Events[events].Label != label {
			rt.Fatalf("the taint is recorded as %+v", log.Events[events:])
		}
	}
	if err != nil {
		rt.Fatal(err)
	}
	after, _ := m.set()
	if differs := before.Digest() != after.Digest(); differs && len(log.Events) == events || len(log.Events) > events+1 {
		rt.Fatalf("%s: %d records of the swap", what, len(log.Events)-events)
	}
	for _, e := range log.Events[events:] {
		b, a := before.Digest(), after.Digest()
		if what != "taint" {
			m.checkRebuilt(e, after)
		}
		if e.Kind != audit.KindCapsSwap || e.Source != source || e.Before != fmt.Sprintf("%x", b[:]) ||
			e.After != fmt.Sprintf("%x", a[:]) {
			rt.Fatalf("%s: %+v", what, e)
		}
	}
}

// checkRebuilt has the record of a swap say what the run holds from then on.
func (m *model) checkRebuilt(e audit.Event, want caps.Set) {
	s := m.launch
	layers := []*caps.Layer{}
	for i := range e.Layers {
		l, err := ReadLayer(&e.Layers[i])
		if err != nil {
			m.t.Fatal(err)
		}
		layers = append(layers, l)
	}
	if m.cause != "" && m.opt.Floor != nil {
		layers = append(layers, m.opt.Floor)
	}
	for _, l := range layers {
		var err error
		if s, _, err = s.Narrow(l); err != nil {
			m.t.Fatal(err)
		}
	}
	if s.Digest() != want.Digest() {
		m.t.Fatalf("the record says %v, the run holds %v", s, want)
	}
}

func (m *model) checkRecord(rec audit.Kept, code caps.Code, layer, label string) {
	deny := code != caps.Granted
	keep := deny && m.opt.KeepDenied || !deny && m.opt.KeepAllowed
	if rec.Deny != deny || rec.Reason != code.String() || rec.Layer != layer || rec.Label != label || rec.Keep != keep ||
		(rec.Severity == audit.Warn) != deny {
		m.t.Fatalf("recorded %+v, not %s by %q, %q", rec, code, layer, label)
	}
}

func (m *model) checkState(g *Gate) {
	if g.latch.inside.Load() != 0 {
		m.t.Fatal("somebody is still inside")
	}
	if g.Calls() != m.calls || g.Spent() != (m.opt.MaxCalls >= 0 && m.calls > m.opt.MaxCalls) {
		m.t.Fatalf("%d calls, spent %v; not %d of %d", g.Calls(), g.Spent(), m.calls, m.opt.MaxCalls)
	}
	for f := range caps.Tool + 1 {
		if g.Counts(f) != m.counts[f] {
			m.t.Fatalf("%s: %+v, not %+v", f, g.Counts(f), m.counts[f])
		}
	}
	if cause, ok := g.Tainted(); cause != m.cause || ok != (cause != "") {
		m.t.Fatalf("tainted by %q, not %q", cause, m.cause)
	}
	for grant, n := range g.LeaseUses() {
		if m.used[grant] != n {
			m.t.Fatalf("%v was used %d times, not %d", grant, n, m.used[grant])
		}
	}
	m.tick()
	want, _ := m.set()
	l := g.Layer("x") // takes what is over
	if g.Set().Digest() != want.Digest() {
		m.t.Fatalf("holds %v, not %v", g.Set(), want)
	}
	for _, lease := range l.Leases {
		i := slices.IndexFunc(want.HeldLeases(), func(h caps.Held) bool { return h.Grant == lease.Grant })
		if i < 0 {
			m.t.Fatalf("a lease of %v out of nowhere", lease.Grant)
		}
		if most := want.HeldLeases()[i].MaxUses; most == caps.Unbounded && lease.MaxUses != most || most != caps.Unbounded &&
			lease.MaxUses != max(0, most-m.used[lease.Grant]) {
			m.t.Fatalf("%d uses left of %d after %d", lease.MaxUses, most, m.used[lease.Grant])
		}
	}
}

// A failing sink fails once, at its n-th call, and works before and after.
type failing struct {
	*audit.Memory
	left  int
	again bool // whether a record can be repeated at all
}

var errSink = errors.New("the disk is gone")

func (f *failing) fail() error {
	f.left--
	if f.left == 0 {
		return errSink
	}
	return nil
}

func (f *failing) Intern(s string) (audit.Name, error) {
	if err := f.fail(); err != nil {
		return 0, err
	}
	return f.Memory.Intern(s)
}

func (f *failing) Decide(d *audit.Decision) (audit.Mark, error) {
	err := f.fail()
	m, own := f.Memory.Decide(d)
	return m, errors.Join(err, own)
}

func (f *failing) Event(e *audit.Event) error { return errors.Join(f.fail(), f.Memory.Event(e)) }
func (f *failing) Sync() error                { return f.fail() }
func (f *failing) Again(m audit.Mark) bool    { return f.again && f.fail() == nil && f.Memory.Again(m) }

// Whichever record or word of a run cannot be written: whoever asked is told, or
// what it asked for is denied and the gate stays shut.
//
//rlp:holds R71
func TestEachFailureOfTheSinkIsTold(t *testing.T) {
	opt := keepAll
	now := int64(0)
	opt.Floor, opt.Durability, opt.Now = floorOf(t, "kb:write:*"), audit.PerRecord, func() int64 { return now }
	lease := &caps.Layer{Name: "lease", Leases: []caps.Lease{{
		Entry: entry(t, "kb:read:notes"), Expires: 5,
		MaxUses: caps.Unbounded,
	}}}
	set, _, err := baseOf(t, modelWords...).Narrow(lease)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; ; n++ {
		now = 0
		sink := &failing{Memory: audit.NewMemory(), left: n}
		told, shuts, steps := false, false, 0
		var g *Gate
		step := func(err error) bool {
			steps++
			if err == nil && g != nil && g.Err() != nil {
				t.Fatalf("failure %d, step %d: the gate is shut, and nobody is told", n, steps)
			}
			if errors.Is(err, errSink) {
				told = true
			} else if err != nil {
				t.Fatalf("failure %d, step %d: %v", n, steps, err)
			}
			return !told
		}
		shut := func(ok bool) error {
			if g.Err() == nil {
				return nil
			}
			if ok {
				t.Fatalf("failure %d, step %d: allowed, and the gate is shut", n, steps)
			}
			return g.Err()
		}
		var op *Op
		for _, do := range []func() error{
			func() (err error) { g, err = New(set, sink, opt); return err },
			func() (err error) { op, err = g.Op("path_open"); return err },
			func() (err error) { _, err = g.OpenedOp("fd_read"); return err },
			func() (err error) { _, err = g.ToolOp(op, "mcp:a/b", "a/b"); return err },
			func() error {
				shuts = true
				return g.Note(Note{Cap: "caps.extra", Op: "new word", Layer: "newer word"})
			},
			func() error { ok := g.Admit(op, readNote, "", nil).OK(); return shut(ok) },
			func() error { ok := g.Admit(op, writeNote, "", nil).OK(); return shut(ok) },
			func() error { return shut(g.Give(op, readNote, "")) },
			func() error { return g.Done(&audit.Event{Verb: "GET"}) },
			func() error { shuts = false; return g.Hold(floorOf(t, "env:read:A")) },
			func() error { _, err := g.Reload("turn", []*caps.Layer{floorOf(t, "process:exec:*")}); return err },
			func() error { now = 9; return shut(g.Holds(-1, caps.FS, caps.Read)) },
			func() error { return g.Taint("a new cause") },
		} {
			if !step(do()) {
				break
			}
		}
		if !told {
			if sink.left <= 0 {
				t.Fatalf("failure %d was not told", n)
			}
			return
		}
		if g != nil && (g.Err() != nil || shuts) {
			if a := g.Admit(op, readNote, "", nil); a.OK() || a.Denial.Code != caps.AuditUnavailable {
				t.Fatalf("failure %d: %v, %s afterwards", n, a.OK(), a.Denial.Code)
			}
		}
	}
}
