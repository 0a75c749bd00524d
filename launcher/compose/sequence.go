package compose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/record/runlog"
	"runloop.dev/rlp/launcher/run"
)

// A Job is what a run is given beside what decides what it may do.
type Job struct {
	Args  []string
	Input []byte
	// readInput reads what input is to be, once the run has begun; nil: it is there.
	ReadInput func(ctx context.Context) ([]byte, error)
	Seed      *uint64
	// inputs are those of the turns after the first; nil: there are none.
	Inputs      run.Inputs
	InputsCount bool     // the wait for them counts as wall time
	Calls       []string // the host calls that the module imports; nil: they are not known

	KeepAllowed    bool // in the audit log, whatever config.toml says
	Event          func(name string, fields map[string]any)
	Stdout, Stderr io.Writer // live; nil: held for the report
	Slow           func() func()
}

// Launch is the sequence of a launch, whoever asks for it: every guest is
// reached through it. The error says why there is no report: nothing was begun.
func (a *Runner) Launch(ctx context.Context, c *Composition, j *Job) (*run.Report, error) {
	spec, leave, err := a.Ready(ctx, c, j)
	if err != nil {
		return nil, err
	}
	a.Kept.admit(ctx, c)
	e, err := a.equip(ctx, c, spec, j)
	if err != nil {
		return nil, errors.Join(err, leave())
	}
	e.others = append(e.others, leave)
	report := run.Launch(ctx, spec)
	e.close(report)
	a.Kept.ended(c)
	return report, nil
}

// Ready is the launch of c once nothing is left to ask of the operator, and
// what gives its lane up. It opens nothing that only a real launch needs.
func (a *Runner) Ready(ctx context.Context, c *Composition, j *Job) (*run.Spec, func() error, error) {
	if err := c.Strict(); err != nil {
		return nil, nil, err
	}
	if err := c.MustBeSet("launch"); err != nil {
		return nil, nil, err
	}
	spec, err := a.spec(c)
	if err != nil {
		return nil, nil, err
	}
	spec.Args, spec.Input, spec.ReadInput, spec.Seed = j.Args, j.Input, j.ReadInput, j.Seed
	spec.Calls, spec.Event, spec.Slow, spec.Stdout, spec.Stderr = j.Calls, j.Event, j.Slow, j.Stdout, j.Stderr
	if err := judged(c, spec); err != nil {
		return nil, nil, err
	}
	if j.Inputs != nil {
		if c.Program != nil {
			return nil, nil, Usagef("%s is a program, which is given its input once: leave turns out", spec.Agent)
		}
		spec.Inputs, spec.InputsCount = typedInputs{j.Inputs, lineOf(c.Bundle.Manifest)}, j.InputsCount
	}
	if j.Inputs != nil || c.Program != nil || c.Wrap != nil { // what goes on while its operator edits
		if spec.Taint.Floor != nil {
			c.NarrowedBy(a.floorAgain(c))
		}
		spec.Look = newWatcher(c).look
	}
	if c.Origin.from != nil {
		c.Origin.parent.Bind(spec)
	}
	release, err := a.execFit(ctx, c, spec)
	return spec, release, err
}

// spec is the launch of what was composed, without what only a real launch opens.
func (a *Runner) spec(c *Composition) (*run.Spec, error) {
	runID, err := ident.NewRun()
	if err != nil {
		return nil, fmt.Errorf("naming the run: %w", err)
	}
	taint, err := a.taint(c)
	if err != nil {
		return nil, err
	}
	m := c.Bundle.Manifest
	spec := &run.Spec{
		Identity: run.Identity{
			RunID:   cmp.Or(c.Origin.RunID, runID.String()),
			TraceID: cmp.Or(c.Origin.TraceID, strings.ReplaceAll(uuid.NewString(), "-", "")),
			Tenant:  c.Home.Tenant(),
			Agent:   m.Agent.String(), Version: m.Version, BundleDigest: c.Bundle.Digest,
		},
		Module: c.Bundle.Wasm, ModuleSHA256: c.Bundle.WasmSHA256,
		Policy: c.Policy, Paths: c.Paths, Relaxed: c.Relaxed(), Params: c.params,
		Taint: taint, Env: a.guestVariable, FailOnEmpty: c.Config.Security.Caps.FailOnEmpty,
		CacheDir: c.Home.Cache(), Compiler: a.Self, Now: time.Now,
	}
	spec.Paths.Aliases = a.aliases(c)
	if c.Wrap != nil {
		spec.Body = a.body(c, spec)
	}
	return spec, a.attach(c, spec)
}

// An equipment is what a real launch opened, to be closed when the run is over.
type equipment struct {
	log    *runlog.Log
	who    run.Identity
	warn   func(format string, args ...any)
	others []func() error // hold no record: components, what is compiled, the lane
	stores []func() error // of records
}

// close gives up what the launch opened and has the report say what could not be
// closed. A record that may not have been written is the end of the run, whatever
// its own was: audit_failed. Anything else is a warning: in the report, in the log
// and for whoever asked.
func (e *equipment) close(report *run.Report) {
	for _, err := range closeAll(e.others) {
		text := "closing the run: " + err.Error()
		report.Warnings = append(report.Warnings, text)
		e.log.Warn("closing", "run_id", e.who.RunID, "tenant", e.who.Tenant, "agent", e.who.Agent, "message", text)
		e.warn("%s", text)
	}
	errs := closeAll(e.stores)
	if err := e.log.Close(); err != nil {
		errs = append(errs, fmt.Errorf("writing the log: %w", err))
	}
	if len(errs) > 0 {
		report.Unrecorded(errors.Join(errs...))
	}
}

// abandon closes what was opened for a run that never began.
func (e *equipment) abandon() error {
	return errors.Join(append(closeAll(slices.Concat(e.stores, e.others)), e.log.Close())...)
}

// closeAll closes the last first, and returns what went wrong.
func closeAll(list []func() error) (errs []error) {
	for _, f := range slices.Backward(list) {
		if err := f(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
