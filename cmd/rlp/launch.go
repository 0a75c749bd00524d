package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

type launchFlags struct {
	compose.Flags
	input                              string
	stream, dryRun, auditAllow, events bool
	turns, noDaemon                    bool
	seed                               string
}

// registerPolicy defines the flags by which an invocation narrows.
func registerPolicy(fs *pflag.FlagSet, f *compose.Flags) {
	f.Bare = compose.AllowOfModule
	fs.Var((*textsFlag)(&f.Overrides), "override", "a further override `FILE`; narrows only")
	fs.Var((*textsFlag)(&f.Profiles), "profile", "apply the profile `NAME`; rlp caps profiles lists them")
	fs.Var((*textsFlag)(&f.Allow), "allow", "bound the family of `CAP` to it, such as fs:read:/tmp; a module without a bundle asks for just that")
	fs.Var((*textsFlag)(&f.Deny), "deny", "take `CAP` away, such as kb:write:*; may be given again")
	fs.Var((*textsFlag)(&f.Limits), "limit",
		"set a limit by `KEY=N`, such as wall_time_ms=1000: lowers what others say, lifts a default")
	fs.Var((*textsFlag)(&f.Params), "param", "fill in a placeholder of the policy by `NAME=PATH`")
}

func (f *launchFlags) register(fs *pflag.FlagSet) {
	registerPolicy(fs, &f.Flags)
	fs.StringVar(&f.input, "input", "", "the agent's stdin: `JSON` (or what its manifest takes), @FILE, or - for this stdin")
	fs.BoolVar(&f.stream, "stream", false, "pass the agent's output on as it comes")
	fs.BoolVar(&f.dryRun, "dry-run", false, "say what would be enforced, and launch nothing")
	fs.StringVar(&f.seed, "seed", "", "make random numbers repeatable, from the seed `N`")
	fs.BoolVar(&f.auditAllow, "audit-allow", false, "store allowed calls in the audit log whatever config.toml says")
	fs.BoolVar(&f.turns, "turns", false, "give the agent each line of this stdin as the input of a turn")
	fs.BoolVar(&f.events, "events", false, "print the life of the run as NDJSON on stderr")
	fs.BoolVar(&f.noDaemon, "no-daemon", false, "do not use the daemon (rlp daemon)")
}

// parseLaunch reads the arguments of a launch by the flags that its command has,
// without the commands around it.
func (a *app) parseLaunch() (f launchFlags, fs *pflag.FlagSet, err error) {
	fs = pflag.NewFlagSet("launch", pflag.ContinueOnError)
	fs.Usage = func() {}
	a.register(fs)
	f.register(fs)
	err = fs.Parse(a.args[1:])
	a.homeSet = fs.Changed("home")
	return f, fs, err
}

// oneBundle refuses all but a BUNDLE and what follows --, which stands before
// args[dash]; -1 says that there is none.
func oneBundle(args []string, dash int) error {
	if len(args) == 0 || dash == 0 || dash > 1 || dash < 0 && len(args) > 1 {
		return usagef("rlp launch takes one BUNDLE; arguments for the agent follow --")
	}
	return nil
}

func (a *app) launch(ctx context.Context, path string, args []string, f launchFlags) error {
	a.launching = true
	if err := f.oneReader(); err != nil {
		return err
	}
	j := &compose.Job{Args: args, KeepAllowed: f.auditAllow}
	var err error
	if j.Seed, err = parseSeed(f.seed); err != nil {
		return err
	}
	if f.dryRun && a.invoker == nil {
		if err := emptyHome(a); err != nil {
			return err
		}
	}
	c, err := a.composeHere(path, f)
	if err != nil {
		return err
	}
	if err := c.Strict(); err != nil {
		return err
	}
	a.hear() // what follows is begun and printed
	if err := a.begin(c, f); err != nil {
		return err
	}
	passes(ctx, a, c, f.input != "")
	if j.Input, j.ReadInput, err = a.input(c.Home, f.input); err != nil {
		return cmp.Or(c.MustBeSet("launch"), err)
	}
	if f.dryRun {
		err = a.dryRun(ctx, c, j)
	} else {
		err = a.run(ctx, c, j, f, path)
	}
	a.startDaemon(c, f)
	return err
}

func (a *app) dryRun(ctx context.Context, c *compose.Composition, j *compose.Job) error {
	spec, release, err := a.runner().Ready(ctx, c, j)
	if err != nil {
		return err
	}
	report, err := run.DryRun(spec)
	if err = errors.Join(err, release()); err != nil {
		return inputErr(err)
	}
	if c.Program != nil && spec.Lane != nil {
		report.Notices = append(report.Notices, "the program would run in the lane "+spec.Lane.Name)
	}
	for _, w := range report.Notices {
		a.say(w)
	}
	if a.json {
		err = a.printJSON(report)
	} else {
		err = a.printPlan(spec.Policy, spec.Paths)
		a.printTools(report.Tools)
	}
	if report.ExitCode != 0 {
		a.say(printable(report.Message))
	}
	return ending(report.ExitCode, err)
}

// run launches for the operator, and tells how the run ended.
func (a *app) run(ctx context.Context, c *compose.Composition, j *compose.Job, f launchFlags, path string) error {
	if f.events {
		j.Event = a.printEvent
	}
	if f.turns {
		j.Inputs = &lines{r: bufio.NewReaderSize(a.stdin, 64<<10)}
		j.InputsCount = !isTerminal(a.stdin) // nobody is waited for
	}
	live := c.Program != nil && c.Program.Live != nil
	end := func() { a.guestOut = &witness{w: io.Discard} }
	if !live {
		end = a.streams(j, f.stream)
	}
	j.Slow = progress(a.stderr, "compiling "+c.Bundle.Manifest.Agent.String()+" (the first launch takes longest) ...")
	report, err := a.runner().Launch(ctx, c, j)
	end()
	if err != nil {
		return err
	}
	err = a.tell(report, live || j.Stderr != nil)
	if !a.json && !a.quiet && (a.verbose || isTerminal(a.stderr) || c.Program != nil && report.Usage.Denied > 0) {
		summarize(ctx, a, report, path, c.Bundle.Bare)
	}
	return err
}

// streams decides where the guest's output goes as it comes, and returns what
// ends it. With --json it is held for the report; otherwise stdout streams, and
// stderr does on a terminal or when asked for.
func (a *app) streams(j *compose.Job, stream bool) func() {
	if a.json {
		return func() {}
	}
	a.guestOut = &witness{w: a.stdout}
	j.Stdout = a.guestOut
	if !stream && !isTerminal(a.stderr) {
		return func() {}
	}
	lines := run.GuestLines(a.stderr, true)
	j.Stderr = lines
	return func() { _ = lines.Close() }
}

// passing are the streams of this process as a program has them; nil with --json, which
// holds them for the report, and where they are no files.
func passing(ctx context.Context, a *app, input bool) *lane.Live {
	in, isIn := a.stdin.(*os.File)
	out, isOut := a.stdout.(*os.File)
	err, isErr := a.stderr.(*os.File)
	if a.json || !isIn || !isOut || !isErr {
		return nil
	}
	if a.live = true; input {
		in = nil
	}
	return &lane.Live{Stdin: in, Stdout: out, Stderr: err, Signals: passed(ctx)}
}

// passes has the streams of this process pass through to what is launched, where it is
// a program; on a terminal that ends when its person has it end.
func passes(ctx context.Context, a *app, c *compose.Composition, input bool) {
	if c.Program != nil {
		c.Policy.Endless, c.Program.Live = !a.json && isTerminal(a.stdin), passing(ctx, a, input)
	}
}

// tell prints how the run ended: the marker first, then the guest's stderr unless
// it was shown live.
func (a *app) tell(r *launcher.Report, live bool) error {
	fmt.Fprint(a.stderr, r.Marker())
	for _, w := range append(r.Notices, a.warned...) {
		a.say(w)
	}
	if !live && !a.json {
		lines := run.GuestLines(a.stderr, false)
		_, _ = io.WriteString(lines, r.Stderr)
		_ = lines.Close()
	}
	if r.Marker() == "" && r.Message != "" {
		a.say(printable(r.Message))
	}
	a.truncations(r)
	if !a.json {
		return ending(r.ExitCode, a.guestOut.lost())
	}
	return ending(r.ExitCode, a.printJSON(r))
}

// warnOnce keeps a warning, once in an invocation: it is printed when the run is
// over, behind the line that says how.
func (a *app) warnOnce(w string) {
	if !slices.Contains(a.warned, w) {
		a.warned = append(a.warned, w)
	}
}

// watching is where logs are shown to a person; nil: nobody asked for them.
func (a *app) watching() io.Writer {
	if a.verbose {
		return a.stderr
	}
	return nil
}

// say prints a warning at once.
func (a *app) say(w string) { fmt.Fprintln(a.stderr, fitted(a.stderr, "rlp: "+printableLines(w))) }

func (a *app) truncations(r *launcher.Report) {
	if a.quiet || a.live {
		return
	}
	for _, s := range []struct {
		name string
		cut  bool
	}{{"stdout", r.Usage.StdoutTruncated}, {"stderr", r.Usage.StderrTruncated}} {
		if s.cut {
			a.say(fmt.Sprintf("the agent's %s was cut at limits.%s_max_bytes", s.name, s.name))
		}
	}
}

func (a *app) printEvent(name string, fields map[string]any) {
	fields["event"], fields["ts"] = name, time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	if line, err := json.Marshal(fields); err == nil {
		fmt.Fprintf(a.stderr, "%s\n", line)
	}
}

// input is the agent's stdin as the flag gives it, or what reads it: stdin and
// files can keep others waiting.
func (a *app) input(h home.Home, flag string) ([]byte, func(ctx context.Context) ([]byte, error), error) {
	var read func() ([]byte, error)
	switch {
	case flag == "":
		return nil, nil, nil
	case flag == "-":
		read = func() ([]byte, error) { return io.ReadAll(io.LimitReader(a.stdin, compose.MaxInput+1)) }
	case strings.HasPrefix(flag, "@"):
		var foreign error
		if moved := a.here(func() { foreign = compose.Own(h, flag[1:]) }); moved != nil || foreign != nil {
			return nil, nil, errors.Join(foreign, moved)
		}
		read = func() (data []byte, err error) {
			moved := a.here(func() { data, err = readAtMost(flag[1:]) })
			return data, errors.Join(moved, err)
		}
	default:
		return []byte(flag), nil, nil
	}
	return nil, func(ctx context.Context) ([]byte, error) { return unlessOver(ctx, read) }, nil
}

// unlessOver reads, and waits no longer when ctx is over: a terminal or a FIFO
// that nobody writes to has no end.
func unlessOver(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	var data []byte
	done := make(chan error, 1)
	go func() {
		var err error
		data, err = read()
		done <- err
	}()
	select {
	case err := <-done:
		return data, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func readAtMost(path string) ([]byte, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, compose.MaxInput+1))
}

func parseSeed(text string) (*uint64, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil, usagef("--seed %s: a whole number from 0 on", text)
	}
	return &n, nil
}
