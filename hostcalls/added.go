package hostcalls

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
)

// Touching is a request that says what it touches: the mode and the scope, of the
// family that its function was made with.
type Touching interface {
	Touches() (caps.Mode, string)
}

// NewAdded makes a host function of one argument. parse makes the request of a copy
// of the guest's bytes. The request is judged by what it says that it touches,
// recorded, and only then handed to do with the gate's permit.
func NewAdded[R Touching](module, name string, f caps.Family, parse func(request []byte) (R, error),
	do func(ctx context.Context, p gate.Permit, r R) ([]byte, error),
) Added {
	d := define(module+"."+name, 1, f, gated[addedReq[R]]{
		decode:  func(in []string) (addedReq[R], error) { return parseAdded(f, in[0], parse) },
		touches: func(r addedReq[R]) (caps.Request, string) { return r.touched, r.touched.Name },
		payload: func(r addedReq[R]) [][]byte { return [][]byte{bytesOf(r.text)} },
		budget:  func(h *Host, r addedReq[R]) (caps.Code, bool) { return addedOver(h, f, int64(len(r.text))) },
		confirm: func(h *Host, r addedReq[R]) (Question, bool) {
			return Question{Tool: module + "." + name, Target: r.touched.Name, Arguments: r.text},
				h.cfg.ConfirmExternal && caps.EffectOf(f, r.touched.Mode) != caps.IORead
		},
		done: true,
		do: func(ctx context.Context, h *Host, p gate.Permit, r addedReq[R]) ([]byte, error) {
			takeAdded(h, f, int64(len(r.text)))
			out, err := do(ctx, p, r.own)
			if f == caps.Net {
				h.budget.Take(caps.NetBytes, int64(len(out)))
			}
			if marked := markedBy(h, r.touched); marked != nil {
				return nil, marked
			}
			return out, err
		},
	})
	d.module, d.empty = module, parse == nil || do == nil
	return Added{d}
}

// An addedReq is a request of an added function as the gate judges it.
type addedReq[R Touching] struct {
	own     R
	touched caps.Request
	text    string // as it came: a view
}

// parseAdded makes the request, from a copy that is the function's to keep.
func parseAdded[R Touching](f caps.Family, text string, parse func([]byte) (R, error)) (addedReq[R], error) {
	own, err := parse(bytes.Clone(bytesOf(text)))
	if err != nil {
		return addedReq[R]{}, err
	}
	mode, scope := own.Touches()
	if !caps.AllModes(f).Has(mode) || !caps.IsName(f, scope) && (f != caps.Time || scope != "*") {
		return addedReq[R]{}, &Fail{Errno: Inval, Hint: "the request names nothing that a policy can grant"}
	}
	return addedReq[R]{own, caps.Request{Family: f, Mode: mode, Name: scope}, text}, nil
}

// addedOver refuses a request of so many bytes that a limit or a condition does not
// leave. Those on encryption, redirects and time are for the function to keep.
func addedOver(h *Host, f caps.Family, size int64) (caps.Code, bool) {
	over := false
	switch f {
	case caps.Net:
		if h.budget.Busy(h.cfg.Now()) {
			return caps.RateLimited, true
		}
		over = h.over(caps.NetMaxRequestBytes, size) || !h.budget.Allows(caps.NetBytes, size)
	case caps.KBWrite:
		over = h.over(caps.KBMaxValueBytes, size) || !h.budget.Allows(caps.KBWriteBytes, size)
	case caps.Exec:
		over = !h.budget.Allows(caps.ExecSpawns, 1)
	}
	return caps.BudgetExhausted, over
}

// takeAdded counts a request that is about to be done.
func takeAdded(h *Host, f caps.Family, size int64) {
	switch f {
	case caps.Net:
		h.sending(size)
	case caps.KBWrite:
		h.budget.Take(caps.KBWriteBytes, size)
	case caps.Exec:
		h.budget.Take(caps.ExecSpawns, 1)
	}
}

// markedBy marks the run before it has what an added function answers, where what
// the function touched is not to be trusted.
func markedBy(h *Host, r caps.Request) error {
	if r.Family == caps.FS {
		r.Mode = caps.Read
	}
	if r.Family != caps.MCP && r.Family != caps.Agents && !h.cfg.Sources.marks(r) {
		return nil
	}
	return h.takeIn(r.Family, r.Name)
}

// Scope is the function's scope on the axis of tools, by which layers hide it.
func (a Added) Scope() string { return addedScope(a.name) }

func addedScope(name string) string { return "tools:" + name }

// op is the operation that calls of d are judged and recorded as.
func (d *def) op(g *gate.Gate) (*gate.Op, error) {
	op, err := g.Op(d.name)
	if err == nil && d.module != "" {
		op, err = g.ToolOp(op, addedScope(d.name), d.name)
	}
	return op, err
}

// CheckAdded refuses functions that no guest could import, or that could be taken
// for others.
func CheckAdded(list []Added) error {
	known := map[string]bool{}
	for i := range list {
		d := &list[i].def
		module, name := d.imported()
		switch {
		case d.bind == nil || d.empty:
			return fmt.Errorf("host function %d: make it by Define, with functions that parse and do it", i+1)
		case !isImportWord(module) || !isImportWord(name):
			return fmt.Errorf("host function %q: module and name begin with a letter, and have a-z, 0-9 and _ (at most 64)",
				d.name)
		case strings.HasPrefix(module, "wasi") || strings.HasPrefix(module, "runloop") || strings.HasPrefix(module, "rlp"):
			return fmt.Errorf("host function %q: modules that begin with wasi, runloop or rlp are not the program's own",
				d.name)
		case d.family >= caps.NumFamilies:
			return fmt.Errorf("host function %q: %s is no family that policies grant", d.name, d.family)
		case known[d.name]:
			return fmt.Errorf("host function %q is there twice", d.name)
		}
		known[d.name] = true
	}
	return nil
}

// isImportWord reports whether s is a name of a module or function of a program.
func isImportWord(s string) bool {
	return s != "" && len(s) <= 64 && s[0] >= 'a' && s[0] <= 'z' && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_'
	})
}
