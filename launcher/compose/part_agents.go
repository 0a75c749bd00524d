package compose

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/places"
	"runloop.dev/rlp/launcher/run"
)

// agentsPart lets a run launch others, where its bundle asks for any.
func agentsPart(a *Runner, c *Composition, spec *run.Spec) (func() error, error) {
	if launches(spec) {
		spec.Components.Agents = &delegates{by: a, from: c, spec: spec}
	}
	return nil, nil
}

// delegates are the agents that one run may launch: the installed ones of its
// tenant, by name.
type delegates struct {
	by   *Runner
	from *Composition
	spec *run.Spec
	made uint64 // how many were launched
}

// seed gives a delegate random numbers that come again when those of the
// launching run do.
func (d *delegates) seed() *uint64 {
	d.made++
	if d.spec.Seed == nil {
		return nil
	}
	const odd = 0x9e3779b97f4a7c15 // any two runs of a tree have other numbers
	return new((*d.spec.Seed + d.made) * odd)
}

// Launch implements [hostcalls.Agents]. A run that is refused is a report like
// any other.
func (d *delegates) Launch(ctx context.Context, asked *hostcalls.Delegation) (*hostcalls.Delegated, error) {
	path, err := d.installed(asked.Agent)
	if err != nil {
		return nil, err
	}
	var warnings []string // of how the run was bound
	by := Origin{
		Surface: fromRun, parent: run.Parent{Identity: d.spec.Identity, Delegation: asked}, from: d.from,
		Warn: func(text string) { warnings = append(warnings, text) },
	}
	flags := requested(&by.parent)
	if _, err := CallerLayer(flags, d.from.domains()); err != nil {
		return nil, &hostcalls.Fail{Errno: hostcalls.Inval, Hint: err.Error()}
	}
	c := &Composition{Path: path, Origin: by}
	report, err := d.by.delegate(ctx, c, flags, &Job{
		Input: asked.Input, Event: d.spec.Event, Seed: d.seed(), KeepAllowed: d.from.common.keepAllowed,
	})
	if err != nil {
		report = refused(ctx, by.parent, err)
	}
	n := places.Of(d.from.Home.Dir(), ask.WithoutLinks(d.from.Home.Dir()))
	told := (&ask.Subject{Policy: c.Policy, Paths: c.Paths, Params: c.params}).Telling(n, false).Report(report)
	if _, own := errors.AsType[*inputError](err); own { // nothing of the host's is in it
		told.Message = report.Message
	}
	for _, w := range warnings {
		d.from.Origin.warnf("%s", w)
	}
	got := report.Delegated(told)
	got.Warnings = warnings
	return got, nil
}

// installed is the folder of an agent of the tenant's.
func (d *delegates) installed(agent string) (string, error) {
	path := filepath.Join(d.from.Home.Agents(), agent)
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &hostcalls.Fail{
			Errno: hostcalls.Noent,
			Hint:  "no agent of that name is installed; the operator installs one with rlp agent install BUNDLE",
		}
	}
	return path, err
}

// delegate launches an agent for another one, as rlp launch does. What it prints
// is held for the report.
func (a *Runner) delegate(ctx context.Context, c *Composition, f Flags, j *Job) (*run.Report, error) {
	info, err := os.Lstat(c.Path)
	if err != nil || !info.IsDir() {
		return nil, InputErr(fmt.Errorf("the agent at %s is not installed as a folder; run rlp agent install again", c.Path))
	}
	if _, err := a.Complete(c, f); err != nil {
		return nil, err
	}
	if agent := c.Bundle.Manifest.Agent.String(); agent != c.Origin.parent.Delegation.Agent {
		return nil, InputErr(fmt.Errorf("what is installed at %s calls itself %s; run rlp agent install again", c.Path, agent))
	}
	if j.Input, err = InputOf(c.Bundle.Manifest, j.Input); err == nil && j.Input != nil {
		err = CheckInput(c.Bundle.Manifest, j.Input)
	}
	if err != nil {
		return nil, InputErr(&inputError{err})
	}
	c.Origin.Warn = nil // the report has all that follows
	return a.Launch(ctx, c, j)
}

// An inputError is what is wrong with the input that an agent gives another one.
type inputError struct{ err error }

func (e *inputError) Error() string { return "input: " + e.err.Error() }

// refused is the report of a run that was never begun.
func refused(ctx context.Context, by run.Parent, err error) *run.Report {
	r := &run.Report{
		TraceID: by.TraceID, Tenant: by.Tenant, Agent: by.Delegation.Agent, Outcome: run.Refused, ExitCode: run.StatusFinding,
		Base: []string{}, Effective: []string{}, Changes: []run.Change{}, Message: ProblemOf(err).Text(),
	}
	var se *Error
	if errors.As(err, &se) {
		r.ExitCode = se.Status
	}
	if ctx.Err() != nil {
		r.Outcome, r.ExitCode = run.Cancelled, run.StatusCancelled
	}
	return r
}
