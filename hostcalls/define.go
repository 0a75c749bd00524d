package hostcalls

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/abi"
	"runloop.dev/rlp/internal/audit"
)

// A def is one import: its name, how many (ptr, len) pairs it takes before the
// response's, and how it is bound to a run.
type def struct {
	name   string
	args   int
	gated  bool
	framed bool
	family caps.Family
	most   int // what it may pass, in bytes, when that is more than MaxArguments
	bind   func(h *Host, op *gate.Op) body
}

// A body is an import bound to a run: arguments in, response (a part of h.out
// or memory of its own) out.
type body struct {
	// call also leaves the gate's answer, when it judged what was asked.
	call func(ctx context.Context, in []string, a *gate.Answer) ([]byte, error)
	// redo does what call did last, once more, with the gate's permit; nil when
	// the same arguments may get another answer.
	redo func(ctx context.Context, p gate.Permit) ([]byte, error)
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
		repeats := g.payload == nil && g.budget == nil && g.confirm == nil
		var last R
		do := g.doer(op)
		b := body{call: func(ctx context.Context, in []string, a *gate.Answer) ([]byte, error) {
			r, permit, err := g.admit(ctx, h, op, in, a)
			if err != nil {
				return nil, err
			}
			if repeats {
				last = r
			}
			return do(ctx, h, permit, r)
		}}
		if repeats {
			b.redo = func(ctx context.Context, p gate.Permit) ([]byte, error) { return do(ctx, h, p, last) }
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
func (g *gated[R]) admit(ctx context.Context, h *Host, op *gate.Op, in []string, a *gate.Answer) (R, gate.Permit, error) {
	r, err := g.decode(in)
	if err != nil {
		h.cfg.Gate.Refuse(op, caps.Request{Family: g.family}, "", caps.InvalidRequest)
		return r, gate.Permit{}, invalid(err)
	}
	if g.prepare != nil {
		made := r // r itself stays on the stack
		if op, err = g.prepare(ctx, h, op, &made); err != nil {
			return made, gate.Permit{}, err
		}
		r = made
	}
	permit, err := g.judge(ctx, h, op, &r, a)
	return r, permit, err
}

// judge has a request judged that was made of what was decoded.
func (g *gated[R]) judge(ctx context.Context, h *Host, op *gate.Op, made *R, a *gate.Answer) (gate.Permit, error) {
	if g.resolve != nil {
		whole := *made // made itself is on the caller's stack
		own, why := g.resolve(h, &whole)
		*made = whole
		if why != "" {
			if req, target := g.touches(whole); h.cfg.Gate.Set().Check(req).Allow {
				return gate.Permit{}, g.denied(h, whole, h.because(h.cfg.Gate.Refuse(op, req, target, own), own, why))
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
			return gate.Permit{}, g.denied(h, r, h.denied(h.cfg.Gate.Refuse(op, req, target, code)))
		}
	}
	h.consent = ""
	if g.confirm != nil {
		if q, ask := g.confirm(h, r); ask && h.cfg.Gate.Would(op, req) { // nobody is asked about what the policy refuses
			if why := h.unconfirmed(ctx, q); why != "" {
				return gate.Permit{}, g.denied(h, r, h.because(h.cfg.Gate.Refuse(op, req, target, caps.NotConfirmed), caps.NotConfirmed, why))
			}
		}
	}
	var args *[32]byte
	if g.payload != nil {
		sum := h.cfg.Gate.ArgsHash(op, g.payload(r)...)
		args = &sum
	}
	permit, ok := h.cfg.Gate.Admit(op, req, target, args)
	*a = h.cfg.Gate.LastAnswer()
	if !ok {
		return permit, g.denied(h, r, h.denied(h.cfg.Gate.LastCode()))
	}
	return permit, nil
}

// denied is a refusal in the words of who asked.
func (g *gated[R]) denied(h *Host, r R, err error) error {
	if g.asked == nil {
		return err
	}
	return h.inWordsOf(g.asked(r), err)
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
		return body{call: func(ctx context.Context, in []string, _ *gate.Answer) ([]byte, error) { return do(ctx, h, in) }}
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
	l := &linked{h: h, gate: h.cfg.Gate, op: op, def: d, body: d.bind(h, op), in: make([]string, d.args)}
	return abi.Func{
		Module: ImportModule, Name: d.name, Params: d.params(), Results: []abi.Type{abi.I64}, Call: l.respondTo,
		Cost: d.cost(), Moved: &h.moved,
	}
}

// A linked import has its own copy of the arguments of its last call.
type linked struct {
	body
	def     def
	h       *Host
	gate    *gate.Gate
	op      *gate.Op
	answer  gate.Answer // the gate's to the last call
	refusal refusal     // what was said when that was no
	in      []string
	total   int64    // bytes of in, as the guest passed them
	own     []byte   // what in views
	passed  abi.Held // own
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
	n := len(l.in)
	ok := inside(mem, stack[2*n], stack[2*n+1])
	// A guest that asks the same thing in a loop: the request is decoded, gate
	// and journal know it, and it is judged and recorded like any other.
	if ok && l.redo != nil && l.same(mem, stack) {
		if permit, known := l.gate.Again(&l.answer); known {
			h.moved += l.total
			if !permit.OK() {
				stack[0] = l.refuseAgain()
				return l.gate.Err()
			}
			resp, err := l.redo(ctx, permit)
			if err == nil && len(resp) == 0 {
				stack[0] = 0
				return l.gate.Err()
			}
			dst, _ := view(mem, stack[2*n], stack[2*n+1])
			return l.respond(ctx, dst, stack, resp, err)
		}
	}
	dst, _ := view(mem, stack[2*n], stack[2*n+1])
	l.answer = gate.Answer{}
	errno, err := l.copyIn(ctx, mem, stack)
	if err != nil {
		return err
	}
	if !ok {
		errno = Fault
	}
	if errno != 0 {
		return l.respond(ctx, dst, stack, nil, l.refuse(errno))
	}
	if !l.def.gated && l.gate.Hidden(l.op) {
		return l.respond(ctx, dst, stack, nil, h.denied(l.gate.LastCode()))
	}
	if !l.def.gated && !l.gate.Spend() {
		return l.respond(ctx, dst, stack, nil, &Fail{Errno: Dquot, Reason: caps.BudgetExhausted, Hint: "limits.hostcalls_max is used up"})
	}
	if h.cfg.Secrets != nil && l.def.gated {
		for i := range l.in { // a guest hands on handles, never values
			l.in[i] = h.scrubText(l.in[i])
		}
	}
	resp, err := l.call(ctx, l.in, &l.answer)
	if err := l.giveUp(ctx); err != nil {
		return err
	}
	return l.respond(ctx, dst, stack, resp, err)
}

// giveUp lets go of arguments that are too large to be kept for the next call.
func (l *linked) giveUp(ctx context.Context) error {
	if len(l.own) <= MaxArguments {
		return nil
	}
	l.own = nil
	clear(l.in)
	return l.passed.Set(ctx, 0)
}

// A refusal is how the guest was told of a denial.
type refusal struct {
	of   gate.Answer
	err  error
	word uint64
}

// refuseAgain tells the guest of the same denial as before.
func (l *linked) refuseAgain() uint64 {
	h, r := l.h, &l.refusal
	if r.of != l.answer {
		r.of, r.err = l.answer, h.denied(l.gate.LastCode())
		r.word = h.respond(nil, nil, r.err)
	}
	h.failed, h.unread = r.err, true
	return r.word
}

// refuse records a call whose arguments are not even copied.
func (l *linked) refuse(errno Errno) error {
	if l.def.gated {
		l.gate.Refuse(l.op, caps.Request{Family: l.def.family}, "", caps.InvalidRequest)
	}
	if errno == TooBig {
		return &Fail{Errno: errno, Hint: fmt.Sprintf("the arguments of %s are at most %d bytes together", l.def.name, max(MaxArguments, l.def.most))}
	}
	return &Fail{Errno: errno, Hint: "a pointer and its length reach beyond the memory"}
}

func (l *linked) respond(ctx context.Context, dst []byte, stack []uint64, resp []byte, err error) error {
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
	stack[0] = l.h.respond(dst, resp, err)
	return l.gate.Err()
}

// same reports whether the arguments are those of the last call.
func (l *linked) same(mem []byte, stack []uint64) bool {
	for i, last := range l.in {
		v, ok := view(mem, stack[2*i], stack[2*i+1])
		if !ok || string(v) != last {
			return false
		}
	}
	return true
}

// MaxArguments bounds what one call may pass, in bytes: a largest value and
// whatever names it. More is not even copied. A call whose def says so takes
// more, and gives up the copy when it is over.
const MaxArguments = MaxValue + 64<<10

// copyIn copies the arguments out of guest memory once; what is judged is what
// is used, whatever the guest writes there later.
func (l *linked) copyIn(ctx context.Context, mem []byte, stack []uint64) (Errno, error) {
	total := 0
	for i := range l.in {
		v, ok := view(mem, stack[2*i], stack[2*i+1])
		if !ok {
			return Fault, nil
		}
		if total += len(v); total > max(MaxArguments, l.def.most) {
			return TooBig, nil
		}
	}
	l.total = int64(total)
	l.h.moved += l.total
	if cap(l.own) < total {
		if err := l.passed.Set(ctx, total); err != nil {
			return 0, err
		}
		l.own = make([]byte, total)
	}
	rest := l.own[:total]
	for i := range l.in {
		v, _ := view(mem, stack[2*i], stack[2*i+1])
		n := copy(rest, v)
		l.in[i] = unsafe.String(unsafe.SliceData(rest), n)
		rest = rest[n:]
	}
	return 0, nil
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
