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

// A Gate decides for one run. Its methods, but for Set and Close, are called by
// the goroutine that runs the guest. Once it is closed every request is refused
// as [caps.AuditUnavailable], and nothing is recorded or counted: what it counted
// may be read by whoever closed it.
type Gate struct {
	// What Again touches comes first.
	latch latch
	now   atomic.Pointer[holding]
	tally
	recorder

	slots slots
	clock func() int64
	memo  memo
	swaps int64
}

// memo is one request and its answer under one holding. It owns its name.
type memo struct {
	held     *holding
	family   caps.Family
	mode     caps.Mode
	name     []byte
	decision caps.Decision
}

// New makes the gate of a run that holds set and records on sink.
func New(set caps.Set, sink audit.Sink, opt Options) (*Gate, error) {
	g := &Gate{latch: newLatch(), recorder: newRecorder(sink, &opt), clock: opt.Now}
	g.counts = new([caps.Tool + 1]Count)
	g.Bound(opt.MaxCalls)
	if err := g.internWords(); err != nil {
		return nil, fmt.Errorf("opening the gate: %w", err)
	}
	if err := g.open(set, opt.Floor); err != nil {
		return nil, fmt.Errorf("opening the gate: %w", err)
	}
	return g, nil
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

func (g *Gate) admit(op *Op, r *caps.Request, d caps.Decision, target string, args *[32]byte) (a Answer) {
	h := g.now.Load()
	if d.Allow && (h.tools || h.leases != nil) {
		d = g.slots.judge(h, op, r, d)
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
		a.Denial = h.denial(r, &d)
		return a
	}
	if h.leases != nil {
		g.slots.use(h, r, d.Scope)
	}
	a.Permit = Permit{ok: true, scope: d.Scope}
	return a
}
