//go:build !slim

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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

// pass hands on what is no capability: who listens to the life of runs, and
// random numbers that come again when those of the launching run do.
func (d *delegates) pass(spec *run.Spec) {
	spec.Event = d.spec.Event
	d.made++
	if d.spec.Seed != nil {
		const odd = 0x9e3779b97f4a7c15 // any two runs of a tree have other numbers
		spec.Seed = new((*d.spec.Seed + d.made) * odd)
	}
}

// Launch implements [hostcalls.Agents]. A run that is refused is a report like
// any other.
func (d *delegates) Launch(ctx context.Context, asked *hostcalls.Delegation) (*hostcalls.Delegated, error) {
	path, err := d.installed(asked.Agent)
	if err != nil {
		return nil, err
	}
	by := &delegation{Parent: run.Parent{Identity: d.spec.Identity, Delegation: asked}, from: d.from, pass: d.pass}
	flags := requested(&by.Parent)
	if _, err := callerLayer(flags, append(policy.BuiltinDomains(), d.from.config.KB.Domains...)); err != nil {
		return nil, &hostcalls.Fail{Errno: hostcalls.Inval, Hint: err.Error()}
	}
	report, err := d.app.delegate(ctx, by, path, flags)
	if err != nil {
		report = by.refused(ctx, err)
	}
	d.app.warnOnce(by.warnings)
	got := report.Delegated()
	got.Warnings = by.warnings
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

// delegate launches an agent for another one: composed, equipped and run as by
// rlp launch, with what it says held for the report.
func (a *app) delegate(ctx context.Context, by *delegation, path string, f policyFlags) (*launcher.Report, error) {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return nil, inputErr(fmt.Errorf("the agent at %s is not installed as a folder; run rlp agent install again", path))
	}
	c, err := a.composeFor(by, path, f)
	if err != nil {
		return nil, err
	}
	if agent := c.bundle.Manifest.Agent.String(); agent != by.Delegation.Agent {
		return nil, inputErr(fmt.Errorf("what is installed at %s calls itself %s; run rlp agent install again", path, agent))
	}
	if err := c.strict(); err != nil {
		return nil, err
	}
	spec, release, err := a.ready(ctx, c)
	if err != nil {
		return nil, err
	}
	report, err := a.delegated(ctx, c, spec)
	if closeErr := release(); closeErr != nil && report != nil {
		report.Warnings = append(report.Warnings, closeErr.Error())
	}
	return report, err
}

// delegated makes the launch.
func (a *app) delegated(ctx context.Context, c *composition, spec *run.Spec) (*launcher.Report, error) {
	by := c.by
	spec.Input = by.Input
	by.Bind(spec)
	by.pass(spec)
	c.common.keepAllowed = by.from.common.keepAllowed
	log, release, err := a.equip(ctx, c, spec)
	if err != nil {
		return nil, err
	}
	for _, w := range by.warnings {
		log.Warn("delegation", "run_id", spec.RunID, "tenant", spec.Tenant, "agent", spec.Agent, "message", w)
	}
	report := run.Launch(ctx, spec)
	report.Warnings = append(by.warnings, report.Warnings...)
	if err := errors.Join(release(), log.Close()); err != nil { // what it used is paid for all the same
		report.Outcome, report.ExitCode, report.Message = launcher.AuditFailed, launcher.StatusAudit, err.Error()
	}
	return report, nil
}

// refused is the report of a run that was never begun.
func (d *delegation) refused(ctx context.Context, err error) *launcher.Report {
	r := &launcher.Report{
		TraceID: d.TraceID, Tenant: d.Tenant, Agent: d.Delegation.Agent, Outcome: launcher.Refused, ExitCode: launcher.StatusFinding,
		Base: []string{}, Effective: []string{}, Changes: []launcher.Change{}, Message: problemOf(err).text(), Warnings: d.warnings,
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
