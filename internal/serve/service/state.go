package service

import (
	"time"

	"runloop.dev/rlp/launcher"
)

// The states of a run. The last three are ends.
const (
	Queued  = "queued"
	Running = "running"
	// Done is a run that began, however it ended: its outcome says how.
	Done = "done"
	// Refused is a run that nothing was executed of.
	Refused = "refused"
	// Failed is a run that this host could not do, or not record.
	Failed = "failed"
)

// A Time is told in UTC to the millisecond. The zero Time is left out of JSON.
type Time struct{ time.Time }

// String returns the time as RFC 3339 with exactly three digits of a second, and
// "" for the zero Time.
func (t Time) String() string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// MarshalText returns what String does.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// MarshalJSON returns what String does, as JSON has it.
func (t Time) MarshalJSON() ([]byte, error) { return []byte(`"` + t.String() + `"`), nil }

// A State is what is known of a run at a time.
type State struct {
	RunID     string           `json:"run_id"`
	TraceID   string           `json:"trace_id"`
	Tenant    string           `json:"tenant"`
	Agent     string           `json:"agent"` // "" until a bundle of the request was read
	Version   string           `json:"version,omitempty"`
	Caller    string           `json:"caller"`
	Door      Door             `json:"door"`
	State     string           `json:"state"` // one of the constants
	Outcome   launcher.Outcome `json:"outcome,omitempty"`
	ExitCode  int              `json:"exit_code"` // as of rlp launch; meaningful at its end
	Message   string           `json:"message,omitempty"`
	QueuedAt  Time             `json:"queued_at"`
	StartedAt Time             `json:"started_at,omitzero"`
	EndedAt   Time             `json:"ended_at,omitzero"`
	QueueMS   int64            `json:"queue_ms"`
	WallMS    int64            `json:"wall_ms"` // so far, or as its report has it
	Allowed   int64            `json:"allowed"` // decisions
	Denied    int64            `json:"denied"`
	ParentRun string           `json:"parent_run,omitempty"` // that launched this one

	// ParentSpan is the span that asked, of the trace of TraceID; "" is none.
	ParentSpan string `json:"-"`

	who     string // of the caller
	forThem string // the message for who does not operate, where it is another
}

// told leaves of st what c may know.
func (st *State) told(c *Caller) {
	if st.forThem != "" && !c.Can(Operate) {
		st.Message = st.forThem
	}
}

// Ended reports whether nothing more comes.
func (st *State) Ended() bool {
	return st.State == Done || st.State == Refused || st.State == Failed
}

// A TenantState is whether runs of a tenant can be recorded now.
type TenantState struct {
	Tenant  string `json:"tenant"`
	Reason  string `json:"reason,omitempty"` // why not; "": they can
	Waiting int    `json:"waiting"`          // its journals that are not in the log yet
}
