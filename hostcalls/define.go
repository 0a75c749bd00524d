package hostcalls

import (
	"context"
	"errors"
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
	family caps.Family
	bind   func(h *Host, op *gate.Op) body
}

// body is an import bound to a run: arguments in, response (a part of h.out or
// memory of its own) out.
type body func(ctx context.Context, in []string) ([]byte, error)

// gated is an import that touches something: decode makes the one value that
// the gate judges and do uses; touches says what it would touch; do runs only
// with the gate's permit.
type gated[R any] struct {
	decode  func(in []string) (R, error)
	touches func(r R) (req caps.Request, target string)
	// payload is what the record's args_hash covers beyond the target; nil
	// when the target is all there is.
	payload func(r R) [][]byte
	// budget refuses what is over a limit, before anything happens; nil: none.
	budget func(h *Host, r R) (caps.Code, bool)
	// done asks for a second record that says what came of the call.
	done bool
	do   func(ctx context.Context, h *Host, p gate.Permit, r R) ([]byte, error)
}

// define makes a gated import of family f. It is the only way into the table
// for a call that touches anything.
func define[R any](name string, args int, f caps.Family, g gated[R]) def {
	return def{name: name, args: args, gated: true, family: f, bind: func(h *Host, op *gate.Op) body {
		return func(ctx context.Context, in []string) ([]byte, error) { return g.call(ctx, h, op, f, in) }
	}}
}

func (g *gated[R]) call(ctx context.Context, h *Host, op *gate.Op, f caps.Family, in []string) ([]byte, error) {
	r, err := g.decode(in)
	if err != nil {
		h.cfg.Gate.Refuse(op, caps.Request{Family: f}, "", caps.InvalidRequest)
		return nil, invalid(err)
	}
	req, target := g.touches(r)
	if g.budget != nil {
		if code, over := g.budget(h, r); over {
			return nil, h.denied(h.cfg.Gate.Refuse(op, req, target, code))
		}
	}
	var args *[32]byte
	if g.payload != nil {
		sum := h.cfg.Gate.ArgsHash(op, g.payload(r)...)
		args = &sum
	}
	permit, ok := h.cfg.Gate.Admit(op, req, target, args)
	if !ok {
		return nil, h.denied(h.cfg.Gate.LastCode())
	}
	if !g.done {
		return g.do(ctx, h, permit, r)
	}
	return h.recorded(op, func() ([]byte, error) { return g.do(ctx, h, permit, r) })
}

// recorded runs do and records what came of it.
func (h *Host) recorded(op *gate.Op, do func() ([]byte, error)) ([]byte, error) {
	start := h.cfg.Now()
	out, err := do()
	e := audit.Event{Verb: op.String(), Status: "ok", DurationMS: float64(h.cfg.Now()-start) / 1e6, Bytes: int64(len(out))}
	if err != nil {
		e.Status, e.Severity, e.ErrorSummary, e.Bytes = "error", audit.Warn, summary(err), 0
	} else {
		e.ResultHash = hexSum(h.cfg.Gate.ArgsHash(op, out))
	}
	if err := h.cfg.Gate.Done(&e); err != nil {
		return nil, err
	}
	return out, err
}

// ungated is an import that touches nothing beyond the run itself.
func ungated(name string, args int, do func(h *Host, in []string) ([]byte, error)) def {
	return def{name: name, args: args, bind: func(h *Host, _ *gate.Op) body {
		return func(_ context.Context, in []string) ([]byte, error) { return do(h, in) }
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
	run, in := d.bind(h, op), make([]string, d.args)
	return abi.Func{
		Module: ImportModule, Name: d.name, Params: d.params(), Results: []abi.Type{abi.I64},
		Call: func(ctx context.Context, mem []byte, stack []uint64) error {
			if h.pending != nil || h.failed != nil {
				h.pending, h.failed = nil, nil
			}
			dst, ok := view(mem, stack[2*d.args], stack[2*d.args+1])
			errno := h.copyIn(mem, stack, in)
			if !ok {
				errno = Fault
			}
			if errno != 0 {
				stack[0] = answer(errno)
				return h.cfg.Gate.Err()
			}
			resp, err := run(ctx, in)
			if gateErr := h.cfg.Gate.Err(); gateErr != nil {
				return gateErr
			}
			stack[0] = h.respond(dst, resp, err)
			return nil
		},
	}
}

// MaxArguments bounds what one call may pass, in bytes: a largest value and
// whatever names it. More is not even copied.
const MaxArguments = MaxValue + 64<<10

// copyIn copies the arguments out of guest memory once; what is judged is what
// is used, whatever the guest writes there later.
func (h *Host) copyIn(mem []byte, stack []uint64, in []string) Errno {
	total := 0
	for i := range in {
		v, ok := view(mem, stack[2*i], stack[2*i+1])
		if !ok {
			return Fault
		}
		if total += len(v); total > MaxArguments {
			return TooBig
		}
	}
	if cap(h.in) < total {
		h.in = make([]byte, total)
	}
	rest := h.in[:total]
	for i := range in {
		v, _ := view(mem, stack[2*i], stack[2*i+1])
		n := copy(rest, v)
		in[i] = unsafe.String(unsafe.SliceData(rest), n)
		rest = rest[n:]
	}
	return 0
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
