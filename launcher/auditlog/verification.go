package auditlog

import (
	"encoding/base64"
	"errors"
	"time"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// evidenceFault is the kind of what is wrong with a key, or with what is held
// against the log.
const evidenceFault kb.Fault = "evidence"

// A verification is one under way.
type verification struct {
	ask.Verification
	found   int      // how many findings there are
	unlike  []string // the runs among Missing that log/ tells of
	checked bool     // the log was looked at
	unread  error    // why the run that is asked for could not be looked up
}

// fault is one that says more than a log says of itself.
func (v *verification) fault(kind kb.Fault, seq uint64, message string) {
	v.OK, v.Fault = false, &ask.Fault{Kind: kind, Seq: seq, Message: message, OfHost: true}
}

// blame makes a fault of what is wrong with the log; other errors it returns.
func (v *verification) blame(err error) error {
	var le *kb.LogError
	switch {
	case err == nil:
	case errors.As(err, &le):
		v.OK, v.Fault = false, &ask.Fault{Kind: le.Fault, Seq: le.Seq, UpTo: le.UpTo, Message: le.Why}
	case errors.Is(err, kb.ErrDamaged):
		v.fault(kb.FaultTree, 0, err.Error())
	case errors.Is(err, kb.ErrUnavailable):
		return &compose.Error{Status: run.StatusUnavailable, Err: err}
	default:
		return err
	}
	return nil
}

// report takes over what was looked at.
func (v *verification) report(r kb.LogReport) {
	v.checked = true
	v.Records, v.Runs, v.OpenRuns, v.From = r.Records, r.Runs, r.Open, r.From
	v.Size, v.Root = r.Head.Size, base64.StdEncoding.EncodeToString(r.Head.Root[:])
	v.Pruned, v.Checkpoints, v.Sealed = r.Pruned, r.Checkpoints, r.Sealed
	v.BareRuns, v.Findings, v.found = r.Bare, r.Findings, r.Found
	if r.Pruned > 0 {
		at := time.UnixMilli(r.PrunedMS).UTC()
		v.PrunedAt = &at
	}
}
