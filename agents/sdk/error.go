package sdk

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	"runloop.dev/rlp/agents/sdk/jsonlite"
)

// An Errno is an error number of the guest interface, which are WASI's own. It
// is an error, so that the constants serve as targets of errors.Is; those with
// a counterpart in io/fs, os or errors match that as well.
type Errno int32

// The error numbers that the host answers with.
const (
	ErrTooBig      Errno = 1  // the request is larger than the host takes
	ErrDenied      Errno = 2  // the policy does not allow it; also fs.ErrPermission
	ErrConflict    Errno = 6  // compare-and-swap lost: another revision is stored
	ErrBudget      Errno = 19 // a budget, rate or limit is used up
	ErrFault       Errno = 21 // a pointer outside the guest's memory
	ErrInvalid     Errno = 28 // a malformed request; also fs.ErrInvalid
	ErrIO          Errno = 29 // the host could not do it
	ErrNotExist    Errno = 44 // no such thing; also fs.ErrNotExist
	ErrNoSys       Errno = 52 // the host does not know this call; also errors.ErrUnsupported
	ErrUnavailable Errno = 58 // not available here; also errors.ErrUnsupported
	ErrTimeout     Errno = 73 // took too long; also os.ErrDeadlineExceeded
)

// Error returns a word or two for the number.
func (e Errno) Error() string {
	switch e {
	case ErrTooBig:
		return "too big"
	case ErrDenied:
		return "denied"
	case ErrConflict:
		return "revision conflict"
	case ErrBudget:
		return "budget exhausted"
	case ErrFault:
		return "bad address"
	case ErrInvalid:
		return "invalid request"
	case ErrIO:
		return "i/o error"
	case ErrNotExist:
		return "does not exist"
	case ErrNoSys:
		return "no such call"
	case ErrUnavailable:
		return "unavailable"
	case ErrTimeout:
		return "timed out"
	}
	return "error number " + strconv.Itoa(int(e))
}

// Is reports whether target is the standard library's name for the same thing.
func (e Errno) Is(target error) bool {
	switch e {
	case ErrDenied:
		return target == fs.ErrPermission
	case ErrInvalid:
		return target == fs.ErrInvalid
	case ErrNotExist:
		return target == fs.ErrNotExist
	case ErrNoSys, ErrUnavailable:
		return target == errors.ErrUnsupported
	case ErrTimeout:
		return target == os.ErrDeadlineExceeded
	}
	return false
}

// An Error is what the host answered instead of a response. It unwraps to its
// [Errno]. All text comes from the host; any of it may be empty.
type Error struct {
	Op         string // the import, such as "kb_put"
	Errno      Errno
	Capability string // the capability string that was required, such as "kb:write:contacts"
	Reason     string // the audit log's reason, such as "domain_not_permitted"
	Hint       string // what the operator could do about it
}

// Error reads "kb_put kb:write:contacts: denied (domain_not_permitted)".
func (e *Error) Error() string {
	s := e.Op
	if e.Capability != "" {
		s += " " + e.Capability
	}
	return s + ": " + e.why()
}

// Unwrap returns the error number.
func (e *Error) Unwrap() error { return e.Errno }

// why tells a refusal by its reason, which is in the operator's records as well,
// and anything else by what to do about it.
func (e *Error) why() string {
	s := e.Errno.Error()
	refused := e.Errno == ErrDenied || e.Errno == ErrBudget
	switch {
	case e.Hint != "" && !refused:
		return s + ": " + e.Hint
	case e.Reason != "":
		return s + " (" + e.Reason + ")"
	}
	return s
}

// Why says in a few words, without operation or target, why err came about, so
// that a report can put its own words before it: "denied (domain_not_permitted)"
// for an [*Error], "denied" for a file that the policy withholds (the host tells
// a guest no more than that; the operator's audit log has the reason).
func Why(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.why()
	}
	switch {
	case err == nil:
		return ""
	case errors.Is(err, fs.ErrPermission):
		return ErrDenied.Error()
	case errors.Is(err, fs.ErrNotExist):
		return ErrNotExist.Error()
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}

// parseError reads the host's account of an error. A malformed account costs
// the words and never the number.
func parseError(op string, errno Errno, account []byte) *Error {
	e := &Error{Op: op, Errno: errno}
	objects, err := jsonlite.Objects(account)
	if err != nil || len(objects) != 1 {
		return e
	}
	o := objects[0]
	e.Capability, e.Reason, e.Hint = o["capability"], o["reason"], o["hint"] // "error" names the number
	return e
}
