package hostcalls

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/hostcalls/hints"
	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/engine/abi"
)

// errDenied is a refusal by the gate; a [refused] says the rest.
var errDenied = errors.New("denied")

// errBudget is a refusal because a budget or limit is used up.
var errBudget = errors.New("budget exhausted")

// errUnavailable is a refusal because this version has no such component.
var errUnavailable = errors.New("unavailable")

// A refused is a denial as the guest is told of it.
type refused struct {
	gate.Denial        // whose Name is the one that the guest gave
	hint        string // "": the usual one
	tool        string // the attached tool that needed it; "": none
}

func (r *refused) Error() string { return r.Unwrap().Error() }

func (r *refused) Unwrap() error {
	switch r.Code {
	case caps.BudgetExhausted, caps.RateLimited:
		return errBudget
	case caps.Unavailable:
		return errUnavailable
	case caps.InvalidRequest:
		return &Fail{Errno: Inval, Hint: noName(r.Request)}
	}
	return errDenied
}

// denied is the error that tells the guest of a denial; hint is the family's own,
// "" the usual one.
func denied(d gate.Denial, hint string) error {
	d.Request.Name = strings.Clone(d.Request.Name) // which may be a view
	return &refused{Denial: d, hint: hint}
}

// permit has r admitted for op. The error is a refusal.
func (h *Host) permit(op *gate.Op, r caps.Request, target string, args *[32]byte) (gate.Permit, error) {
	a := h.cfg.Gate.Admit(op, r, target, args)
	if !a.OK() {
		return a.Permit, denied(a.Denial, "")
	}
	return a.Permit, nil
}

// refuse records that r is refused for a reason of the family's own, and hints at
// why unless the policy refuses it already; "" is the usual hint.
func (h *Host) refuse(op *gate.Op, r caps.Request, target string, own caps.Code, why string) error {
	d := h.cfg.Gate.Refuse(op, r, target, own)
	if d.Code != own {
		why = ""
	}
	return denied(d, why)
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
	return number(h.errno(err))
}

func (h *Host) errno(err error) Errno {
	var f *Fail
	switch {
	case errors.As(err, &f):
		if errnoWords[f.Errno] == "" { // an added function's own
			return IO
		}
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

// An Answer is what a guest reads after a call that was refused or failed.
type Answer struct {
	Errno      string `json:"error"`
	Capability string `json:"capability"`
	Reason     string `json:"reason"`
	Hint       string `json:"hint"`
	Tool       string `json:"tool,omitempty"`
}

func (a *Answer) Error() string {
	if a.Hint == "" {
		return a.Reason
	}
	return a.Reason + ": " + a.Hint
}

// ParseAnswer reads one as guests do.
func ParseAnswer(text []byte) (*Answer, error) {
	a := &Answer{}
	return a, strictjson.Unmarshal(text, a)
}

// explain is the JSON object that response_read gives after an error. An error
// of the host's own is not spelled out: the guest gets its number alone.
func (h *Host) explain(errno Errno, err error) []byte {
	d := Answer{Errno: errno.String(), Reason: errno.String()}
	var f *Fail
	var r *refused
	switch {
	case errors.As(err, &f):
		d.Reason, d.Hint = caps.InvalidRequest.String(), f.Hint
		if f.Errno != Inval {
			d.Reason = f.Errno.String()
		}
		if f.Reason != 0 {
			d.Reason = f.Reason.String()
		}
	case errors.As(err, &r):
		d.Capability, d.Reason, d.Tool = r.Request.String(), r.Code.String(), r.tool
		d.Hint = h.hint(r)
	default:
		d.Hint = "the host could not do it; its log says why"
	}
	text, jsonErr := json.Marshal(d)
	if jsonErr != nil {
		return nil
	}
	return text
}

// hint says what would have to change for a call that was refused.
func (h *Host) hint(r *refused) string {
	by := h.conditionHint(r.Code) // of this refusal alone
	if r.hint != "" {
		return r.hint
	}
	if by != "" {
		return by
	}
	if r.Code == caps.BudgetExhausted && h.cfg.Gate.Spent() {
		return "limits.hostcalls_max of this run is used up; the operator raises it under [limits]"
	}
	if r.Label != "" {
		return taintHint(r.Denial)
	}
	return hints.Of(r.Request, r.Code, r.Layer)
}

// noName says what is wrong with a request whose name is none of its family.
func noName(r caps.Request) string {
	switch r.Family {
	case caps.KBRead, caps.KBWrite:
		return fmt.Sprintf("domain: %q is not the name of one: a letter, then letters, digits, - and _, all lower-case; "+
			"X_raw is a grant beside X and no domain", printable(r.Name))
	case caps.MCP:
		return fmt.Sprintf("server: %q is not the name of one: letters, digits, - _ and .", printable(r.Name))
	case caps.Agents:
		return fmt.Sprintf("agent: %q is not the name of one: a letter, then letters, digits, - and _, all lower-case",
			printable(r.Name))
	}
	return fmt.Sprintf("%q cannot be asked for in %s", printable(r.Name), r.Family)
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
				stack[0] = uint64(uint32(number(Fault)))
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

func number(e Errno) uint64 { return uint64(-int64(e)) }

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
