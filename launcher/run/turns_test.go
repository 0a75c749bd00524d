package run

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/record/audit"
)

// A talk is a run between whose turns a test edits what narrows it.
type talk struct {
	*turns
	t      *testing.T
	log    *audit.Memory
	events []string // names, and what was rejected
	// inputs are given in this order; edit is what happens while the guest waits
	// for each.
	inputs []error
	edit   func(turn int64)
	looks  int
	look   func() (Look, bool, error)
}

func talkOf(t *testing.T, grants ...string) *talk {
	t.Helper()
	k := &talk{t: t, log: audit.NewMemory()}
	spec := specOf(t, k.log, grants...)
	spec.Inputs = k
	spec.Look = func() (Look, bool, error) {
		k.looks++
		if k.look == nil {
			return Look{}, false, nil
		}
		return k.look()
	}
	spec.Event = func(name string, fields map[string]any) {
		if why, rejected := fields["reason"]; rejected {
			name += ": " + why.(string)
		}
		k.events = append(k.events, name)
	}
	plan, err := NewPlan(spec.Policy)
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(spec, plan)
	r.journal = k.log
	r.out, r.err = capture{max: DefaultStdioBytes}, capture{max: DefaultStdioBytes}
	if r.gate, err = gate.New(plan.Effective, k.log, gate.Options{
		KeepAllowed: true, KeepDenied: true,
		MaxCalls: -1,
	}); err != nil {
		t.Fatal(err)
	}
	r.values.note = r.gate.Note
	r.host = hostcalls.New(hostcalls.Config{Gate: r.gate, Limits: plan.Limits})
	k.turns = r.turns().(*turns)
	return k
}

// Next is the operator: an input, or what is in its place.
func (k *talk) Next(context.Context) ([]byte, error) {
	if k.edit != nil {
		k.edit(k.run.turn)
	}
	if len(k.inputs) == 0 {
		return nil, io.EOF
	}
	err := k.inputs[0]
	k.inputs = k.inputs[1:]
	return []byte("input"), err
}

func (k *talk) says(layers ...*caps.Layer) {
	k.look = func() (Look, bool, error) {
		return Look{Layers: layers, Components: []string{"override:a.toml"}}, true, nil
	}
}

func (k *talk) next() error {
	_, err := k.turns.Next(k.t.Context())
	return err
}

func denying(t *testing.T, texts ...string) *caps.Layer {
	t.Helper()
	l := &caps.Layer{Name: "override:a.toml"}
	for _, text := range texts {
		l.Deny = append(l.Deny, entryOf(t, text))
	}
	return l
}

// What is edited during a turn waits for its end; what is edited while the guest
// waits for the operator, however often, is applied once, before the next turn.
//
//rlp:holds Y53 Y54 Y57
func TestEditsWaitForTheEndOfTheTurn(t *testing.T) {
	k := talkOf(t, "kb:read:notes", "kb:read:contacts")
	k.inputs = []error{nil, nil}
	k.says(denying(t, "kb:read:notes")) // in the middle of turn 1
	if !k.run.gate.Set().Covers(entryOf(t, "kb:read:notes").Grant) || k.looks != 0 {
		t.Fatal("a turn is not over and its set is another")
	}
	k.edit = func(turn int64) {
		if turn == 1 {
			k.says(denying(t, "kb:read:notes"))
			k.says(denying(t, "kb:read:contacts"))
		}
	}
	if err := k.next(); err != nil {
		t.Fatal(err)
	}
	set := k.run.gate.Set()
	if set.Covers(entryOf(t, "kb:read:contacts").Grant) || !set.Covers(entryOf(t, "kb:read:notes").Grant) || k.looks != 1 {
		t.Errorf("holds %v after %d looks", set.Strings(), k.looks)
	}
	want := []string{"turn.ended", "config_reloaded", "turn.started"}
	if !slices.Equal(k.events, want) {
		t.Errorf("events %v, want %v", k.events, want)
	}
	if swaps := len(k.log.Events); swaps != 1 || k.log.Events[0].Kind != audit.KindCapsSwap ||
		k.log.Events[0].Source != "turn override:a.toml" {
		t.Errorf("%d records: %+v", swaps, k.log.Events)
	}
}

// The operator has files read again while the guest waits, as often as they like:
// what is edited holds at once, and no turn passes.
//
//rlp:holds Y54
func TestTheOperatorAsksForAReload(t *testing.T) {
	k := talkOf(t, "kb:read:notes", "kb:read:contacts")
	k.inputs = []error{ErrReload, ErrReload, nil}
	asked := 0
	k.edit = func(turn int64) {
		if turn != 1 {
			t.Errorf("it is turn %d", turn)
		}
		switch asked++; asked {
		case 1:
			k.says(denying(t, "kb:read:notes"))
		case 2: // the reload that was asked for is done
			if k.run.gate.Set().Covers(entryOf(t, "kb:read:notes").Grant) {
				t.Error("what was edited does not hold before the next turn")
			}
			k.look = func() (Look, bool, error) { return Look{}, false, errors.New("it is malformed") }
		}
	}
	if err := k.next(); err != nil {
		t.Fatal(err)
	}
	want := []string{"turn.ended", "config_reloaded", "config_reload_rejected: it is malformed", "turn.started"}
	if !slices.Equal(k.events, want) || asked != 3 || k.run.turn != 2 {
		t.Errorf("events %v, want %v; asked %d times, turn %d", k.events, want, asked, k.run.turn)
	}
	if k.log.Events[0].Source != "/reload override:a.toml" {
		t.Errorf("recorded %+v", k.log.Events[0])
	}
}

// What is not taken changes nothing, whoever finds out that it cannot be, and is
// told once for as long as it is the same; then the run goes on.
//
//rlp:holds Y55 Y56 Y60
func TestARejectedEditChangesNothing(t *testing.T) {
	k := talkOf(t, "kb:read:notes")
	k.inputs = make([]error, 10)
	k.says(denying(t, "kb:read:notes"))
	step := func() string {
		t.Helper()
		if err := k.next(); err != nil {
			t.Fatal(err)
		}
		return strings.Join(k.run.gate.Set().Strings(), " ")
	}
	if got := step(); got != "" {
		t.Fatalf("control: an edit that is right: %s", got)
	}
	k.events = nil
	malformed := errors.New("override:a.toml:2:1: unknown key")
	k.look = func() (Look, bool, error) { return Look{Layers: nil, Components: []string{"x"}}, true, malformed }
	for range 3 {
		if got := step(); got != "" {
			t.Errorf("a rejected edit gave %s", got)
		}
	}
	k.says(&caps.Layer{Name: "fine"}, denying(t, "fs:read:/a"), &caps.Layer{
		Name: "bad",
		Deny: []caps.Entry{{Grant: caps.Grant{Family: caps.FS, Modes: 1, Scope: "no/path"}}},
	})
	if got := step(); got != "" {
		t.Errorf("half of a set of layers was applied: %s", got)
	}
	k.says() // all is well again, and nothing is taken away
	if got := step(); got != "kb:read:notes" {
		t.Errorf("holds %q", got)
	}
	var told []string
	for _, e := range k.events {
		if !strings.HasPrefix(e, "turn.") {
			told = append(told, e)
		}
	}
	if len(told) != 3 || told[0] != "config_reload_rejected: "+malformed.Error() || !strings.HasPrefix(told[1],
		"config_reload_rejected: ") || told[2] != "config_reloaded" {
		t.Errorf("events %q", told)
	}
	if notices := k.run.report.Notices; len(notices) != 2 || !strings.HasSuffix(notices[0], malformed.Error()) {
		t.Errorf("the operator is told %q", notices)
	}
	if len(k.run.report.Warnings) != 2 || k.run.gate.Generation() != 3 {
		t.Errorf("generation %d, warnings %q", k.run.gate.Generation(), k.run.report.Warnings)
	}
}

// The end of the input is the last place where an edit is applied: no turn
// begins, and an agent that asks again and again has nothing read.
func TestTheEndOfTheInputIsABoundary(t *testing.T) {
	k := talkOf(t, "kb:read:notes")
	k.says(denying(t, "kb:read:notes"))
	for range 3 {
		if err := k.next(); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	if !k.run.gate.Set().IsEmpty() || k.looks != 1 || k.run.turn != 1 {
		t.Errorf("holds %v after %d looks, turn %d", k.run.gate.Set().Strings(), k.looks, k.run.turn)
	}
	if !slices.Equal(k.events, []string{"turn.ended", "config_reloaded"}) {
		t.Errorf("events %v", k.events)
	}
}

// An input that the guest cannot be given is a turn of its own; one that cannot
// be read is the last.
func TestInputsThatGoWrong(t *testing.T) {
	k := talkOf(t)
	k.inputs = []error{&hostcalls.Fail{Errno: hostcalls.TooBig}, nil, errors.New("disk on fire"), nil}
	var f *hostcalls.Fail
	if err := k.next(); !errors.As(err, &f) {
		t.Errorf("too big: %v", err)
	}
	if err := k.next(); err != nil || k.run.turn != 3 {
		t.Errorf("after it: %v, turn %d", err, k.run.turn)
	}
	if err := k.next(); err == nil || errors.Is(err, io.EOF) || len(k.run.report.Warnings) != 1 {
		t.Errorf("unreadable: %v, warnings %q", err, k.run.report.Warnings)
	}
	if err := k.next(); !errors.Is(err, io.EOF) {
		t.Errorf("after that: %v", err)
	}
}

// A swap that cannot be recorded ends the run with what it held.
func TestAReloadThatCannotBeRecordedEndsTheRun(t *testing.T) {
	k := talkOf(t, "kb:read:notes")
	k.inputs = []error{nil}
	k.says(denying(t, "kb:read:notes"))
	k.log.Room = 0
	if err := k.next(); err == nil || k.run.gate.Err() == nil {
		t.Errorf("%v, %v", err, k.run.gate.Err())
	}
}

// Limits are lowered by an edit, given back by the next, and never raised above
// those of the launch; what cannot be lowered in a run waits and says so.
func TestLimitsAreLoweredBetweenTurns(t *testing.T) {
	k := talkOf(t)
	k.inputs = make([]error, 4)
	k.run.plan.Limits = k.run.plan.Limits.With(caps.HostcallsMax, 100).With(caps.StdoutMaxBytes, 50)
	bounded := func(l caps.Limits) {
		t.Helper()
		k.says(&caps.Layer{Name: "override:a.toml", Limits: l})
		if err := k.next(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ to, calls, out int64 }{{7, 7, 7}, {1000, 100, 50}, {0, 0, 0}} {
		bounded(caps.Limits{}.With(caps.HostcallsMax, c.to).With(caps.StdoutMaxBytes, c.to))
		left := int64(0)
		for ; left < 200 && k.run.gate.Calls() < c.calls && k.run.gate.Spend(); left++ {
		}
		if k.run.gate.Calls() < c.calls || k.run.gate.Spend() && c.to < 1000 || k.run.out.max != c.out {
			t.Errorf("hostcalls_max = stdout_max_bytes = %d: %d calls were made, %d bytes are kept", c.to, k.run.gate.Calls(),
				k.run.out.max)
		}
	}
	bounded(caps.Limits{}.With(caps.CPUFuel, 5).With(caps.MemoryBytes, 5))
	if w := k.run.report.Warnings; len(w) != 2 || !strings.Contains(w[0], "cpu_fuel") ||
		!strings.Contains(w[1], "memory_bytes") {
		t.Errorf("warnings %q", w)
	}
}
