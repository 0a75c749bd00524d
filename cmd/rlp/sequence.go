package main

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

	"runloop.dev/rlp/internal/ident"
	"runloop.dev/rlp/internal/runlog"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/run"
)

// A job is what a run is given beside what decides what it may do.
type job struct {
	args  []string
	input []byte
	// readInput reads what input is to be, once the run has begun; nil: it is there.
	readInput func(ctx context.Context) ([]byte, error)
	seed      *uint64
	// inputs are those of the turns after the first; nil: there are none.
	inputs      launcher.Inputs
	inputsCount bool     // the wait for them counts as wall time
	calls       []string // the host calls that the module imports; nil: they are not known

	keepAllowed    bool // in the audit log, whatever config.toml says
	event          func(name string, fields map[string]any)
	stdout, stderr io.Writer // live; nil: held for the report
	slow           func() func()
}

// launchComposed is the sequence of a launch, whoever asks for it: every guest is
// reached through it. The error says why there is no report: nothing was begun.
func (a *app) launchComposed(ctx context.Context, c *composition, j *job) (*launcher.Report, error) {
	spec, leave, err := a.ready(ctx, c, j)
	if err != nil {
		return nil, err
	}
	a.kept.admit(ctx, c)
	e, err := a.equip(ctx, c, spec, j)
	if err != nil {
		return nil, errors.Join(err, leave())
	}
	e.others = append(e.others, leave)
	report := run.Launch(ctx, spec)
	e.close(report)
	a.kept.ended(c)
	return report, nil
}

// ready is the launch of c once nothing is left to ask of the operator, and
// what gives its lane up. It opens nothing that only a real launch needs.
func (a *app) ready(ctx context.Context, c *composition, j *job) (*run.Spec, func() error, error) {
	if err := c.strict(); err != nil {
		return nil, nil, err
	}
	if err := c.mustBeSet("launch"); err != nil {
		return nil, nil, err
	}
	spec, err := a.spec(c)
	if err != nil {
		return nil, nil, err
	}
	spec.Args, spec.Input, spec.ReadInput, spec.Seed = j.args, j.input, j.readInput, j.seed
	spec.Calls, spec.Event, spec.Slow, spec.Stdout, spec.Stderr = j.calls, j.event, j.slow, j.stdout, j.stderr
	if j.inputs != nil {
		if spec.Taint.Floor != nil {
			c.narrowedBy(a.floorAgain(c))
		}
		spec.Inputs, spec.InputsCount, spec.Look = j.inputs, j.inputsCount, newWatcher(c).look
	}
	if c.origin.from != nil {
		c.origin.parent.Bind(spec)
	}
	release, err := a.execFit(ctx, c, spec)
	return spec, release, err
}

// spec is the launch of what was composed, without what only a real launch opens.
func (a *app) spec(c *composition) (*run.Spec, error) {
	runID, err := ident.NewRun()
	if err != nil {
		return nil, fmt.Errorf("naming the run: %w", err)
	}
	taint, err := a.taint(c)
	if err != nil {
		return nil, err
	}
	m := c.bundle.Manifest
	spec := &run.Spec{
		Identity: run.Identity{
			RunID:   cmp.Or(c.origin.runID, runID.String()),
			TraceID: cmp.Or(c.origin.traceID, strings.ReplaceAll(uuid.NewString(), "-", "")),
			Tenant:  c.home.Tenant(),
			Agent:   m.Agent.String(), Version: m.Version, BundleDigest: c.bundle.Digest,
		},
		Module: c.bundle.Wasm, ModuleSHA256: c.bundle.WasmSHA256,
		Policy: c.policy, Paths: c.paths, Relaxed: c.relaxed(), Params: c.params,
		Taint: taint, Env: a.guestVariable, FailOnEmpty: c.config.Security.Caps.FailOnEmpty,
		CacheDir: c.home.Cache(), Compiler: a.self, Now: time.Now,
	}
	spec.Paths.Aliases = a.aliases(c)
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
func (e *equipment) close(report *launcher.Report) {
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
