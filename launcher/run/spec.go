// Package run launches one agent under one policy: [NewPlan] intersects,
// [Launch] enforces the plan, runs the guest, records, and reports.
//
// The package parses no file and reads no environment: a [Spec] holds all that
// a launch depends on, the clock included.
package run

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/audit"
)

// A Journal keeps the records of one run until it is closed.
type Journal interface {
	audit.Sink
	Close() error
}

// Identity names a run.
type Identity struct {
	RunID, TraceID, Tenant, Agent, Version, BundleDigest, ParentRun string
}

// Spec is everything that a launch depends on.
type Spec struct {
	Identity
	Module       []byte // the verified bytes; what is compiled is what was hashed
	ModuleSHA256 string // hex, of those bytes; "" where it is not known
	Body         Body   // what runs where there is no module; nil: the module does

	Policy Policy
	// Paths is what [Canonical] learnt of the policy's paths.
	Paths Paths
	// Relaxed launches with a granted path that does not exist, or that a link
	// leads elsewhere, and says so; otherwise such a path refuses.
	Relaxed bool
	// Params are the values of the manifest's placeholders, as the guest sees them.
	Params map[string]string

	// Calls are the host calls that the module imports. A run whose bundle asks for
	// a family, and which is left none of its calls of that family, is refused
	// before anything of it is compiled, for all families at once. nil: such a run
	// is launched, and each call is denied when it comes.
	Calls []string

	Args  []string
	Input []byte
	// Reads says that a body is given input while it runs.
	Reads bool
	// Shows says what the program of a body sees whatever it holds; nil: it starts none.
	Shows func(path string) bool
	// ReadInput reads what Input is to be, once the run has begun: the wait for it
	// counts as the run's wall time. Nil: Input is there already.
	ReadInput func(ctx context.Context) ([]byte, error)
	// Inputs are those of the turns after the first; nil: there are none, and
	// nothing is read again.
	Inputs Inputs
	// InputsCount makes the wait for further inputs count as wall time, as where
	// they come out of a pipe and no person is waited for.
	InputsCount bool
	// Look reads the operator's files again at the end of a turn; edited is false
	// when they say what they said before. An error says why what they say now
	// is not taken, any of it. nil: there is nothing to read.
	Look func() (l Look, edited bool, err error)
	// Env looks up a variable of the operator's environment.
	Env func(name string) (string, bool)
	// Seed makes random numbers repeatable; nil: the system's.
	Seed *uint64

	// Taint says which inputs are untrusted, and what a run holds that had one.
	Taint Taint

	KeepAllowed, KeepDenied, FailOnEmpty bool

	// Durability says when records are on disk while the run goes on. When it has
	// ended they are.
	Durability audit.Durability

	// OpenJournal opens the run's journal; a run whose journal cannot be opened does not start.
	OpenJournal func(audit.Head) (Journal, error)
	// Above is the budget of the run that launches this one; nil: nobody does.
	Above *budget.Budget
	// Components do the families' work; each opens what it needs at its first use.
	Components hostcalls.Components
	// Unfit says why nothing here keeps a program that is the agent to its plan: its
	// run is refused with 78. "": something does.
	Unfit string
	// ExecRefused says why programs cannot be kept from what they must be kept
	// from here: a run that holds exec is refused with 78. ExecCaveat is what
	// the report and the log say of a run that holds exec. Either may be empty.
	ExecRefused, ExecCaveat string
	// Warnings are what the report and the log of this run shall say.
	Warnings []string
	// Lane is where the programs of a run that holds exec run; nil: there is none.
	Lane *Lane

	CacheDir string
	// Library is where the launches of this process share what they compiled,
	// each tenant by itself; nil: nothing is shared.
	Library *guest.Library
	// Compiler finds the program that compiles guests: see [guest.Config].
	Compiler func() (path string, err error)
	Now      func() time.Time
	Log      *slog.Logger
	// Event receives the lifecycle of the run, in order; nil: nobody listens.
	Event func(name string, fields map[string]any)
	// Stdout and Stderr receive the guest's streams as they come; nil: they
	// are held for the report.
	Stdout, Stderr io.Writer
	// Slow is called when compiling takes long, and the function it returns
	// when it has ended; nil: nobody waits at a terminal.
	Slow func() func()
}

// notices are warnings that the operator is shown without reading a log: their
// floor is not used, or a granted path is a link and leads elsewhere.
func (s *Spec) notices() []string {
	var list []string
	if s.Taint.Warning != "" {
		list = append(list, s.Taint.Warning)
	}
	if s.Relaxed { // else such a path refuses
		for _, r := range s.Paths.Redirected() {
			list = append(list, r.String())
		}
	}
	return append(list, s.Warnings...)
}

// Inputs are what a guest is given turn by turn.
type Inputs interface {
	// Next waits for the next input until ctx ends. [io.EOF] says that there is
	// none any more; a [*hostcalls.Fail], what is wrong with the one that came;
	// [ErrReload], that the operator asks for files to be read again and not for a
	// turn.
	Next(ctx context.Context) ([]byte, error)
}

// ErrReload is the operator's word, in the place of an input, that their files are
// to be read again now.
var ErrReload = errors.New("files are read again")

// A Look is what the operator's files say at the end of a turn.
type Look struct {
	// Layers are what all of them say now, with canonical paths; those that were
	// there at the launch and still say the same are among them.
	Layers []*caps.Layer
	// Floor is what the operator's floor says now, if there is one: what is
	// untrusted leaves no more than it and the launch's do.
	Floor []*caps.Layer
	// Components are the names of the layers that say something else than before.
	Components []string
	// Notes are findings that refuse nothing.
	Notes []string
}
