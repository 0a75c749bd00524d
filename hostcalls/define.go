package hostcalls

import (
	"context"
	"errors"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/record/audit"
)

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
				return gate.Answer{}, g.told(whole, h.cfg.refuse(op, req, target, own, why))
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
			return gate.Answer{}, g.told(r, h.cfg.refuse(op, req, target, code, ""))
		}
	}
	h.consent = ""
	if g.confirm != nil {
		if q, ask := g.confirm(h, r); ask && h.cfg.Gate.Would(op, req) { // nobody is asked about what the policy refuses
			if why := h.unconfirmed(ctx, q); why != "" {
				return gate.Answer{}, g.told(r, h.cfg.refuse(op, req, target, caps.NotConfirmed, why))
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
	*e = audit.Event{Bytes: int64(len(out))}
	if err == nil {
		e.ResultHash = hexSum(h.cfg.Gate.ResultHash(out))
	}
	if err := h.concluded(op, start, e, err); err != nil {
		return nil, err
	}
	return out, err
}

// concluded records what came of a call that began at start: e, or err.
func (h *Host) concluded(op *gate.Op, start int64, e *audit.Event, err error) error {
	e.Verb, e.Status, e.ErrorSummary = op.String(), "ok", h.remark
	e.DurationMS = float64(h.cfg.Now()-start) / 1e6
	if err != nil {
		e.Status, e.Severity, e.ErrorSummary, e.Bytes = "error", audit.Warn, summary(h.scrubText(h.failure(op, err))), 0
	}
	return h.cfg.Gate.Done(e)
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
	f := d.signature()
	f.Call, f.Cost, f.Moved = d.linked(h, op).answer(), d.cost(), &h.moved
	return f
}

func (d def) linked(h *Host, op *gate.Op) *linked {
	return &linked{h: h, gate: h.cfg.Gate, op: op, def: d, body: d.bind(h, op)}
}

// signature is the function without anything behind it.
func (d def) signature() abi.Func {
	module, name := d.imported()
	return abi.Func{Module: module, Name: name, Params: d.params(), Results: []abi.Type{abi.I64}}
}

func invalid(err error) error {
	var f *Fail
	if errors.As(err, &f) {
		return f
	}
	return &Fail{Errno: Inval, Hint: err.Error()}
}

// imported is the module and the name by which guests import d.
func (d *def) imported() (module, name string) {
	if d.module == "" {
		return ImportModule, d.name
	}
	return d.module, strings.TrimPrefix(d.name, d.module+".")
}
