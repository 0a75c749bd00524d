package run

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/engine/abi"
)

// Each turn, and each edit between two, is told with its number and logged; an input
// that the guest cannot be given, with the error that it gets.
func TestTurnsAreToldWithTheirNumbers(t *testing.T) {
	k := talkOf(t, "kb:read:notes")
	said := logged(k.run.spec)
	var told []map[string]any
	k.run.spec.Event = func(name string, fields map[string]any) { fields["name"] = name; told = append(told, fields) }
	k.inputs = []error{&hostcalls.Fail{Errno: hostcalls.TooBig}, nil}
	k.look = func() (Look, bool, error) {
		return Look{
			Layers: []*caps.Layer{denying(t, "kb:read:notes")}, Components: []string{"override:a.toml"},
			Notes: []string{"a finding"},
		}, true, nil
	}
	_ = k.next()
	k.look = func() (Look, bool, error) { return Look{}, false, errors.New("it is malformed") }
	must(t, k.next())
	at := func(name string, turn int64) map[string]any {
		for _, fields := range told {
			if fields["name"] == name && fields["turn"] == turn {
				return fields
			}
		}
		t.Errorf("%s of turn %d is not among %v", name, turn, told)
		return nil
	}
	if f := at("config_reloaded", 2); f["generation"] != int64(2) || f["changed"] != true || f["source"] != "turn" {
		t.Errorf("%v", f)
	}
	if f := at("config_reload_rejected", 3); f["reason"] != "it is malformed" || f["generation"] != int64(2) {
		t.Errorf("%v", f)
	}
	if f := at("turn.started", 2); f["error"] != "2big" || f["bytes"] != 5 {
		t.Errorf("%v", f)
	}
	if f := at("turn.started", 3); f["error"] != nil {
		t.Errorf("%v", f)
	}
	if !slices.Contains(k.run.report.Warnings, "a finding") || strings.Count(said.String(), `"turn_start"`) != 2 {
		t.Errorf("warned %q, logged %s", k.run.report.Warnings, said)
	}
	if line := lineOf(t, said, "config_reloaded"); line["generation"] != 2.0 || line["changed"] != true {
		t.Errorf("logged %v", line)
	}
}

// The same mistake is told again when it was mended in between.
func TestAMistakeThatComesBackIsToldAgain(t *testing.T) {
	k := talkOf(t, "kb:read:notes")
	k.inputs = make([]error, 10)
	wrong := func() (Look, bool, error) { return Look{}, false, errors.New("it is malformed") }
	mended := func() (Look, bool, error) { return Look{}, false, nil }
	for i, look := range []func() (Look, bool, error){wrong, wrong, mended, wrong, wrong} {
		k.look = look
		must(t, k.next())
		want := 1
		if i > 2 {
			want = 2
		}
		if n := len(k.run.report.Warnings); n != want {
			t.Errorf("after %d turns it is told %d times: %q", i+1, n, k.run.report.Warnings)
		}
	}
}

// counted is a clock that says whether it goes on while an input is waited for.
type counted struct{ stopped, stops int }

func (c *counted) Stop() func()        { c.stops++; c.stopped++; return func() { c.stopped-- } }
func (*counted) Bound(d time.Duration) {}

// The time in which a person is waited for is not the guest's; that in which a program
// is, is.
func TestOnlyAPersonIsWaitedForOutsideOfTheTime(t *testing.T) {
	for _, program := range []bool{false, true} {
		k := talkOf(t)
		k.run.spec.InputsCount = program
		clock := &counted{}
		k.inputs = []error{nil}
		k.edit = func(int64) {
			if (clock.stopped == 1) == program {
				t.Errorf("by a program %v: the clock is stopped %d times", program, clock.stopped)
			}
		}
		_, err := k.turns.Next(abi.WithClock(t.Context(), clock))
		must(t, err)
		if clock.stopped != 0 || (clock.stops == 1) == program {
			t.Errorf("by a program %v: stopped %d times, and goes on %v", program, clock.stops, clock.stopped == 0)
		}
	}
}

// A run that is ended while it waits begins no turn and applies no edit; the end of
// the input is no reason to warn.
func TestARunThatIsEndedBeginsNoTurn(t *testing.T) {
	for name, ended := range map[string]bool{"control": false, "ended": true} {
		k := talkOf(t, "kb:read:notes")
		ctx, end := context.WithCancel(t.Context())
		defer end()
		k.says(denying(t, "kb:read:notes"))
		k.edit = func(int64) {
			if ended {
				end()
			}
		}
		_, err := k.turns.Next(ctx)
		if errors.Is(err, context.Canceled) != ended || (k.looks == 0) != ended || len(k.run.report.Warnings) > 0 {
			t.Errorf("%s: %v, looked %d times, warned %q", name, err, k.looks, k.run.report.Warnings)
		}
	}
}

// A reload that the operator asks for and that cannot be recorded ends the run.
func TestAReloadOnRequestThatCannotBeRecordedEndsTheRun(t *testing.T) {
	k := talkOf(t, "kb:read:notes")
	k.inputs = []error{ErrReload, nil}
	k.says(denying(t, "kb:read:notes"))
	k.log.Room = 0
	if err := k.next(); err == nil || k.run.turn != 1 || k.run.gate.Err() == nil || len(k.inputs) != 1 {
		t.Errorf("%v, turn %d, %d inputs are left", err, k.run.turn, len(k.inputs))
	}
}

// What an edit leaves of a family's own limits holds for the calls of the next turn,
// and a limit that cannot be lowered says so, down to none.
func TestAnEditBoundsTheFamilies(t *testing.T) {
	k := talkOf(t, "kb:write:notes")
	k.inputs = make([]error, 3)
	k.run.plan.Limits = k.run.plan.Limits.With(caps.KBWriteBytes, 100)
	k.run.host = hostcalls.New(hostcalls.Config{
		Gate: k.run.gate, Limits: k.run.plan.Limits,
		Components: (&touched{}).components(), Now: func() int64 { return 0 },
	})
	funcs, err := k.run.host.Funcs()
	must(t, err)
	put := func() int64 {
		i := slices.IndexFunc(funcs, func(f abi.Func) bool { return f.Name == "kb_put" })
		stack := []uint64{0, 5, 5, 3, 0, 8, 64, 64}
		must(t, funcs[i].Call(t.Context(), append([]byte("noteskey"), make([]byte, 120)...), stack))
		return int64(stack[0])
	}
	if got := put(); got == -int64(hostcalls.Dquot) {
		t.Fatalf("control: %d", got)
	}
	k.says(&caps.Layer{Name: "override:a.toml", Limits: caps.Limits{}.With(caps.KBWriteBytes, 7).With(caps.CPUFuel, 0)})
	must(t, k.next())
	if got := put(); got != -int64(hostcalls.Dquot) {
		t.Errorf("after the edit eight bytes may be stored: %d", got)
	}
	if w := k.run.report.Warnings; len(w) != 1 || !strings.Contains(w[0], "limits.cpu_fuel cannot be lowered") {
		t.Errorf("warned %q", w)
	}
}
