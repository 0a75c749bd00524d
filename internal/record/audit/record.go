package audit

import (
	"strings"
	"time"
)

// The kinds of record.
const (
	KindDecision       = "cap.audit"
	KindRunStart       = "run.start"
	KindCallDone       = "call.done"
	KindCapsSwap       = "caps.swap"
	KindRunComplete    = "run.complete"
	KindRunFailed      = "run.failed"
	KindPolicyRejected = "policy.rejected"
)

// Ends reports whether kind is one of the three that end a run. A run has
// exactly one such record, and it is the last.
func Ends(kind string) bool {
	return kind == KindRunComplete || kind == KindRunFailed || kind == KindPolicyRejected
}

// Known reports whether kind is one that an [Event] may have.
func Known(kind string) bool {
	return kind == KindRunStart || kind == KindCallDone || kind == KindCapsSwap || Ends(kind)
}

// A Head identifies the run that records belong to; every record carries it.
type Head struct {
	RunID           string `json:"run_id" cbor:"1,keyasint"`
	TraceID         string `json:"trace_id" cbor:"2,keyasint"`
	Tenant          string `json:"tenant" cbor:"3,keyasint"`
	Agent           string `json:"agent" cbor:"4,keyasint"`
	ParentRun       string `json:"parent_run,omitempty" cbor:"5,keyasint,omitempty"`
	BundleDigest    string `json:"bundle_digest" cbor:"6,keyasint"`
	EffectiveDigest string `json:"effective_digest" cbor:"7,keyasint"`
}

// An Event is a record that is not a decision. Fields that its kind does not
// use are left zero and are not exported.
type Event struct {
	Kind     string   `cbor:"1,keyasint"`
	Severity Severity `cbor:"2,keyasint,omitempty"`

	// run.start
	Base          []string         `cbor:"3,keyasint,omitempty"`
	Effective     []string         `cbor:"4,keyasint,omitempty"`
	LimitsSummary map[string]int64 `cbor:"5,keyasint,omitempty"`
	PolicyPresent bool             `cbor:"6,keyasint,omitempty"`
	// Except is what a layer took out of the middle of Effective.
	Except []string `cbor:"22,keyasint,omitempty"`
	// Layers are what Base was narrowed by; of a caps.swap, all that narrows
	// beside them from then on but the floor. Floor is what holds once the run
	// has seen content from outside; without entries, the built-in one.
	Layers []Layer `cbor:"30,keyasint,omitempty"`
	Floor  *Layer  `cbor:"31,keyasint,omitempty"`
	// call.done
	Verb         string  `cbor:"7,keyasint,omitempty"`
	Status       string  `cbor:"8,keyasint,omitempty"` // "ok" or "error"
	DurationMS   float64 `cbor:"9,keyasint,omitempty"`
	Bytes        int64   `cbor:"10,keyasint,omitempty"`
	ResultHash   string  `cbor:"11,keyasint,omitempty"`
	ErrorSummary string  `cbor:"12,keyasint,omitempty"`
	// caps.swap: the source of the change, digests before and after
	Source string `cbor:"13,keyasint,omitempty"`
	Before string `cbor:"14,keyasint,omitempty"`
	After  string `cbor:"15,keyasint,omitempty"`
	// Label is what a swap was made for, such as the input that it follows.
	Label string `cbor:"24,keyasint,omitempty"`
	// run.complete, run.failed, policy.rejected
	Outcome    string           `cbor:"16,keyasint,omitempty"`
	ExitCode   int              `cbor:"17,keyasint,omitempty"`
	Reason     string           `cbor:"18,keyasint,omitempty"`
	Message    string           `cbor:"19,keyasint,omitempty"`
	Violations []string         `cbor:"20,keyasint,omitempty"`
	Usage      map[string]int64 `cbor:"21,keyasint,omitempty"`
}

// A Record is one entry of the audit log as it is read back: who (Head), when,
// where in the order, and either a decision or an event.
type Record struct {
	Seq    uint64    // number in the whole log, from 1; 0 until the record has entered it
	RunSeq uint64    // number among the kept records of its run, from 1; 0 when not kept
	Time   time.Time // UTC, to the millisecond
	Head   Head
	Kept   bool // a record that is not kept is logged and never enters the log

	Decision *DecisionRecord // set when the kind is cap.audit
	Event    *Event          // set otherwise
}

// A DecisionRecord is a [Decision] with its names spelled out.
type DecisionRecord struct {
	Tool     string   `cbor:"1,keyasint,omitempty"`
	Label    string   `cbor:"2,keyasint,omitempty"`
	Cap      string   `cbor:"3,keyasint"`
	Op       string   `cbor:"4,keyasint"`
	Target   string   `cbor:"5,keyasint"`
	ArgsHash [32]byte `cbor:"6,keyasint"`
	Deny     bool     `cbor:"7,keyasint,omitempty"`
	Severity Severity `cbor:"8,keyasint,omitempty"`
	Reason   string   `cbor:"9,keyasint"`
	Layer    string   `cbor:"10,keyasint,omitempty"`
}

// Kind returns the kind of the record, such as "cap.audit", or "" when the
// record is empty.
func (r *Record) Kind() string {
	switch {
	case r.Decision != nil:
		return KindDecision
	case r.Event != nil:
		return r.Event.Kind
	}
	return ""
}

// AtStart reports whether a language's own start was denied the time: that is no
// act of the agent's, and counts nowhere.
func (d *DecisionRecord) AtStart() bool { return atStart(d.Deny, d.Severity, d.Cap) }

func atStart[S string | []byte](deny bool, severity Severity, capability S) bool {
	return deny && severity == Info && string(capability) == "time.now"
}

// OfLaunch reports whether the launch itself recorded it: caps.empty, which says that
// nothing was left to the agent, or caps.extra, which a layer allows and the agent's
// policy does not ask for. The agent asked for neither, and they count nowhere.
func (d *DecisionRecord) OfLaunch() bool { return IsOfLaunch(d.Cap) }

// IsOfLaunch reports whether launches record decisions on a capability.
func IsOfLaunch[S string | []byte](capability S) bool {
	return strings.HasPrefix(string(capability), "caps.")
}

// Asked reports whether the agent asked, and was answered.
func (d *DecisionRecord) Asked() bool { return !d.AtStart() && !d.OfLaunch() }

// Denied reports whether the record is a decision that denied what the agent asked for.
func (r *Record) Denied() bool { return r.Decision != nil && r.Decision.Deny && r.Decision.Asked() }

// Allowed reports whether the record is a decision that allowed.
func (r *Record) Allowed() bool { return r.Decision != nil && !r.Decision.Deny }
