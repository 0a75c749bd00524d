package hostcalls

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/abi"
)

// errDenied stands for a refusal by the gate, whose LastDenial says the rest.
var errDenied = errors.New("denied")

// errBudget is a refusal because a budget or limit is used up.
var errBudget = errors.New("budget exhausted")

// errUnavailable is a refusal because this version has no such component.
var errUnavailable = errors.New("unavailable")

func (h *Host) denied(code caps.Code) error {
	switch code {
	case caps.BudgetExhausted, caps.RateLimited:
		return errBudget
	case caps.Unavailable:
		return errUnavailable
	case caps.InvalidRequest:
		return &Fail{Errno: Inval, Hint: noName(h.cfg.Gate.LastDenial().Request)}
	}
	return errDenied
}

// An explained refusal has a hint of its family's own, or speaks of what was
// asked for by the name that the guest gave it.
type explained struct {
	error
	hint  string // "": the usual one
	asked string // "": the name that was judged
	tool  string // the attached tool that needed it; "": none
}

func (e *explained) Unwrap() error { return e.error }

// because is [Host.denied] with a hint, when own is what it was refused for.
func (h *Host) because(code, own caps.Code, hint string) error {
	if code != own {
		return h.denied(code)
	}
	return &explained{error: h.denied(code), hint: hint}
}

// inWordsOf is a refusal of the gate that does not say by which name it judged.
func (h *Host) inWordsOf(asked string, err error) error {
	if f := (*Fail)(nil); errors.As(err, &f) {
		req := h.cfg.Gate.LastDenial().Request
		req.Name = asked
		return &Fail{Errno: f.Errno, Hint: noName(req)}
	}
	if x := (*explained)(nil); errors.As(err, &x) {
		return &explained{error: x.error, hint: x.hint, asked: asked}
	}
	return &explained{error: err, asked: asked}
}

// respond gives the guest its answer: the response when there is room, its
// length in any case, or minus an error number.
func (h *Host) respond(dst, resp []byte, err error) uint64 {
	if err == nil {
		if len(resp) <= len(dst) {
			copy(dst, resp)
		} else {
			h.pending, h.unread = resp, true
		}
		return uint64(len(resp))
	}
	h.failed, h.unread = err, true
	return answer(h.errno(err))
}

func (h *Host) errno(err error) Errno {
	switch err { // refusals of the gate come as they are, and often
	case errDenied:
		return Acces
	case errBudget:
		return Dquot
	case errUnavailable:
		return Notsup
	}
	var f *Fail
	switch {
	case errors.As(err, &f):
		return f.Errno
	case errors.Is(err, errDenied):
		return Acces
	case errors.Is(err, errBudget):
		return Dquot
	case errors.Is(err, errUnavailable):
		return Notsup
	case errors.Is(err, context.DeadlineExceeded):
		return TimedOut
	}
	return IO
}

// explain is the JSON object that response_read gives after an error. An error
// of the host's own is not spelled out: the guest gets its number alone.
func (h *Host) explain(errno Errno, err error) []byte {
	d := struct {
		Error      string `json:"error"`
		Capability string `json:"capability"`
		Reason     string `json:"reason"`
		Hint       string `json:"hint"`
		Tool       string `json:"tool,omitempty"`
	}{Error: errno.String(), Reason: errno.String()}
	var f *Fail
	switch {
	case errors.As(err, &f):
		d.Reason, d.Hint = caps.InvalidRequest.String(), f.Hint
		if f.Errno != Inval {
			d.Reason = f.Errno.String()
		}
		if f.Reason != 0 {
			d.Reason = f.Reason.String()
		}
	case errors.Is(err, errDenied), errors.Is(err, errBudget), errors.Is(err, errUnavailable):
		den := h.cfg.Gate.LastDenial()
		x := (*explained)(nil)
		if errors.As(err, &x) && x.asked != "" {
			den.Request.Name = x.asked
		}
		d.Capability, d.Reason = den.Request.String(), den.Code.String()
		d.Hint = hint(den.Request, den.Code, den.Layer)
		if den.Label != "" {
			d.Hint = taintHint(den)
		}
		if den.Code == caps.BudgetExhausted && h.cfg.Gate.Spent() {
			d.Hint = "limits.hostcalls_max of this run is used up; the operator raises it under [limits]"
		}
		if by := h.conditionHint(den.Code); by != "" {
			d.Hint = by
		}
		if x != nil && x.hint != "" {
			d.Hint = x.hint
		}
		if x != nil && x.tool != "" {
			d.Tool = x.tool
		}
	default:
		d.Hint = "the host could not do it; its log says why"
	}
	text, jsonErr := json.Marshal(d)
	if jsonErr != nil {
		return nil
	}
	return text
}

// hint says what would have to change for the call to be allowed.
func hint(r caps.Request, code caps.Code, layer string) string {
	switch code {
	case caps.Unavailable:
		return "this version of rlp has no " + r.Family.String() + " component"
	case caps.BudgetExhausted, caps.RateLimited:
		return limitHint(r.Family, code)
	case caps.AddressNotPermitted:
		return addressHint(r)
	case caps.SecretUnknown:
		return unknownSecretHint(r)
	}
	if code == caps.ToolHidden {
		return hiddenHint(layer)
	}
	line := policyLine(r)
	if code == caps.MethodNotPermitted {
		line = methodLine(r)
	}
	if layer == "" {
		return fmt.Sprintf("policy.caps does not ask for it; it would need %s", line)
	}
	return fmt.Sprintf("%s takes it away; it would have to leave %s", layer, line)
}

// hiddenHint says who hides a tool.
func hiddenHint(layer string) string {
	if layer == "" {
		return "there is no such tool for this run"
	}
	return layer + " hides the tool; its [tools] allow, [visible] categories and [deny] tools would have to leave it"
}

// limitHint names the limit of family f that is used up.
func limitHint(f caps.Family, code caps.Code) string {
	limit := "a limit"
	switch f {
	case caps.Net:
		return netLimitHint(code)
	case caps.Exec:
		limit = "limits.exec_spawns"
	case caps.KBWrite:
		limit = "limits.kb_write_bytes"
	case caps.Agents:
		if code == caps.RateLimited {
			return "agents that this run launched did not stop when their runs were over; no more are launched beside them"
		}
		limit = "limits.max_depth"
	}
	return limit + " of this run is used up; the operator raises it under [limits]"
}

// noName says what is wrong with a request whose name is none of its family.
func noName(r caps.Request) string {
	switch r.Family {
	case caps.KBRead, caps.KBWrite:
		return fmt.Sprintf("domain: %q is not the name of one: a letter, then letters, digits, - and _, all lower-case; X_raw is a grant beside X and no domain", printable(r.Name))
	case caps.MCP:
		return fmt.Sprintf("server: %q is not the name of one: letters, digits, - _ and .", printable(r.Name))
	case caps.Agents:
		return fmt.Sprintf("agent: %q is not the name of one: a letter, then letters, digits, - and _, all lower-case", printable(r.Name))
	}
	return fmt.Sprintf("%q cannot be asked for in %s", printable(r.Name), r.Family)
}

// policyLine is the line of a policy that would grant r.
func policyLine(r caps.Request) string {
	key := r.Family.String()
	switch {
	case r.Family == caps.Time:
		return "time = true"
	case r.Family == caps.Net:
		return netLine(r)
	case r.Family == caps.Secrets && r.Mode == caps.Use:
		return secretLine(r.Name)
	case r.Family == caps.FS && r.Mode != caps.Read:
		key = "fs_rw"
	}
	return fmt.Sprintf("%s = [%q]", key, r.Name)
}

// responseRead gives the guest what did not fit.
func (h *Host) responseRead() abi.Func {
	return abi.Func{
		Module: ImportModule, Name: "response_read",
		Params: []abi.Type{abi.I32, abi.I32}, Results: []abi.Type{abi.I32},
		Cost: costCall, Moved: &h.moved,
		Call: func(_ context.Context, mem []byte, stack []uint64) error {
			dst, ok := view(mem, stack[0], stack[1])
			if !ok {
				stack[0] = uint64(uint32(answer(Fault)))
				return nil
			}
			if h.failed != nil { // spelled out only for who asks
				h.pending, h.failed = h.scrub(h.explain(h.errno(h.failed), h.failed)), nil
			}
			n := copy(dst, h.pending)
			h.pending = h.pending[n:]
			h.moved += int64(n)
			stack[0] = uint64(uint32(n))
			return nil
		},
	}
}

// failure is what the record of a call says of err. What was made into an answer
// for the guest has words of rlp's own; what a library or the system says, with
// places of the host in it, is for the host's log alone.
func (h *Host) failure(op *gate.Op, err error) string {
	var f *Fail
	switch {
	case errors.As(err, &f), errors.Is(err, errDenied), errors.Is(err, errBudget), errors.Is(err, errUnavailable):
		return err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "timedout: the call did not end in time"
	case errors.Is(err, context.Canceled):
		return "io: the call was ended with its run"
	}
	if h.cfg.Failed != nil {
		h.cfg.Failed(op.String(), h.scrubText(err.Error()))
	}
	return "io: the host failed; its log says why"
}

// summary is what the log may show of an error, without the values of secrets:
// at most 200 bytes.
func summary(s string) string {
	if len(s) > 200 {
		s = s[:200]
	}
	return s
}

func hexSum(sum [32]byte) string {
	var text [2 * len(sum)]byte
	hex.Encode(text[:], sum[:])
	return string(text[:])
}
