package hostcalls

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/record/audit"
)

// A def is one import: its name, how many (ptr, len) pairs it takes before the
// response's, and how it is bound to a run.
type def struct {
	module string // "": [ImportModule]; else name begins with it and a dot
	name   string // in records
	args   int
	gated  bool
	framed bool
	family caps.Family
	most   int  // what it may pass, in bytes, when that is more than MaxArguments
	empty  bool // what it does was left out
	bind   func(h *Host, op *gate.Op) body
}

// A body is an import bound to a run: arguments in, response (a part of h.out
// or memory of its own) out.
type body struct {
	// call does what is asked, and says what the gate answered, when it judged
	// that. A place other than 0 is where redo finds the request again.
	call func(ctx context.Context, in []string, place int) ([]byte, gate.Answer, error)
	// redo does what call did at a place once more, with the gate's permit; nil
	// when the same arguments may get another answer.
	redo func(ctx context.Context, p gate.Permit, place int) ([]byte, error)
}

// gated is an import that touches something: decode makes the one value that
// the gate judges and do uses; touches says what it would touch; do runs only
// with the gate's permit.
type gated[R any] struct {
	family caps.Family // what define was told
	decode func(in []string) (R, error)
	// prepare is what has to be admitted and done before r can be judged, and the
	// operation that r is judged as; nil: nothing, and the import's own. It records
	// its refusals itself.
	prepare func(ctx context.Context, h *Host, op *gate.Op, r *R) (*gate.Op, error)
	// resolve completes r by what the machine says; nil: decode has all. A word
	// of why refuses r with a code of the family's own, if the policy allows it:
	// who may not ask learns nothing.
	resolve func(h *Host, r *R) (own caps.Code, why string)
	touches func(r R) (req caps.Request, target string)
	// target is what the record shows where that depends on the run; nil: what
	// touches says.
	target func(h *Host, r R) string
	// asked is the name that the guest gave, where the one that is judged is not
	// for it to know: refusals speak of this one. nil: touches says.
	asked func(r R) string
	// payload is what the record's args_hash covers beyond the target; nil
	// when the target is all there is.
	payload func(r R) [][]byte
	// budget refuses what is over a limit, before anything happens; nil: none.
	budget func(h *Host, r R) (caps.Code, bool)
	// confirm is what a person is asked before it happens, and whether; nil: nobody is.
	confirm func(h *Host, r R) (Question, bool)
	// framed says that the response has parts, each of which do has taken the
	// values of secrets out of.
	framed bool
	// done asks for a second record that says what came of the call.
	done bool
	do   func(ctx context.Context, h *Host, p gate.Permit, r R) ([]byte, error)
}

// define makes a gated import of family f. It is the only way into the table
// for a call that touches anything.
func define[R any](name string, args int, f caps.Family, g gated[R]) def {
	g.family = f
	return def{name: name, args: args, gated: true, framed: g.framed, family: f, bind: func(h *Host, op *gate.Op) body {
		repeats := g.prepare == nil && g.resolve == nil && g.target == nil && g.payload == nil && g.budget == nil &&
			g.confirm == nil
		var known [places]R
		do := g.doer(op)
		b := body{call: func(ctx context.Context, in []string, place int) ([]byte, gate.Answer, error) {
			r, a, err := g.admit(ctx, h, op, in)
			if err != nil {
				return nil, a, err
			}
			if place > 0 {
				known[place] = r
			}
			out, err := do(ctx, h, a.Permit, r)
			return out, a, err
		}}
		if repeats {
			b.redo = func(ctx context.Context, p gate.Permit, place int) ([]byte, error) {
				return do(ctx, h, p, known[place])
			}
		}
		return b
	}}
}

// doer is do, with a record of what came of it when that is asked for.
func (g *gated[R]) doer(op *gate.Op) func(ctx context.Context, h *Host, p gate.Permit, r R) ([]byte, error) {
	if !g.done {
		return g.do
	}
	return func(ctx context.Context, h *Host, p gate.Permit, r R) ([]byte, error) {
		return h.recorded(op, func() ([]byte, error) { return g.do(ctx, h, p, r) })
	}
}

// admit makes the request and has it judged.
func (g *gated[R]) admit(ctx context.Context, h *Host, op *gate.Op, in []string) (R, gate.Answer, error) {
	r, err := g.decode(in)
	if err != nil {
		h.cfg.Gate.Refuse(op, caps.Request{Family: g.family}, "", caps.InvalidRequest)
		return r, gate.Answer{}, invalid(err)
	}
	if g.prepare != nil {
		made := r // r itself stays on the stack
		if op, err = g.prepare(ctx, h, op, &made); err != nil {
			return made, gate.Answer{}, err
		}
		r = made
	}
	a, err := g.judge(ctx, h, op, &r)
	return r, a, err
}

// judge has a request judged that was made of what was decoded.
func (g *gated[R]) judge(ctx context.Context, h *Host, op *gate.Op, made *R) (gate.Answer, error) {
	if g.resolve != nil {
		whole := *made // made itself is on the caller's stack
		own, why := g.resolve(h, &whole)
		*made = whole
		if why != "" {
			if req, target := g.touches(whole); h.cfg.Gate.Set().Check(req).Allow {
				return gate.Answer{}, g.told(whole, h.refuse(op, req, target, own, why))
			}
		}
	}
	r := *made
	req, target := g.touches(r)
	if g.target != nil {
		target = g.target(h, r)
	}
	if g.budget != nil {
		if code, over := g.budget(h, r); over {
			return gate.Answer{}, g.told(r, h.refuse(op, req, target, code, ""))
		}
	}
	h.consent = ""
	if g.confirm != nil {
		if q, ask := g.confirm(h, r); ask && h.cfg.Gate.Would(op, req) { // nobody is asked about what the policy refuses
			if why := h.unconfirmed(ctx, q); why != "" {
				return gate.Answer{}, g.told(r, h.refuse(op, req, target, caps.NotConfirmed, why))
			}
		}
	}
	var args *[32]byte
	if g.payload != nil {
		sum := h.cfg.Gate.ArgsHash(op, g.payload(r)...)
		args = &sum
	}
	a := h.cfg.Gate.Admit(op, req, target, args)
	if !a.OK() {
		return a, g.told(r, denied(a.Denial, ""))
	}
	return a, nil
}

// told is a refusal of r in the words of who asked.
func (g *gated[R]) told(r R, err error) error {
	if no, ok := err.(*refused); ok && g.asked != nil {
		no.Request.Name = strings.Clone(g.asked(r))
	}
	return err
}

// recorded runs do and records what came of it.
func (h *Host) recorded(op *gate.Op, do func() ([]byte, error)) ([]byte, error) {
	start := h.cfg.Now()
	h.remark, h.consent = h.consent, ""
	out, err := do()
	e := &h.done
	*e = audit.Event{Verb: op.String(), Status: "ok", DurationMS: float64(h.cfg.Now()-start) / 1e6, Bytes: int64(len(out))}
	if err != nil {
		e.Status, e.Severity, e.ErrorSummary, e.Bytes = "error", audit.Warn, summary(h.scrubText(h.failure(op, err))), 0
	} else {
		e.ResultHash, e.ErrorSummary = hexSum(h.cfg.Gate.ResultHash(out)), h.remark
	}
	if err := h.cfg.Gate.Done(e); err != nil {
		return nil, err
	}
	return out, err
}

// taking is d with room for so many bytes of arguments.
func (d def) taking(most int) def {
	d.most = most
	return d
}

// ungated is an import that touches nothing beyond the run itself.
func ungated(name string, args int, do func(ctx context.Context, h *Host, in []string) ([]byte, error)) def {
	return def{name: name, args: args, bind: func(h *Host, _ *gate.Op) body {
		return body{call: func(ctx context.Context, in []string, _ int) ([]byte, gate.Answer, error) {
			out, err := do(ctx, h, in)
			return out, gate.Answer{}, err
		}}
	}}
}

// params are the parameters of an import: an i32 pair for each argument, and
// one for the response.
func (d def) params() []abi.Type {
	params := make([]abi.Type, 2*d.args+2)
	for i := range params {
		params[i] = abi.I32
	}
	return params
}

// link makes the host function: every argument is an i32 pair, and so is the
// place for the response.
func (d def) link(h *Host, op *gate.Op) abi.Func {
	l := &linked{h: h, gate: h.cfg.Gate, op: op, def: d, body: d.bind(h, op)}
	f := d.signature()
	f.Call, f.Cost, f.Moved = l.respondTo, d.cost(), &h.moved
	return f
}

// signature is the function without anything behind it.
func (d def) signature() abi.Func {
	module, name := d.imported()
	return abi.Func{Module: module, Name: name, Params: d.params(), Results: []abi.Type{abi.I64}}
}

const (
	// places is how many calls of one import are kept: the present one at place 0,
	// or at one of the others when it is small and may be asked again.
	places = 5
	// smallCall is how many bytes of arguments are kept at those.
	smallCall = 256
)

// A linked import keeps its newest calls, so that a guest that asks the same
// things in a loop has them decoded once; each is judged and recorded like any
// other call.
type linked struct {
	body
	def    def
	h      *Host
	gate   *gate.Gate
	op     *gate.Op
	calls  [places]call
	newest int      // the place that was taken last
	passed abi.Held // the arguments at place 0
}

// A call is one with its own copy of the arguments.
type call struct {
	in     []string
	own    []byte // what in views
	total  int64  // bytes of in, as the guest passed them
	since  uint64 // h.others when it was made
	answer gate.Answer
	denial error // how the guest was told that it is denied
	errno  uint64
}

func (l *linked) respondTo(ctx context.Context, mem []byte, stack []uint64) error {
	h := l.h
	if h.cfg.Secrets != nil {
		h.calling = l.def.name
	}
	if h.unread {
		h.pending, h.failed, h.unread = nil, nil, false
	}
	if err := h.answered.Set(ctx, cap(h.out)); err != nil {
		return err
	}
	n := 2 * l.def.args
	if l.redo != nil && inside(mem, stack[n], stack[n+1]) {
		for i := 1; i < places; i++ {
			c := &l.calls[i]
			if c.since != h.others || !c.same(mem, stack) || !l.gate.Again(&c.answer) {
				continue
			}
			h.moved += c.total
			if c.denial != nil {
				h.failed, h.unread = c.denial, true
				stack[0] = c.errno
				return l.gate.Err()
			}
			resp, err := l.redo(ctx, c.answer.Permit, i)
			return l.respond(ctx, mem, stack, resp, err)
		}
	}
	place, errno, err := l.copyIn(ctx, mem, stack)
	if err != nil {
		return err
	}
	if !inside(mem, stack[n], stack[n+1]) {
		errno = Fault
	}
	resp, err := l.first(ctx, place, errno)
	if err := l.giveUp(ctx); err != nil {
		return err
	}
	return l.respond(ctx, mem, stack, resp, err)
}

// first does the call at a place, unless its arguments have an error.
func (l *linked) first(ctx context.Context, place int, errno Errno) ([]byte, error) {
	h, c := l.h, &l.calls[place]
	if l.redo == nil {
		h.others++ // which may have made known what others are to be asked anew for
	}
	if errno != 0 {
		return nil, l.refuse(errno)
	}
	if !l.def.gated {
		if den, hidden := l.gate.Hidden(l.op); hidden {
			return nil, denied(den, "")
		}
		if !l.gate.Spend() {
			return nil, &Fail{Errno: Dquot, Reason: caps.BudgetExhausted, Hint: "limits.hostcalls_max is used up"}
		}
	}
	if h.cfg.Secrets != nil && l.def.gated {
		for i := range c.in { // a guest hands on handles, never values
			c.in[i] = h.scrubText(c.in[i])
		}
	}
	resp, a, err := l.call(ctx, c.in, place)
	c.since, c.answer, c.denial = h.others, a, nil
	if !a.OK() && err != nil {
		c.denial, c.errno = err, answer(h.errno(err))
	}
	return resp, err
}

// giveUp lets go of arguments that are too large to be kept for the next call.
func (l *linked) giveUp(ctx context.Context) error {
	if len(l.calls[0].own) <= MaxArguments {
		return nil
	}
	l.calls[0].own = nil
	clear(l.calls[0].in)
	return l.passed.Set(ctx, 0)
}

// refuse records a call whose arguments are not even copied.
func (l *linked) refuse(errno Errno) error {
	if l.def.gated {
		l.gate.Refuse(l.op, caps.Request{Family: l.def.family}, "", caps.InvalidRequest)
	}
	if errno == TooBig {
		return &Fail{Errno: errno, Hint: fmt.Sprintf("the arguments of %s are at most %d bytes together", l.def.name,
			max(MaxArguments, l.def.most))}
	}
	return &Fail{Errno: errno, Hint: "a pointer and its length reach beyond the memory"}
}

// respond gives the guest the response of a call, or says why there is none.
func (l *linked) respond(ctx context.Context, mem []byte, stack []uint64, resp []byte, err error) error {
	if err == nil && len(resp) == 0 {
		stack[0] = 0
		return l.gate.Err()
	}
	if err := l.h.answered.Set(ctx, max(len(resp), cap(l.h.out))); err != nil {
		return err
	}
	if l.h.cfg.Secrets != nil && !l.def.framed {
		resp = l.h.scrub(resp)
	}
	l.h.moved += int64(len(resp))
	n := 2 * l.def.args
	dst, _ := view(mem, stack[n], stack[n+1])
	stack[0] = l.h.respond(dst, resp, err)
	return l.gate.Err()
}

// same reports whether the arguments are those of the call.
func (c *call) same(mem []byte, stack []uint64) bool {
	for i, known := range c.in {
		v, ok := view(mem, stack[2*i], stack[2*i+1])
		if !ok || string(v) != known {
			return false
		}
	}
	return true
}

// MaxArguments bounds what one call may pass, in bytes: a largest value and
// whatever names it. More is not even copied. A call whose def says so takes
// more, and gives up the copy when it is over.
const MaxArguments = MaxValue + 64<<10

// copyIn copies the arguments out of guest memory once, to a place; what is
// judged is what is used, whatever the guest writes there later.
func (l *linked) copyIn(ctx context.Context, mem []byte, stack []uint64) (place int, errno Errno, err error) {
	total := 0
	for i := range l.def.args {
		v, ok := view(mem, stack[2*i], stack[2*i+1])
		if !ok {
			return 0, Fault, nil
		}
		if total += len(v); total > max(MaxArguments, l.def.most) {
			return 0, TooBig, nil
		}
	}
	if l.redo != nil && total <= smallCall {
		l.newest = l.newest%(places-1) + 1
		place = l.newest
	}
	c := &l.calls[place]
	c.since, c.total = 0, int64(total)
	l.h.moved += c.total
	if err := l.grow(ctx, place, total); err != nil {
		return 0, 0, err
	}
	rest := c.own[:total]
	for i := range c.in {
		v, _ := view(mem, stack[2*i], stack[2*i+1])
		n := copy(rest, v)
		c.in[i] = unsafe.String(unsafe.SliceData(rest), n)
		rest = rest[n:]
	}
	return place, 0, nil
}

// grow makes room for so many bytes of arguments at a place.
func (l *linked) grow(ctx context.Context, place, total int) error {
	c := &l.calls[place]
	if c.in == nil {
		c.in = make([]string, l.def.args)
	}
	if place > 0 {
		total = smallCall
	}
	if cap(c.own) >= total {
		return nil
	}
	if place == 0 {
		if err := l.passed.Set(ctx, total); err != nil {
			return err
		}
	}
	c.own = make([]byte, total)
	return nil
}

// inside reports whether mem[ptr:ptr+n] is all there.
func inside(mem []byte, ptr, n uint64) bool {
	return uint64(uint32(ptr))+uint64(uint32(n)) <= uint64(len(mem))
}

// view is mem[ptr:ptr+n], or false when that is not all inside.
func view(mem []byte, ptr, n uint64) ([]byte, bool) {
	p, l := uint64(uint32(ptr)), uint64(uint32(n))
	if p+l > uint64(len(mem)) {
		return nil, false
	}
	return mem[p : p+l : p+l], true
}

func answer(e Errno) uint64 { return uint64(-int64(e)) }

func invalid(err error) error {
	var f *Fail
	if errors.As(err, &f) {
		return f
	}
	return &Fail{Errno: Inval, Hint: err.Error()}
}
