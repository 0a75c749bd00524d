package hostcalls

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"runloop.dev/rlp/caps"
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
		return &Fail{Errno: Inval, Hint: "the request makes no sense to the gate"}
	}
	return errDenied
}

// respond gives the guest its answer: the response when there is room, its
// length in any case, or minus an error number.
func (h *Host) respond(dst, resp []byte, err error) uint64 {
	if err == nil {
		if len(resp) <= len(dst) {
			copy(dst, resp)
		} else {
			h.pending = resp
		}
		return uint64(len(resp))
	}
	h.failed = err
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
	}{Error: errno.String(), Reason: errno.String()}
	var f *Fail
	switch {
	case errors.As(err, &f):
		d.Reason, d.Hint = caps.InvalidRequest.String(), f.Hint
		if f.Errno != Inval {
			d.Reason = f.Errno.String()
		}
	case errors.Is(err, errDenied), errors.Is(err, errBudget), errors.Is(err, errUnavailable):
		den := h.cfg.Gate.LastDenial()
		d.Capability, d.Reason = den.Request.String(), den.Code.String()
		d.Hint = hint(den.Request, den.Code, den.Layer)
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
		return "a limit of this run is used up"
	}
	line := policyLine(r)
	if layer == "" {
		return fmt.Sprintf("policy.caps does not ask for it; it would need %s", line)
	}
	return fmt.Sprintf("%s takes it away; it would have to leave %s", layer, line)
}

// policyLine is the line of a policy that would grant r.
func policyLine(r caps.Request) string {
	key := r.Family.String()
	switch {
	case r.Family == caps.Time:
		return "time = true"
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
		Call: func(_ context.Context, mem []byte, stack []uint64) error {
			dst, ok := view(mem, stack[0], stack[1])
			if !ok {
				stack[0] = uint64(uint32(answer(Fault)))
				return nil
			}
			if h.failed != nil { // spelled out only for who asks
				h.pending, h.failed = h.explain(h.errno(h.failed), h.failed), nil
			}
			n := copy(dst, h.pending)
			h.pending = h.pending[n:]
			stack[0] = uint64(uint32(n))
			return nil
		},
	}
}

// summary is an error as the log may show it: at most 200 bytes.
func summary(err error) string {
	s := err.Error()
	if len(s) > 200 {
		s = s[:200]
	}
	return s
}

func hexSum(sum [32]byte) string { return hex.EncodeToString(sum[:]) }
