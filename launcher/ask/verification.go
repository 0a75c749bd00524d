package ask

import (
	"fmt"
	"time"

	"runloop.dev/rlp/internal/base/printable"
	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/kb"
)

// A Verification is whether a log is what was recorded, and what that was held
// against.
type Verification struct {
	OK          bool            `json:"ok"`
	Fault       *Fault          `json:"fault,omitempty"`
	Tenant      string          `json:"tenant"`
	Origin      string          `json:"origin,omitempty"`
	Key         string          `json:"key,omitempty"`
	Run         string          `json:"run,omitempty"`
	Records     int             `json:"records"` // that were looked at
	Runs        int             `json:"runs"`
	OpenRuns    int             `json:"open_runs"`
	From        uint64          `json:"from"` // the first of them
	Size        uint64          `json:"size"` // of the tree
	Root        string          `json:"root"`
	Pruned      uint64          `json:"pruned"` // records up to this one
	PrunedAt    *time.Time      `json:"pruned_at,omitempty"`
	Checkpoints int             `json:"checkpoints"` // in the log, that were looked at
	Sealed      uint64          `json:"sealed"`      // size of the newest
	Outside     []*Outside      `json:"outside,omitempty"`
	Published   []evidence.Told `json:"published,omitempty"`
	BareRuns    int             `json:"bare_runs"` // that ended before they had begun
	Findings    []kb.Finding    `json:"findings,omitempty"`
	Missing     []string        `json:"missing,omitempty"` // what is known and not in the log
}

// A Fault is the first thing that is not as it was recorded.
type Fault struct {
	Kind    kb.Fault `json:"kind"`
	Seq     uint64   `json:"seq,omitempty"` // the first record that it is about; 0: none
	UpTo    uint64   `json:"up_to,omitempty"`
	Message string   `json:"message"`
	OfHost  bool     `json:"-"` // the message names files of the host
}

func (f *Fault) String() string {
	e := kb.LogError{Fault: f.Kind, Seq: f.Seq, UpTo: f.UpTo, Why: f.Message}
	return e.Error()
}

// An Outside is a file of checkpoints that is kept outside of this host.
type Outside struct {
	File        string   `json:"file"`        // "": it is not told
	Checkpoints int      `json:"checkpoints"` // of this log
	Newest      uint64   `json:"newest"`      // the size of the largest
	Others      int      `json:"others"`      // of other logs
	Torn        []string `json:"torn,omitempty"`
}

// Rest says what else is in such a file.
func (o *Outside) Rest() string {
	s := ""
	if o.Others > 0 {
		s += fmt.Sprintf("; %d of other logs", o.Others)
	}
	if len(o.Torn) > 0 {
		s += fmt.Sprintf("; %d interrupted (%s)", len(o.Torn), printable.Line(o.Torn[0]))
	}
	return s
}

// Without is v for somebody who is told no place of the host: neither of its files
// nor of where checkpoints are published.
func (v *Verification) Without() *Verification {
	told := *v
	told.Published, told.Missing, told.Outside = nil, nil, nil
	for _, o := range v.Outside {
		told.Outside = append(told.Outside, &Outside{Checkpoints: o.Checkpoints, Newest: o.Newest, Others: o.Others})
	}
	if v.Fault != nil && v.Fault.OfHost {
		told.Fault = &Fault{
			Kind: v.Fault.Kind, Seq: v.Fault.Seq, UpTo: v.Fault.UpTo,
			Message: "rlp audit verify says more to those who operate this host",
		}
	}
	return &told
}
