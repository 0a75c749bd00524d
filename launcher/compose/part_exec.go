package compose

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/launcher/program"
	"runloop.dev/rlp/launcher/run"
)

// execLane is where the programs of a run run.
type execLane = lane.Lane

// execPart gives a run whose bundle asks for exec the lane that was found for
// it. Where there is none, the run is refused.
func execPart(_ *Runner, c *Composition, spec *run.Spec) (func() error, error) {
	if c.lane == nil {
		return nil, nil
	}
	work := c.Home.Work(spec.Agent, spec.RunID)
	x := c.Config.Exec
	var closed []lane.Folder
	if c.lane.Name() != "container" { // whose system is that of an image
		closed, _ = program.Closed(c.Policy.Layers)
	}
	spec.Components.Exec = &programs{
		closed: closed, lane: c.lane, named: c.programs, home: c.Home.Dir(), work: work,
		all: spec.Lane.Controls[lane.Filesystem.String()] != lane.Enforced.String(), stdout: x.StdoutMaxBytes,
		stderr: x.StderrMaxBytes, env: []string{
			"PATH=/usr/bin:/bin", "HOME=" + work, "TMPDIR=" + work, "RLP_TENANT=" + spec.Tenant, "RLP_RUN_ID=" + spec.RunID,
		},
	}
	return nil, nil
}

// execFit finds the lane of a run that holds exec, tries it, and says in spec
// why there is none, what the lane is, and what its operator must know of it. It
// returns what gives the lane up.
func (a *Runner) execFit(ctx context.Context, c *Composition, spec *run.Spec) (release func() error, err error) {
	if c.Program != nil {
		return a.programFit(ctx, c, spec)
	}
	release = func() error { return nil }
	if len(c.programs) == 0 {
		return release, nil
	}
	plan, err := run.NewPlan(c.Policy)
	if err != nil || !plan.Effective.Any(caps.Exec) {
		return release, nil //nolint:nilerr // the launch itself says what is wrong with the policy
	}
	cfg := a.laneConfig(c, spec.Identity)
	cfg.Folders, cfg.Leased = program.Folders(plan.Effective, nil), program.Leased(plan.Effective)
	cfg.Untrusted = spec.Taint.Folders()
	name := c.Config.Exec.Lane
	if name == "auto" && len(c.Config.Exec.Asked) > 0 {
		name = "container" // nothing else keeps what was asked for
	}
	l, err := lane.Open(ctx, name, cfg)
	var unsupported *lane.UnsupportedError
	if errors.As(err, &unsupported) {
		spec.ExecRefused = fmt.Sprintf(`exec: lane = %q: %s; take exec away (--deny process:exec:*), or accept best effort by [exec] lane = "native" in %s`,
			c.Config.Exec.Lane, unsupported.Text(), c.Home.Config())
		return release, nil
	}
	if err != nil {
		return nil, fmt.Errorf("finding a lane for programs: %w", err)
	}
	c.lane = l
	controls := l.Controls()
	spec.Lane = program.LaneReport(l.Name(), controls)
	if label := controls[lane.Links]; label.Level != lane.Enforced && slices.ContainsFunc(cfg.Folders,
		func(f lane.Folder) bool { return f.Access == lane.ReadWrite }) {
		spec.ExecCaveat = fmt.Sprintf("exec: the lane %s judges no links (%s): programs may make and move them in what "+
			"they write, and move granted folders there; a launch refuses a granted path that became a link (path_profile = "+
			"\"strict\")", l.Name(), label.Why)
	}
	if controls[lane.Filesystem].Level != lane.Enforced {
		spec.ExecCaveat = strings.TrimPrefix(spec.ExecCaveat+"; "+
			fmt.Sprintf("exec: the lane %s is best_effort: programs run as you do, and see what you see; nothing but their "+
				"sockets is taken from them for certain", l.Name()), "; ")
	}
	return l.Close, nil
}

// laneConfig is what config.toml says of lanes.
func (a *Runner) laneConfig(c *Composition, id run.Identity) lane.Config {
	x := c.Config.Exec
	return lane.Config{
		Work: c.Home.Work(id.Agent, id.RunID), ID: id.RunID, Self: program.ConfineCommand(a.Helper), Bounds: Bounds(x),
		Container: a.ContainerConfig(x),
	}
}

// programs is a lane as the calls need it.
type programs struct {
	lane  lane.Lane
	named [][]string // becomes the real names of what was written, at the first use
	home  string     // no program is looked for there
	work  string     // the working folder of the run
	found bool
	all   bool // the lane keeps nothing of the operator's files from programs
	env   []string
	// closed are [program.Closed] of the run's policy.
	closed []lane.Folder

	stdout, stderr int64 // what an agent gets of each stream at most; 0 is all that is kept
}

// resolve is [lane.Resolve] where the lane has its programs.
func (p *programs) resolve(written string) (lane.Found, error) {
	if l, ok := p.lane.(lane.Finder); ok {
		return l.Find(written)
	}
	return lane.Resolve(written)
}

// find looks for a program where the lane has its programs.
func (p *programs) find(path string) (lane.Found, error) {
	if l, ok := p.lane.(lane.Finder); ok {
		return l.Find(path, p.home)
	}
	return lane.Find(path, p.home)
}

// Find implements [hostcalls.Exec].
func (p *programs) Find(path string) (hostcalls.Program, error) {
	p.prepare()
	f, err := p.find(path)
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

// Leads implements [hostcalls.Exec].
func (p *programs) Leads(path string) ([]string, error) {
	p.prepare()
	list, err := lane.Leads(path, p.home)
	switch {
	case errors.Is(err, lane.ErrClosed):
		return nil, hostcalls.ErrNoPrograms
	case errors.Is(err, lane.ErrNotData):
		return nil, hostcalls.ErrNotData
	}
	return list, err
}

// Shows implements [hostcalls.Exec]. What an image has is not known, nor what a
// container's settings put over it.
func (p *programs) Shows(path string) bool {
	return p.lane.Name() != "container" && lane.IsSystem(path)
}

// SeesAll implements [hostcalls.Exec].
func (p *programs) SeesAll() bool { return p.all }

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
			if f, err := p.resolve(written); err == nil {
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
		Folders: program.Folders(c.Holds, p.closed), Leased: program.Leased(c.Holds),
	})
	if err != nil {
		return nil, laneError(err)
	}
	return &hostcalls.Ended{
		ExitCode: r.ExitCode, TimedOut: r.TimedOut, OutOfMemory: r.OutOfMemory,
		Stdout: r.Stdout.Data, StdoutCut: r.Stdout.Cut, StdoutMax: int(p.stdout),
		Stderr: r.Stderr.Data, StderrCut: r.Stderr.Cut, StderrMax: int(p.stderr),
	}, nil
}

// laneError gives what the guest did its own number; the rest is the host's
// trouble.
func laneError(err error) error {
	fail := func(number hostcalls.Errno, hint string) error { return &hostcalls.Fail{Errno: number, Hint: hint} }
	var unsupported *lane.UnsupportedError
	switch {
	case errors.Is(err, lane.ErrDir):
		return fail(hostcalls.Inval, "cwd: no folder in the run's working folder, links not followed; give other folders "+
			"as arguments, such as git -C")
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
