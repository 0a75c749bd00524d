// Package audit is the vocabulary of the audit log: what one record says, and
// what a place that keeps records must do.
//
// A record is written before the guest sees the result of the call that it is
// about. A [Sink] that cannot keep a record says so, and the call is denied.
package audit

// A Name is a word that a [Sink] has interned for one run: an operation, a
// reason, a layer. The zero Name is the absent word.
type Name uint16

// A Severity says how much a record matters to an operator.
type Severity uint8

// The severities, as the contract names them.
const (
	Info Severity = iota
	Warn
	Error
)

// String returns "info", "warn" or "error".
func (s Severity) String() string { return [...]string{"info", "warn", "error"}[s%3] }

// A Decision is one cap.audit record as the gate makes it: small, without
// pointers of its own, so that appending it costs no allocation.
type Decision struct {
	Cap, Op, Reason, Layer, Tool, Label Name

	Deny     bool
	Keep     bool // stored in the knowledge base; a decision that is not kept is only logged
	Severity Severity

	// Target is what the call would touch, redacted. It may be a view of a
	// buffer that is reused: a Sink copies it before it returns.
	Target string
	// Args is the keyed digest of the arguments; nil means that op and target
	// are all the arguments there are, and the Sink derives the digest from them.
	Args *[32]byte
}

// A Mark is a decision that a Sink may append once more; 0 is none.
type Mark uint64

// A Sink keeps the records of one run, in order. Its methods are called by one
// goroutine at a time.
type Sink interface {
	// Intern gives s a Name that is valid for this run.
	Intern(s string) (Name, error)
	// Decide appends a decision. When it returns no error the record survives the
	// death of this process. It must not allocate.
	Decide(d *Decision) (Mark, error)
	// Again appends the decision of a mark once more. It is false, and nothing is
	// appended, when that decision has to be written whole: then call Decide,
	// which also says what is wrong. It must not allocate.
	Again(m Mark) bool
	// Event appends a record of another kind (run.start, call.done, caps.swap,
	// run.complete, run.failed, policy.rejected).
	Event(e *Event) error
	// Sync makes everything that was appended so far survive the loss of power.
	// It is nearly free when nothing was since the last time. After an error
	// nothing is appended any more.
	Sync() error
	// ArgsHash returns the keyed digest of op and args, each length-prefixed.
	ArgsHash(op string, args ...[]byte) [32]byte
	// ResultHash returns the keyed digest of what a call gave back.
	ResultHash(result []byte) [32]byte
}
