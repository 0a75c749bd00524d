package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/run"
)

// agentsPart lets a run launch others, where its bundle asks for any.
func agentsPart(a *app, c *composition, spec *run.Spec) (func() error, error) {
	if launches(spec) {
		spec.Components.Agents = &delegates{app: a, from: c, spec: spec}
	}
	return nil, nil
}

// delegates are the agents that one run may launch: the installed ones of its
// tenant, by name.
type delegates struct {
	app  *app
	from *composition
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
	by := origin{
		surface: fromRun, parent: run.Parent{Identity: d.spec.Identity, Delegation: asked}, from: d.from,
		warn: func(text string) { warnings = append(warnings, text) },
	}
	flags := requested(&by.parent)
	if _, err := callerLayer(flags, append(policy.BuiltinDomains(), d.from.config.KB.Domains...)); err != nil {
		return nil, &hostcalls.Fail{Errno: hostcalls.Inval, Hint: err.Error()}
	}
	report, err := d.app.delegate(ctx, by, path, flags, &job{
		input: asked.Input, event: d.spec.Event, seed: d.seed(), keepAllowed: d.from.common.keepAllowed,
	})
	if err != nil {
		report = refused(ctx, by.parent, err)
	}
	for _, w := range warnings {
		d.from.origin.warnf("%s", w)
	}
	report.Warnings = append(slices.Clone(warnings), report.Warnings...)
	got := report.Delegated()
	got.Warnings = warnings
	return got, nil
}

// installed is the folder of an agent of the tenant's.
func (d *delegates) installed(agent string) (string, error) {
	path := filepath.Join(d.from.home.Agents(), agent)
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &hostcalls.Fail{Errno: hostcalls.Noent, Hint: "no agent of that name is installed; the operator installs one with rlp agent install BUNDLE"}
	}
	return path, err
}

// delegate launches an agent for another one, as rlp launch does. What it prints
// is held for the report.
func (a *app) delegate(ctx context.Context, by origin, path string, f policyFlags, j *job) (*launcher.Report, error) {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return nil, inputErr(fmt.Errorf("the agent at %s is not installed as a folder; run rlp agent install again", path))
	}
	c, err := a.composed(&composition{path: path, origin: by}, f)
	if err != nil {
		return nil, err
	}
	if agent := c.bundle.Manifest.Agent.String(); agent != by.parent.Delegation.Agent {
		return nil, inputErr(fmt.Errorf("what is installed at %s calls itself %s; run rlp agent install again", path, agent))
	}
	c.origin.warn = nil // the report has all that follows
	return a.launchComposed(ctx, c, j)
}

// refused is the report of a run that was never begun.
func refused(ctx context.Context, by run.Parent, err error) *launcher.Report {
	r := &launcher.Report{
		TraceID: by.TraceID, Tenant: by.Tenant, Agent: by.Delegation.Agent, Outcome: launcher.Refused, ExitCode: launcher.StatusFinding,
		Base: []string{}, Effective: []string{}, Changes: []launcher.Change{}, Message: problemOf(err).text(),
	}
	var se *statusError
	if errors.As(err, &se) {
		r.ExitCode = se.status
	}
	if ctx.Err() != nil {
		r.Outcome, r.ExitCode = launcher.Cancelled, launcher.StatusCancelled
	}
	return r
}
