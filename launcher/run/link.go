package run

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/base/guard"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/launcher/places"
)

// maxFiles bounds the descriptors that one guest may hold open.
const maxFiles = 256

// link makes everything that the guest can import, and what undoes it.
func (r *run) link() ([]abi.Func, func(), error) {
	untrusted := r.spec.Taint.Folders()
	fsGate, err := newPathGate(r.gate, untrusted)
	if err != nil {
		return nil, nil, err
	}
	j, err := jail.Open(jail.Config{
		Gate: fsGate, Roots: roots(r.spec.Policy.Base), Aliases: r.spec.Paths.Aliases,
		AsWritten: r.spec.Paths.AsWritten, Stay: untrusted,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("pinning the fs grants: %w", err)
	}
	if err := r.absent(j.Missing()); err != nil {
		return nil, nil, errors.Join(err, j.Close())
	}
	own, err := r.own()
	if err != nil {
		return nil, nil, errors.Join(err, j.Close())
	}
	env, err := r.environment()
	if err != nil {
		return nil, nil, errors.Join(err, j.Close())
	}
	clock, onClock := r.clock()
	before := r.gate.Calls()
	sys, err := wasi.New(wasi.Config{
		Args: append([]string{r.spec.Agent}, r.spec.Args...), Env: env,
		Stdin: bytes.NewReader(r.input), Stdout: &r.out, Stderr: &r.err,
		FS: j, OnReject: fsGate.Reject, Clock: clock, OnClock: onClock, Random: r.random(), MaxFiles: maxFiles,
		Begun: func() bool { return r.gate.Calls() > before },
	})
	if err != nil {
		return nil, nil, errors.Join(err, j.Close())
	}
	stop := func() { sys.Close(); _ = j.Close() }
	funcs := sys.Funcs()
	for i := range funcs {
		funcs[i].Call = stopUnrecorded(r.gate, funcs[i].Call)
	}
	return r.floored(append(funcs, own...)), stop, nil
}

// floored makes the limits of the floor hold from the call on that marks the
// run. Only a run whose floor has some, or may get some between turns, pays for it.
func (r *run) floored(funcs []abi.Func) []abi.Func {
	floor := r.spec.Taint.Floor
	if floor == nil || len(floor.Limits.Map()) == 0 && r.spec.Look == nil {
		return funcs
	}
	done := false
	look := func(ctx context.Context) {
		if _, marked := r.gate.Tainted(); marked && !done {
			done = true
			r.bound(ctx)
		}
	}
	for i, do := range funcs {
		funcs[i].Call = func(ctx context.Context, mem []byte, stack []uint64) error {
			look(ctx) // what was taken in before the first call
			err := do.Call(ctx, mem, stack)
			look(ctx)
			return err
		}
	}
	return funcs
}

// own are the host calls beside WASI's. The input is taken in with them, for
// what it marks is to count from the first thing that the guest is given.
func (r *run) own() ([]abi.Func, error) {
	sources, err := r.spec.Taint.sources()
	if err != nil {
		return nil, err
	}
	left, above := r.left, r.spec.Above
	if r.spec.Body != nil {
		r.shared = budget.New(r.plan.Limits, above)
		left, above = nil, r.shared
	}
	var lock sync.Locker
	if r.calls != nil {
		lock = r.calls.Lock()
	}
	r.host = hostcalls.New(hostcalls.Config{
		Gate: r.gate, Sources: sources, Components: r.spec.Components, Limits: r.plan.Limits,
		Above: above, Left: left, Lock: lock,
		Now: func() int64 { return r.spec.Now().UnixNano() },
		Log: r.agentLog, Failed: r.failed, Warn: r.warnOnce,
		Replaced: func(id, op string) { r.values.replaced(id, op, op) },
		Turns:    r.turns(),
	})
	own, err := r.host.Funcs()
	if err != nil {
		return nil, err
	}
	return own, r.takeIn()
}

// takeIn marks the run by what its agent has from the beginning: input, and, a
// program, the files that it sees.
func (r *run) takeIn() error {
	if len(r.input) > 0 || r.spec.Reads {
		if err := r.host.TakeInInput(); err != nil {
			return err
		}
	}
	if r.spec.Shows == nil {
		return nil
	}
	return r.host.TakeInProgram(r.spec.Shows)
}

type call = func(ctx context.Context, mem []byte, stack []uint64) error

// stopUnrecorded ends the run after a call whose decision could not be recorded.
func stopUnrecorded(g *gate.Gate, do call) call {
	return func(ctx context.Context, mem []byte, stack []uint64) error {
		if err := do(ctx, mem, stack); err != nil {
			return err
		}
		return g.Err()
	}
}

// environment is what the guest sees: granted names that are set, and the
// values of its placeholders. Nobody asks for a variable when it is read, so
// the gate decides here, once for each.
func (r *run) environment() ([]string, error) {
	op, err := r.gate.Op(environOp)
	if err != nil {
		return nil, fmt.Errorf("naming %s: %w", environOp, err)
	}
	var env []string
	for _, g := range r.plan.Effective.Grants() {
		if g.Family != caps.Env {
			continue
		}
		v, set := r.spec.Env(g.Scope)
		if !set || strings.HasPrefix(g.Scope, paramPrefix) {
			continue
		}
		given := r.gate.Give(op, caps.Request{Family: caps.Env, Name: g.Scope}, g.Scope)
		if err := r.gate.Err(); err != nil {
			return nil, err
		}
		if given {
			env = append(env, g.Scope+"="+v)
		}
	}
	for name, value := range r.spec.Params {
		env = append(env, paramPrefix+strings.ToUpper(name)+"="+value)
	}
	slices.Sort(env)
	return env, nil
}

const environOp = "environ_get"

// paramPrefix begins the names under which a guest finds its placeholders.
const paramPrefix = "RLP_PARAM_"

func (r *run) random() io.Reader {
	if r.spec.Seed == nil {
		return rand.Reader
	}
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], *r.spec.Seed)
	return mathrand.NewChaCha8(seed)
}

// roots are the paths to pin: the files that the base grants, which is where
// handles are needed whatever a layer left of them. One that lies in another is
// among them, so that nobody moves it.
func roots(base []caps.Entry) []string {
	var list []string
	for _, e := range base {
		if e.Grant.Family == caps.FS {
			list = append(list, e.Grant.Scope)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// serve runs the body of a run that has no module.
func serve(ctx context.Context, r *run) {
	c := &Calls{Input: r.input, Stdout: &r.out, Stderr: &r.err, funcs: map[string]abi.Func{}}
	r.calls = c
	own, err := r.own()
	if err != nil {
		r.failStart(err)
		return
	}
	if c.Env, err = r.environment(); err != nil {
		r.failStart(err)
		return
	}
	within, cancel, given := timed(ctx, r)
	defer cancel()
	edits := &turns{run: r}
	c.Gate, c.Host, c.Budget = r.gate, r.host, r.shared
	c.Base, c.Holds, c.Limits = r.plan.Base, r.plan.Effective, r.plan.Limits
	c.edits = func() error { return edits.reload(within, editSource) }
	for _, f := range r.floored(own) {
		f.Call = stopUnrecorded(r.gate, f.Call)
		c.funcs[f.Name] = f
	}
	r.event("run.running", nil)
	began := r.spec.Now()
	err = guard.Call(func() error { return r.spec.Body(within, c) })
	c.mu.Lock()
	r.shut(nil)
	c.mu.Unlock()
	r.report.Lane = laneOfBody(r.spec)
	end := guest.End{Kind: guest.OK, Err: err, Wall: r.spec.Now().Sub(began), Given: given}
	var broken *guard.Broken
	var stopped *Stopped
	var exit ExitCode
	switch {
	case ctx.Err() != nil:
		end.Kind, end.Err = guest.Cancelled, context.Cause(ctx)
	case within.Err() != nil:
		end.Kind = guest.Timeout
	case errors.As(err, &broken):
		end.Kind, end.In = guest.HostError, "serving"
		r.note(slog.LevelError, "serving broke", slog.String("where", string(broken.Stack)))
	case errors.As(err, &exit):
		end.Kind, end.ExitCode, end.Err = guest.Exit, uint32(exit), nil
	case err != nil && r.gate.Err() == nil && !errors.As(err, &stopped):
		stopped = &Stopped{Refused, StatusUnavailable, err.Error()}
	}
	if r.ended(end); stopped != nil && r.report.Outcome == OK {
		r.report.GuestExit = nil
		r.report.refuse(stopped.Outcome, stopped.Status, places.Host(stopped.Message))
	}
}

// timed bounds a body by the wall time of its run, where there is any.
func timed(ctx context.Context, r *run) (context.Context, context.CancelFunc, time.Duration) {
	if _, bound := r.plan.Limits.Get(caps.WallTimeMS); !bound {
		within, cancel := context.WithCancel(ctx)
		return within, cancel, 0
	}
	given := wallTime(r.plan.Limits)
	within, cancel := context.WithTimeout(ctx, given)
	return within, cancel, given
}

// A goneError says that a granted path went away while the launch was under way.
type goneError struct{ why places.Text }

func (e *goneError) Error() string { return e.why.String() }

// absent warns of granted paths that are not there, and refuses them unless
// they are to be kept.
func (r *run) absent(paths []string) error {
	var gone []string
	granted := left(r.plan, caps.FS)
	for _, p := range paths {
		if !slices.Contains(granted, p) {
			continue
		}
		if r.spec.Paths.AsWritten {
			r.warn("the fs grant %s is not to be had as written", places.Path(p))
		} else {
			r.warn("the fs grant %s does not exist", places.Path(p))
		}
		gone = append(gone, p)
	}
	if r.spec.Relaxed || len(gone) == 0 {
		return nil
	}
	return &goneError{r.spec.Paths.strictly(gone)}
}

// left is what the guest that is under way has left of time, and of fuel in
// whole units.
func (r *run) left() (wall time.Duration, fuel int64, bounded bool) {
	wall, instructions, bounded := r.module.Left()
	return wall, instructions / fuelUnit, bounded
}
