package audit

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

// A Head identifies the run that records belong to; every record carries it.
type Head struct {
	RunID           string `json:"run_id"`
	TraceID         string `json:"trace_id"`
	Tenant          string `json:"tenant"`
	Agent           string `json:"agent"`
	ParentRun       string `json:"parent_run,omitempty"`
	BundleDigest    string `json:"bundle_digest"`
	EffectiveDigest string `json:"effective_digest"`
}

// An Event is a record that is not a decision. Fields that its kind does not
// use are left zero and are not exported.
type Event struct {
	Kind     string
	Severity Severity

	// run.start
	Base          []string
	Effective     []string
	LimitsSummary map[string]int64
	PolicyPresent bool
	// call.done
	Verb         string
	Status       string // "ok" or "error"
	DurationMS   float64
	Bytes        int64
	ResultHash   string
	ErrorSummary string
	// caps.swap: the source of the change, digests before and after
	Source, Before, After string
	// run.complete, run.failed, policy.rejected
	Outcome    string
	ExitCode   int
	Reason     string
	Message    string
	Violations []string
	Usage      map[string]int64
}
