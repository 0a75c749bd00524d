// Package gate is the one place that decides: every host call, WASI included,
// passes [Gate.Admit], which checks, records, and only then answers with a [Permit].
//
// A call whose decision cannot be recorded is denied, and the gate stays shut
// from then on: [Gate.Err] tells the caller to end the run.
package gate

import (
	"cmp"
	"fmt"
	"sync/atomic"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
)

// A Permit is proof that a request passed a [Gate]. Only [Gate.Admit] makes a
// usable one, so a function that takes a Permit cannot run unchecked. The zero
// Permit is proof of nothing.
type Permit struct {
	ok    bool
	scope int32
}

// OK reports whether p permits anything.
func (p Permit) OK() bool { return p.ok }

// Scope is the id, in the run's universe, of the scope that allowed the request.
func (p Permit) Scope() int32 { return p.scope }

// An Op is one operation that the gate knows by name: an import or a WASI
// function. Make it once a run with [Gate.Op].
type Op struct {
	name  audit.Name
	text  string
	tool  audit.Name // of an attached tool or an MCP server's; 0: the operation is the tool
	scope string     // on the axis of tools; "" is on none
	as    audit.Name // what is asked for, in records; 0: what the family is called
}

// String is the operation's name in records.
func (o *Op) String() string { return o.text }

// Options says which decisions are kept in the knowledge base and how many
// calls a run may make.
type Options struct {
	KeepAllowed, KeepDenied bool
	// MaxCalls is limits.hostcalls_max; negative means no limit.
	MaxCalls int64
	// Floor is what [Gate.Taint] narrows by; nil: it narrows by nothing.
	Floor *caps.Layer
	// Durability says before which requests the records must be on disk.
	Durability audit.Durability
	// Now is the time in milliseconds since 1970, for leases that expire; nil:
	// they are over.
	Now func() int64
}

// A Denial says why a request was refused.
type Denial struct {
	Request caps.Request // its Name is the one that was asked for: a view, where that was one
	Code    caps.Code
	Layer   string
	Label   string // the input that it follows from; "" when none
}

// An Answer is what the gate says to one request: a usable Permit, or the
// Denial. The zero Answer permits nothing.
type Answer struct {
	Permit Permit
	held   *holding // what decided it; nil when it cannot serve again
	mark   audit.Mark
	count  *int64 // where it is counted

	Denial Denial
}

// OK reports whether the request was allowed.
func (a Answer) OK() bool { return a.Permit.ok }

// A Count is how many calls of each audit name were allowed and denied.
type Count struct{ Allowed, Denied int64 }

// A Gate decides for one run. Its methods, but for Set and Close, are called by
// the goroutine that runs the guest. Once it is closed every request is refused
// as [caps.AuditUnavailable], and nothing is recorded or counted: what it counted
// may be read by whoever closed it.
type Gate struct {
	// What Again touches comes first.
	latch latch
	now   atomic.Pointer[holding]
	err   error
	calls int64
	most  int64 // calls
	sink  audit.Sink

	slots slots
	opt   Options
	names names
	disk  barriers

	rec    audit.Decision // the record being made; here, so that making one allocates nothing
	memo   memo
	swaps  int64
	counts [caps.Tool + 1]Count
}

// holding is what the gate holds at one moment: the set, and the interned
// names of its layers, swapped together.
type holding struct {
	set    caps.Set
	layers []audit.Name
	digest string // of set, once somebody asked
	tools  bool   // some layer speaks of tools
	closed bool   // and hides the call by which files are opened
	leases []held
	floor  int16 // the first layer of the taint, which are the last ones; 0 without one
}

// memo is one request and its answer under one holding. It owns its name.
type memo struct {
	held     *holding
	family   caps.Family
	mode     caps.Mode
	name     []byte
	decision caps.Decision
}

// maxMode is the highest mode that may have an audit name of its own.
const maxMode = caps.Delete

// names are the words that a decision can be made of, interned at the start so
// that no call pays for it.
type names struct {
	caps    [caps.Tool + 1][maxMode + 1]audit.Name // the name of the last mode stands for all after it
	reasons []audit.Name
}

// New makes the gate of a run that holds set and records on sink.
func New(set caps.Set, sink audit.Sink, opt Options) (*Gate, error) {
	g := &Gate{latch: newLatch(), sink: sink, opt: opt, disk: barriersOf(opt.Durability)}
	g.Bound(opt.MaxCalls)
	if err := g.internWords(); err != nil {
		return nil, fmt.Errorf("opening the gate: %w", err)
	}
	if err := g.open(set); err != nil {
		return nil, fmt.Errorf("opening the gate: %w", err)
	}
	return g, nil
}

func (g *Gate) internWords() error {
	g.names.reasons = make([]audit.Name, caps.NumCodes)
	for c := range g.names.reasons {
		n, err := g.sink.Intern(caps.Code(c).String())
		if err != nil {
			return err
		}
		g.names.reasons[c] = n
	}
	for f := range caps.Tool + 1 {
		for m := range g.names.caps[f] {
			n, err := g.sink.Intern(caps.AuditName(f, caps.Mode(m)))
			if err != nil {
				return err
			}
			g.names.caps[f][m] = n
		}
	}
	return nil
}

func (g *Gate) hold(set caps.Set) (*holding, error) {
	h := &holding{set: set, layers: make([]audit.Name, set.NumLayers()), leases: leasesOf(set)}
	left, hidden := set.Tools()
	h.tools = len(left)+len(hidden) > 0
	h.closed = h.tools && !set.Check(caps.Request{Family: caps.Tool, Name: openScope}).Allow
	for i := range h.layers {
		n, err := g.sink.Intern(set.LayerName(int16(i)))
		if err != nil {
			return nil, err
		}
		h.layers[i] = n
	}
	return h, nil
}

// Op interns name as an operation of this run. A host call is the tool of that
// name, too.
func (g *Gate) Op(name string) (*Op, error) {
	if !g.latch.enter() {
		return nil, ErrClosed
	}
	defer g.latch.leave()
	n, err := g.sink.Intern(name)
	op := &Op{name: n, text: name}
	if scope, known := caps.ToolScope(name); known {
		op.scope = scope
	}
	return op, err
}

// OpAs is an operation that no module asks for: records call what it asks for as,
// and layers know it as the tool of that scope.
func (g *Gate) OpAs(name, as, scope string) (*Op, error) {
	op, err := g.Op(name)
	if err != nil || !g.latch.enter() {
		return op, cmp.Or(err, ErrClosed)
	}
	defer g.latch.leave()
	op.scope = scope
	op.as, err = g.sink.Intern(as)
	return op, err
}

// openScope is the call by which files are opened, and which all use of what it
// opened is part of.
const openScope = "file:path_open"

// OpenedOp is [Gate.Op] for an operation on what was opened.
func (g *Gate) OpenedOp(name string) (*Op, error) {
	op, err := g.Op(name)
	op.scope = openScope
	return op, err
}

// ToolOp is op as it is used by an attached tool or one of an MCP server: its
// requests are judged as that tool's, whose scope is such as "mcp:github/search",
// and records name it. Tools are few: one that a guest made up is none.
func (g *Gate) ToolOp(op *Op, scope, tool string) (*Op, error) {
	if !g.latch.enter() {
		return nil, ErrClosed
	}
	defer g.latch.leave()
	n, err := g.sink.Intern(tool)
	return &Op{name: op.name, text: op.text, tool: n, scope: scope}, err
}

// Admit decides r for op and records the decision. target is what the record shows (redacted by the caller; it
// and r.Name may be views of a reused buffer); args is the keyed digest of the
// arguments, nil when op and target are all of them.
func (g *Gate) Admit(op *Op, r caps.Request, target string, args *[32]byte) Answer {
	if !g.latch.enter() {
		return over(&r)
	}
	a := g.admit(op, &r, g.check(&r), target, args)
	g.latch.leave() // not deferred, which costs as much as all the rest of it: who panics leaves by its end
	return a
}

// check decides r, and knows the newest answer by heart: the same set gives the
// same request the same answer, and guests ask the same thing many times.
func (g *Gate) check(r *caps.Request) caps.Decision {
	g.expire()
	h, m := g.now.Load(), &g.memo
	if m.held == h && m.family == r.Family && m.mode == r.Mode && string(m.name) == r.Name {
		return m.decision
	}
	m.decision = h.set.Check(*r)
	m.held, m.family, m.mode, m.name = h, r.Family, r.Mode, append(m.name[:0], r.Name...)
	return m.decision
}

// AdmitTree is Admit for a request that reaches everything below r.Name as
// well, such as moving a directory.
func (g *Gate) AdmitTree(op *Op, r caps.Request, target string) Answer {
	if !g.latch.enter() {
		return over(&r)
	}
	defer g.latch.leave()
	g.expire()
	return g.admit(op, &r, g.now.Load().set.CheckTree(r), target, nil)
}

// Holds reports whether scope still allows mode: what a descriptor that was
// opened under it asks before each operation. It records nothing.
func (g *Gate) Holds(scope int32, f caps.Family, m caps.Mode) bool {
	if !g.latch.enter() {
		return false
	}
	defer g.latch.leave()
	g.expire()
	h := g.now.Load()
	return h.set.Holds(scope, f, m) && !(h.closed && f == caps.FS)
}

// Again decides once more the request that a is the answer to, for the same
// operation, and records it like any other: the answer is a. It is false, and
// nothing has happened, when the run holds something else now, leases are counted,
// calls are used up, or the record has to be written whole: then ask [Gate.Admit].
func (g *Gate) Again(a *Answer) bool {
	if !g.latch.enter() {
		return false
	}
	again := a.held == g.now.Load() && // which is never nil
		g.err == nil && g.calls < g.most && g.sink.Again(a.mark)
	if again {
		g.calls++
		*a.count++
	}
	g.latch.leave() // not deferred, as in Admit
	return again
}

// count counts a call, and returns where.
func (g *Gate) count(f caps.Family, allowed bool) *int64 {
	at := &g.counts[f].Denied
	if allowed {
		at = &g.counts[f].Allowed
	}
	g.calls++
	*at++
	return at
}

func (g *Gate) admit(op *Op, r *caps.Request, d caps.Decision, target string, args *[32]byte) (a Answer) {
	h := g.now.Load()
	if d.Allow && (h.tools || h.leases != nil) {
		d = g.judge(h, op, r, d)
	}
	once := args != nil || h.leases != nil || g.disk[r.Family].Has(r.Mode) // a repetition is not the same
	if g.calls >= g.most {
		d, once = caps.Decision{Code: caps.BudgetExhausted}, true
	}
	if d, a.mark = g.recorded(op, r, d, target, args); !once && g.err == nil {
		a.held = h
	}
	a.count = g.count(r.Family, d.Allow)
	if !d.Allow {
		a.Denial = g.denial(h, r, &d)
		return a
	}
	if h.leases != nil {
		g.use(h, r, d.Scope)
	}
	a.Permit = Permit{ok: true, scope: d.Scope}
	return a
}

// recorded is d once its record is as safe as it has to be. Without a record the
// request is denied, and the gate stays shut.
func (g *Gate) recorded(op *Op, r *caps.Request, d caps.Decision, target string, args *[32]byte) (caps.Decision,
	audit.Mark,
) {
	var mark audit.Mark
	if g.err == nil {
		var err error
		if mark, err = g.record(op, r, &d, target, args); err != nil {
			g.err = fmt.Errorf("recording %s: %w", op.text, err)
		}
	}
	if g.err != nil {
		return caps.Decision{Code: caps.AuditUnavailable}, 0
	}
	if g.disk[r.Family].Has(r.Mode) {
		d = g.barrier(op, d)
	}
	return d, mark
}

// record sets every field of the one record that there is, so that making it
// neither allocates nor clears what is written again at once.
func (g *Gate) record(op *Op, r *caps.Request, d *caps.Decision, target string, args *[32]byte) (audit.Mark, error) {
	rec := &g.rec
	rec.Cap, rec.Op, rec.Reason = g.names.caps[r.Family][min(r.Mode, maxMode)], op.name, g.names.reasons[d.Code]
	rec.Layer, rec.Target, rec.Args, rec.Tool, rec.Label = 0, target, args, op.tool, 0
	rec.Deny, rec.Severity, rec.Keep = false, audit.Info, g.opt.KeepAllowed
	if op.as != 0 {
		rec.Cap = op.as
	}
	if !d.Allow {
		rec.Deny, rec.Severity, rec.Keep = true, audit.Warn, g.opt.KeepDenied
		if h := g.now.Load(); d.Layer > 0 && int(d.Layer) < len(h.layers) {
			rec.Layer = h.layers[d.Layer]
			if h.floor > 0 && d.Layer >= h.floor {
				rec.Label = g.slots.label
			}
		}
	}
	return g.sink.Decide(rec)
}

// denial is d as it is told.
func (g *Gate) denial(h *holding, r *caps.Request, d *caps.Decision) Denial {
	den := Denial{Request: *r, Code: d.Code}
	if d.Layer > 0 {
		den.Layer = h.set.LayerName(d.Layer)
		if h.floor > 0 && d.Layer >= h.floor {
			den.Label = g.slots.cause
		}
	}
	return den
}
