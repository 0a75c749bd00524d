package hostcalls

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/hostcalls/hints"
	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/engine/abi"
)

// respond gives the guest its answer: the response when there is room, its
// length in any case, or minus an error number.
func (a *answers) respond(dst, resp []byte, err error) uint64 {
	if err == nil {
		if len(resp) <= len(dst) {
			copy(dst, resp)
		} else {
			a.pending, a.unread = resp, true
		}
		return uint64(len(resp))
	}
	a.failed, a.unread = err, true
	return number(errnoOf(err))
}

func errnoOf(err error) Errno {
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
func (a *answers) explain(errno Errno, err error) []byte {
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
		d.Hint = a.hint(r)
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
func (a *answers) hint(r *refused) string {
	by := a.bounds.conditionHint(r.Code) // of this refusal alone
	if r.hint != "" {
		return r.hint
	}
	if by != "" {
		return by
	}
	if r.Code == caps.BudgetExhausted && a.cfg.Gate.Spent() {
		return hints.Calls
	}
	if r.Label != "" {
		return taintHint(r.Denial)
	}
	return hints.Of(r.Request, r.Code, r.Layer)
}

// responseRead gives the guest what did not fit.
func (a *answers) responseRead() abi.Func {
	return abi.Func{
		Module: ImportModule, Name: "response_read",
		Params: []abi.Type{abi.I32, abi.I32}, Results: []abi.Type{abi.I32},
		Cost: costCall, Moved: &a.moved,
		Call: func(_ context.Context, mem []byte, stack []uint64) error {
			dst, ok := view(mem, stack[0], stack[1])
			if !ok {
				stack[0] = uint64(uint32(number(Fault)))
				return nil
			}
			if a.failed != nil { // spelled out only for who asks
				a.pending, a.failed = a.values.scrub(a.explain(errnoOf(a.failed), a.failed)), nil
			}
			n := copy(dst, a.pending)
			a.pending = a.pending[n:]
			a.moved += int64(n)
			stack[0] = uint64(uint32(n))
			return nil
		},
	}
}

// failure is what the record of a call says of err. What was made into an answer
// for the guest has words of rlp's own; what a library or the system says, with
// places of the host in it, is for the host's log alone.
func (a *answers) failure(op *gate.Op, err error) string {
	var f *Fail
	switch {
	case errors.As(err, &f), errors.Is(err, errDenied), errors.Is(err, errBudget), errors.Is(err, errUnavailable):
		return err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "timedout: the call did not end in time"
	case errors.Is(err, context.Canceled):
		return "io: the call was ended with its run"
	}
	if a.cfg.Failed != nil {
		a.cfg.Failed(op.String(), a.values.scrubText(err.Error()))
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
