//go:build !slim

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/lane"
	"runloop.dev/rlp/launcher"
)

// execPart gives a run whose bundle asks for exec the lane that config.toml
// names. Where that lane is not to be had, the run was refused before.
func execPart(_ *app, c *composition, spec *launcher.Spec) (func() error, error) {
	if len(c.programs) == 0 {
		return nil, nil
	}
	work := c.home.Work(spec.Agent, spec.RunID)
	l, err := lane.Open(context.Background(), c.config.Exec.Lane, lane.Config{Work: work, ID: spec.RunID})
	if err != nil {
		return nil, nil //nolint:nilerr // execFit said it, and the launch refuses
	}
	spec.Components.Exec = &programs{lane: l, named: c.programs, home: c.home.Dir(), env: []string{
		"PATH=/usr/bin:/bin", "HOME=" + work, "TMPDIR=" + work, "RLP_TENANT=" + spec.Tenant, "RLP_RUN_ID=" + spec.RunID,
	}}
	return l.Close, nil
}

// execFit says why a run that holds exec must be refused under the lane that
// config.toml names, or what its operator must know of the lane.
func (c *composition) execFit() (refused, caveat string) {
	if len(c.programs) == 0 {
		return "", ""
	}
	l, err := lane.Open(context.Background(), c.config.Exec.Lane, lane.Config{})
	var unsupported *lane.UnsupportedError
	switch {
	case errors.As(err, &unsupported):
		return fmt.Sprintf(`exec: lane = %q: %s; take exec away (--deny process:exec:*), or accept best effort by [exec] lane = "native" in %s`,
			unsupported.Lane, unsupported.Why, c.home.Config()), ""
	case err != nil:
		return err.Error(), ""
	case l.Controls()[lane.Filesystem].Level != lane.Enforced:
		caveat = fmt.Sprintf("exec: the lane %s is best_effort: programs run as you do, and see what you see; nothing but their sockets is taken from them for certain", l.Name())
	}
	return "", caveat
}

// programs is a lane as the calls need it.
type programs struct {
	lane  lane.Lane
	named [][]string // becomes the real names of what was written, at the first use
	home  string     // no program is looked for there
	found bool
	env   []string
}

// Find implements [hostcalls.Exec].
func (p *programs) Find(path string) (hostcalls.Program, error) {
	p.prepare()
	f, err := lane.Find(path, p.home)
	if errors.Is(err, lane.ErrClosed) {
		return hostcalls.Program{}, hostcalls.ErrNoPrograms
	}
	if err != nil {
		return hostcalls.Program{}, laneError(err)
	}
	found := hostcalls.Program{File: f.File, Via: append(f.Via, f.File)}
	for _, name := range []string{f.Named, f.File} {
		if p.allName(name) {
			found.Name = name
			break
		}
	}
	return found, nil
}

// prepare finds, once, what the names of the operator's own lead to.
func (p *programs) prepare() {
	if p.found {
		return
	}
	p.found = true
	if f, err := lane.Resolve(p.home); err == nil {
		p.home = f.File
	}
	for _, list := range p.named {
		for i, written := range list {
			if f, err := lane.Resolve(written); err == nil {
				list[i] = f.Named
			}
		}
	}
}

// allName reports whether every policy that bounds exec has name in it.
func (p *programs) allName(name string) bool {
	for _, list := range p.named {
		if !slices.Contains(list, name) && !slices.Contains(list, "*") {
			return false
		}
	}
	return true
}

// Run implements [hostcalls.Exec].
func (p *programs) Run(ctx context.Context, c *hostcalls.Command) (*hostcalls.Ended, error) {
	r, err := p.lane.Run(ctx, &lane.Command{
		Program: c.File, Argv: c.Argv, Env: append(slices.Clip(p.env), c.Env...), Dir: c.Dir,
		Stdin: c.Stdin, Timeout: c.Timeout, MaxOutput: c.MaxOutput,
	})
	if err != nil {
		return nil, laneError(err)
	}
	return &hostcalls.Ended{
		ExitCode: r.ExitCode, TimedOut: r.TimedOut,
		Stdout: r.Stdout.Data, StdoutCut: r.Stdout.Cut, Stderr: r.Stderr.Data, StderrCut: r.Stderr.Cut,
	}, nil
}

// laneError gives what the guest did its own number; the rest is the host's
// trouble.
func laneError(err error) error {
	fail := func(number hostcalls.Errno, hint string) error { return &hostcalls.Fail{Errno: number, Hint: hint} }
	var unsupported *lane.UnsupportedError
	switch {
	case errors.Is(err, lane.ErrDir):
		return fail(hostcalls.Inval, "cwd: no folder in the run's working folder, links not followed; give other folders as arguments, such as git -C")
	case errors.Is(err, lane.ErrNotExist), errors.Is(err, fs.ErrNotExist):
		return fail(hostcalls.Noent, "argv[0]: no such program")
	case errors.Is(err, lane.ErrNotProgram), errors.Is(err, fs.ErrPermission):
		return fail(hostcalls.Inval, "argv[0]: not an executable regular file of a format that this machine runs")
	case errors.Is(err, lane.ErrTooBig):
		return fail(hostcalls.TooBig, "argv and env are more than the system takes")
	case errors.As(err, &unsupported):
		return fail(hostcalls.Notsup, unsupported.Error())
	}
	return err
}
