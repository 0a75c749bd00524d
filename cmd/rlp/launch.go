package main

import (
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

	"github.com/google/uuid"
	"github.com/spf13/pflag"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/home"
	"runloop.dev/rlp/internal/ident"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/run"
)

type launchFlags struct {
	policyFlags
	input                              string
	stream, dryRun, auditAllow, events bool
	turns, noDaemon                    bool
	seed                               string
}

func (f *launchFlags) register(fs *pflag.FlagSet) {
	f.policyFlags.register(fs)
	fs.StringVar(&f.input, "input", "", "the agent's stdin: `JSON`, @FILE, or - for this stdin")
	fs.BoolVar(&f.stream, "stream", false, "pass the agent's output on as it comes")
	fs.BoolVar(&f.dryRun, "dry-run", false, "say what would be enforced, and launch nothing")
	fs.StringVar(&f.seed, "seed", "", "make random numbers repeatable, from the seed `N`")
	fs.BoolVar(&f.auditAllow, "audit-allow", false, "store allowed calls in the audit log whatever config.toml says")
	fs.BoolVar(&f.turns, "turns", false, "give the agent each line of this stdin as the input of a turn")
	fs.BoolVar(&f.events, "events", false, "print the life of the run as NDJSON on stderr")
	fs.BoolVar(&f.noDaemon, "no-daemon", false, "launch by itself, whoever else could (rlp daemon)")
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
	seed, err := parseSeed(f.seed)
	if err != nil {
		return err
	}
	c, err := a.composeHere(path, f)
	if err != nil {
		return err
	}
	if err := c.strict(); err != nil {
		return err
	}
	if err := a.fit(c, f.dryRun); err != nil {
		return err
	}
	if err := a.begin(c, f); err != nil {
		return err
	}
	spec, release, err := a.ready(ctx, c)
	if err != nil {
		return err
	}
	spec.Args, spec.Seed = args, seed
	if spec.Input, spec.ReadInput, err = a.input(c.home, f.input); err != nil {
		return errors.Join(err, release())
	}
	if f.dryRun {
		err = a.dryRun(spec)
	} else {
		err = a.run(ctx, c, spec, f)
	}
	if closeErr := release(); err == nil {
		err = closeErr
	}
	a.startDaemon(c, f)
	return err
}

func (a *app) dryRun(spec *run.Spec) error {
	report, err := run.DryRun(spec)
	if err != nil {
		return inputErr(err)
	}
	a.policyWarnings(spec)
	if a.json {
		err = a.printJSON(report)
	} else {
		err = a.printPlan(spec.Policy, spec.Paths)
		a.printTools(report.Tools)
	}
	if report.ExitCode != 0 {
		fmt.Fprintf(a.stderr, "rlp: %s\n", printable(report.Message))
	}
	return ending(report.ExitCode, err)
}

// run launches for the operator, and tells what comes of it.
func (a *app) run(ctx context.Context, c *composition, spec *run.Spec, f launchFlags) error {
	c.common.keepAllowed = f.auditAllow
	log, release, err := a.equip(ctx, c, spec)
	if err != nil {
		return err
	}
	if f.events {
		spec.Event = a.printEvent
	}
	a.turns(c, spec, f)
	streams := a.streams(spec, f.stream)
	spec.Slow = progress(a.stderr, "compiling "+spec.Agent+" (the first launch takes longest) ...")
	report := run.Launch(ctx, spec)
	streams()
	err = a.tell(report, spec)
	if closeErr := release(); closeErr != nil && err == nil {
		err = closeErr
	}
	if logErr := log.Close(); logErr != nil && err == nil {
		return &statusError{launcher.StatusAudit, fmt.Errorf("writing the log: %w", logErr)}
	} else if logErr != nil {
		fmt.Fprintf(a.stderr, "rlp: writing the log: %v\n", logErr)
	}
	return err
}

// streams decides where the guest's output goes as it comes, and returns what
// ends it. With --json it is held for the report; otherwise stdout streams, and
// stderr does on a terminal or when asked for.
func (a *app) streams(spec *run.Spec, stream bool) func() {
	if a.json {
		return func() {}
	}
	a.guestOut = &witness{w: a.stdout}
	spec.Stdout = a.guestOut
	if !stream && !isTerminal(a.stderr) {
		return func() {}
	}
	lines := run.GuestLines(a.stderr, true)
	spec.Stderr = lines
	return func() { _ = lines.Close() }
}

// tell prints what came of the run: the marker first, then what was held.
func (a *app) tell(r *launcher.Report, spec *run.Spec) error {
	fmt.Fprint(a.stderr, r.Marker())
	a.policyWarnings(spec)
	for _, w := range append(r.NoTools, a.warned...) {
		fmt.Fprintf(a.stderr, "rlp: %s\n", printable(w))
	}
	if spec.Stderr == nil && !a.json {
		lines := run.GuestLines(a.stderr, false)
		_, _ = io.WriteString(lines, r.Stderr)
		_ = lines.Close()
	}
	if r.Marker() == "" && r.Message != "" {
		fmt.Fprintf(a.stderr, "rlp: %s\n", printable(r.Message))
	}
	a.truncations(r)
	if !a.json {
		return ending(r.ExitCode, a.guestOut.lost())
	}
	return ending(r.ExitCode, a.printJSON(r))
}

// warnOnce keeps what its operator believes and is not so, once in an
// invocation: it is told when the run is over, behind the line that says how.
func (a *app) warnOnce(warnings []string) {
	for _, w := range warnings {
		if !slices.Contains(a.warned, w) {
			a.warned = append(a.warned, w)
		}
	}
}

func (a *app) truncations(r *launcher.Report) {
	if a.quiet {
		return
	}
	for _, s := range []struct {
		name string
		cut  bool
	}{{"stdout", r.Usage.StdoutTruncated}, {"stderr", r.Usage.StderrTruncated}} {
		if s.cut {
			fmt.Fprintf(a.stderr, "rlp: the agent's %s was cut at limits.%s_max_bytes\n", s.name, s.name)
		}
	}
}

func (a *app) printEvent(name string, fields map[string]any) {
	fields["event"], fields["ts"] = name, time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	if line, err := json.Marshal(fields); err == nil {
		fmt.Fprintf(a.stderr, "%s\n", line)
	}
}

// logFindings puts what was found in bundle and policy into the log, and so on
// stderr with -v.
func (c *composition) logFindings(log *runLog, id run.Identity) {
	for _, f := range c.findings {
		log.Warn("finding", "run_id", id.RunID, "tenant", id.Tenant, "agent", id.Agent, "code", string(f.Code), "message", f.String())
	}
	for _, f := range c.bundle.Findings {
		log.Warn("finding", "run_id", id.RunID, "tenant", id.Tenant, "agent", id.Agent, "code", f.Code, "message", f.String())
	}
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
	traceID := strings.ReplaceAll(uuid.NewString(), "-", "")
	id := runID.String()
	if c.commission != nil {
		id, traceID = cmp.Or(c.commission.runID, id), cmp.Or(c.commission.traceID, traceID)
	}
	spec := &run.Spec{
		Identity: run.Identity{
			RunID: id, TraceID: traceID, Tenant: c.home.Tenant(),
			Agent: m.Agent.String(), Version: m.Version, BundleDigest: c.bundle.Digest,
		},
		Module: c.bundle.Wasm, ModuleSHA256: c.bundle.WasmSHA256, Policy: c.policy, Paths: c.paths, Relaxed: c.relaxed(), Params: c.params,
		Taint: taint, Env: a.guestVariable, FailOnEmpty: c.config.Security.Caps.FailOnEmpty,
		CacheDir: c.home.Cache(), Compiler: a.self, Now: time.Now,
	}
	spec.Paths.Aliases = a.aliases(c)
	return spec, a.attach(c, spec)
}

// input is the agent's stdin as the flag gives it, or what reads it: stdin and
// files can keep others waiting.
func (a *app) input(h home.Home, flag string) ([]byte, func(ctx context.Context) ([]byte, error), error) {
	var read func() ([]byte, error)
	switch {
	case flag == "":
		return nil, nil, nil
	case flag == "-":
		read = func() ([]byte, error) { return io.ReadAll(io.LimitReader(a.stdin, maxInput+1)) }
	case strings.HasPrefix(flag, "@"):
		var foreign error
		if moved := a.here(func() { foreign = own(h, flag[1:]) }); moved != nil || foreign != nil {
			return nil, nil, errors.Join(foreign, moved)
		}
		read = func() (data []byte, err error) {
			moved := a.here(func() { data, err = readAtMost(flag[1:]) })
			return data, errors.Join(moved, err)
		}
	default:
		return []byte(flag), nil, checkInput([]byte(flag))
	}
	return nil, func(ctx context.Context) ([]byte, error) {
		data, err := unlessOver(ctx, read)
		if err != nil {
			return nil, fmt.Errorf("reading --input: %w", err)
		}
		return data, checkInput(data)
	}, nil
}

// checkInput refuses what is not one JSON document.
func checkInput(data []byte) error {
	if len(data) > maxInput {
		return inputErr(fmt.Errorf("reading --input: more than %d MiB", maxInput>>20))
	}
	if !json.Valid(data) {
		return inputErr(errors.New("--input is not one JSON document; write @FILE for a file, and quote strings as JSON does"))
	}
	if err := hostcalls.GivenTwice(string(data)); err != nil {
		return inputErr(fmt.Errorf("--input: %w; keep one", err))
	}
	return nil
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

// maxInput bounds what an agent is given to read.
const maxInput = 64 << 20

func readAtMost(path string) ([]byte, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxInput+1))
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
