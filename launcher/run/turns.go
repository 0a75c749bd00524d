package run

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/engine/abi"
)

// turns are those of one run. The set that a turn begins with is the one that it
// ends with, but for what the guest's own reading takes away: the operator's
// edits wait for the end of the turn.
type turns struct {
	run      *run
	over     bool   // there is no further input
	rejected string // why the newest edit was, as it was told
}

// turns are none for a run of one input.
func (r *run) turns() hostcalls.Turns {
	r.turn = 1
	if r.spec.Inputs == nil {
		return nil
	}
	return &turns{run: r}
}

// Next ends the turn and returns the input of the next one. What the operator
// edited while the guest computed or waited is applied between the two. The end
// of the input is the last such place: no turn follows, and what the guest does
// then is under the newest word, too.
func (t *turns) Next(ctx context.Context) ([]byte, error) {
	if t.over {
		return nil, io.EOF
	}
	t.run.event("turn.ended", map[string]any{"turn": t.run.turn})
	input, err := t.wait(ctx)
	for errors.Is(err, ErrReload) {
		if err := t.reload(ctx, askedSource); err != nil {
			return nil, err
		}
		input, err = t.wait(ctx)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err() // the run is over
	}
	t.over = err != nil && !isFail(err)
	if reloadErr := t.reload(ctx, turnSource); reloadErr != nil {
		return nil, reloadErr
	}
	if t.over {
		return nil, t.last(err)
	}
	t.begin(len(input), err)
	return input, err
}

// wait waits for a person, which takes none of the guest's time, or for a program.
func (t *turns) wait(ctx context.Context) ([]byte, error) {
	if t.run.spec.InputsCount {
		return t.run.spec.Inputs.Next(ctx)
	}
	defer abi.ClockOf(ctx).Stop()()
	return t.run.spec.Inputs.Next(ctx)
}

func isFail(err error) bool {
	var f *hostcalls.Fail
	return errors.As(err, &f)
}

// last is what the guest is told when no input follows.
func (t *turns) last(err error) error {
	if !errors.Is(err, io.EOF) {
		t.run.warn("the next input could not be read: %v", err)
	}
	return err
}

// begin says that a turn begins, with an input of so many bytes or with one that
// the guest cannot be given.
func (t *turns) begin(size int, err error) {
	t.run.telling.Lock()
	t.run.turn++
	t.run.telling.Unlock()
	fields := map[string]any{"turn": t.run.turn, "bytes": size}
	var f *hostcalls.Fail
	if errors.As(err, &f) {
		fields["error"] = f.Errno.String()
	}
	t.run.event("turn.started", fields)
	t.run.note(slog.LevelInfo, "turn_start", slog.Int64("turn", t.run.turn), slog.Int("bytes", size))
}

// reload applies what the operator edited since it was last looked at: all of it
// or, when any of it is wrong, nothing. It fails only when the swap cannot be
// recorded, which ends the run. asked says who asked for it.
func (t *turns) reload(ctx context.Context, asked string) error {
	r := t.run
	if r.spec.Look == nil {
		return nil
	}
	look, edited, err := r.spec.Look()
	if err != nil {
		t.reject(err, asked)
		return nil
	}
	t.rejected = ""
	if !edited {
		return nil
	}
	source := asked + " " + strings.Join(look.Components, ", ")
	changed, err := r.gate.Reload(source, look.Layers, look.Floor...)
	if r.gate.Err() != nil {
		return r.gate.Err()
	}
	if err != nil {
		t.reject(err, asked)
		return nil
	}
	r.bound(ctx)
	for _, n := range look.Notes {
		r.warnOnce(n)
	}
	r.event("config_reloaded", map[string]any{
		"source": asked, "components": look.Components, "failed": []string{}, "changed": changed,
		"generation": r.gate.Generation(), "turn": t.run.turn + 1,
	})
	r.note(slog.LevelInfo, "config_reloaded", slog.Any("components", look.Components), slog.Bool("changed", changed),
		slog.Int64("generation", r.gate.Generation()))
	return nil
}

// What asks for a reload: the end of a turn, the operator while the guest waits for
// them, or, where a program runs, the edit itself. No call does.
const (
	turnSource  = "turn"
	askedSource = "/reload"
	editSource  = "edit"
)

// reject says that an edit changed nothing, once for as long as it is the same.
func (t *turns) reject(err error, asked string) {
	why := err.Error()
	if why == t.rejected {
		return
	}
	t.rejected = why
	t.run.event("config_reload_rejected", map[string]any{
		"source": asked, "reason": why,
		"generation": t.run.gate.Generation(), "turn": t.run.turn + 1,
	})
	t.run.notice("the edits were not applied, and what held before holds: " + why)
	t.run.warn("the edits were not applied, and what held before holds: %s", why)
}

// bound holds the run to the limits that hold now, never above its launch's.
func (r *run) bound(ctx context.Context) {
	launch := r.plan.Limits
	now := launch.Min(r.gate.Set().Limits())
	r.gate.Bound(limitOr(now, caps.HostcallsMax))
	r.host.Bound(now)
	if r.shared != nil {
		r.shared.Bound(now)
	}
	r.out.bound(limitOr(now, caps.StdoutMaxBytes))
	r.err.bound(limitOr(now, caps.StderrMaxBytes))
	abi.ClockOf(ctx).Bound(wallTime(now))
	for _, l := range []caps.Limit{caps.CPUFuel, caps.MemoryBytes} {
		if v, _ := now.Get(l); v != limitOr(launch, l) && limitOr(now, l) >= 0 {
			r.warnOnce("limits." + l.String() + " cannot be lowered while the agent runs; an edit holds from the next launch on")
		}
	}
}
