package service

import (
	"context"
	"iter"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
)

// A Host does what the service offers: the composition root is one. Every
// method is bound to the tenant of its caller and may be called by several
// goroutines.
type Host interface {
	// Check refuses what can be refused without opening the bundle: a field that
	// is not understood (FieldErrors), an agent that is not installed
	// (ErrNotFound). It is called before a request is queued.
	Check(ctx context.Context, c *Caller, r *Request) error
	// Launch composes and runs the request under the run id, with the same merge
	// as every launch, and reports. It returns no report but one of Check's
	// errors, a *ViolationError or an *UnavailableError if nothing was begun. A
	// run that policy refuses is recorded. When it returns, so has the run.
	Launch(ctx context.Context, c *Caller, r *Request, run Begin) (*launcher.Report, error)
	// Log is the audit log of the tenant of c as c may know it ([TellLog]), open for
	// as long as the host is.
	Log(ctx context.Context, c *Caller) (Log, error)
	// Surface is what requests of c could be left at most.
	Surface(ctx context.Context, c *Caller, d Door) (*Surface, error)
	// Agents are those that are installed for the tenant of c, by name.
	Agents(ctx context.Context, c *Caller) ([]Agent, error)
}

// Begin is what the service gives to a run.
type Begin struct {
	RunID string
	// Event receives the life of the run: launcher's "run.started",
	// "run.compiled", "run.running", "run.ended"; of delegates too, with their
	// own run_id.
	Event func(name string, fields map[string]any)
	// Record receives the records of the run and of its delegates, decisions and
	// events, kept or not, each run's in order, some milliseconds after they were
	// made. A record that is left out is found in the log. It does not block.
	Record func(*audit.Record)
	// Inputs are those of the turns after the first; nil: there are none.
	Inputs launcher.Inputs
	// Stdout receives what the guest prints, as it comes; nil: nobody looks.
	Stdout, Stderr func([]byte)
}

// A Log is one tenant's audit log: see [kb.Store], which is one. It should be a
// [Tailer] as well.
type Log interface {
	Audit(ctx context.Context, f kb.Filter) iter.Seq2[audit.Record, error]
	Lines(ctx context.Context, f kb.Filter) iter.Seq2[[]byte, error]
	Head(ctx context.Context) (kb.Head, error)
	Runs(ctx context.Context, q kb.RunQuery) iter.Seq2[kb.RunSummary, error]
}

// An AgentQuery says which agents of a tenant are meant.
type AgentQuery struct {
	Name  string // this one alone; "": all
	After string // those behind this name
	Limit int    // so many at most; 0: all
}

// An Agent is an installed one.
type Agent struct {
	Name, Version, Description, Digest string
	Signature                          string // "valid", "unsigned" or "invalid", and why behind it
	InputSchema                        []byte // JSON Schema of its input; nil: any JSON
	Params                             []Param
	Families                           []string
	Destructive, ReadOnly, OpenWorld   bool   // by the family table, of what is left to it
	Problem                            string // why it cannot be launched; "" if it can
}

// A Param is a placeholder of an agent's policy, which stands for a path of the host.
type Param struct{ Name, Kind, Description string }

// A Surface is what the service leaves to requests: each family, with what of it
// a request could still be given.
type Surface struct {
	SchemaVersion string           `json:"schema_version"` // "1"
	Grant         string           `json:"grant"`          // the profile that requests start from
	Families      []SurfaceFamily  `json:"families"`
	Limits        map[string]int64 `json:"limits"`
	Layers        []string         `json:"layers"` // what narrows, in order
}

// A SurfaceFamily is one family, as far as any of it is left.
type SurfaceFamily struct {
	Name          string         `json:"name"`     // fs, net, ...
	Category      string         `json:"category"` // as adapters are named
	Tier          string         `json:"privilege_tier"`
	Effects       []string       `json:"effects"`
	EffectDefault string         `json:"effect_default"`
	Destructive   bool           `json:"destructive"`
	NetworkFacing bool           `json:"network_facing"`
	SandboxSafe   bool           `json:"sandbox_safe"`
	Available     bool           `json:"available"` // false: a request that needs it is refused
	TakenBy       string         `json:"taken_by,omitempty"`
	Verbs         []string       `json:"verbs"` // host calls of it that are left
	Constraints   map[string]any `json:"constraints,omitempty"`
}
