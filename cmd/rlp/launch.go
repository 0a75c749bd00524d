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
	"strconv"
	"time"

	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

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
		err = dryRun(ctx, a, c, j)
	} else {
		err = a.run(ctx, c, j, f, path)
	}
	beginDaemon(a, c, f)
	return err
}

func dryRun(ctx context.Context, a *app, c *compose.Composition, j *compose.Job) error {
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
		err = printPlan(a, spec.Policy, spec.Paths)
		printTools(a, report.Tools)
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
	if (live || f.events) && !isTerminal(a.stderr) {
		a.beside = run.NewBeside(a.stderr, f.events)
		a.stderr = a.beside
		defer a.beside.Close()
	}
	switch {
	case !live:
		end = a.streams(j, f.stream)
	case a.beside != nil:
		c.Program.Live.Errors = a.beside.Pass
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
	return cmp.Or(err, learnt(ctx, a, c, f.learning, report.RunID))
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
	lines := run.GuestLines(guestErr(a), true)
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
		lines := run.GuestLines(guestErr(a), false)
		_, _ = io.WriteString(lines, r.Stderr)
		_ = lines.Close()
	}
	if r.Marker() == "" && r.Message != "" {
		a.say(printable(r.Message))
	}
	truncations(a, r)
	if !a.json {
		return ending(r.ExitCode, a.guestOut.lost())
	}
	return ending(r.ExitCode, a.printJSON(r))
}

// guestErr is where the guest's stderr goes.
func guestErr(a *app) io.Writer {
	if a.beside == nil {
		return a.stderr
	}
	return a.beside.Theirs()
}

func truncations(a *app, r *launcher.Report) {
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
