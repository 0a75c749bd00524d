package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/audit"
)

// traps is a module whose _start is unreachable.
const traps = "\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x07\x0a\x01\x06_start\x00\x00\x0a\x05\x01\x03\x00\x00\x0b"

// A faultyKB does instead of answering what it is told to.
type faultyKB struct {
	hostcalls.KB
	get func()
}

func (f *faultyKB) Get(context.Context, string, string) (hostcalls.KBValue, error) {
	f.get()
	return hostcalls.KBValue{}, errors.New("bad block")
}

// A host function that breaks is no trap of the agent's, and where it broke is for
// the log alone. The controls are a store that says that it failed, which is an
// answer, and an agent that traps.
func TestAFaultOfTheHostIsNotToldAsTheAgents(t *testing.T) {
	const itself = "rlp itself failed in kb_get, not the agent: "
	var nothing *faultyKB
	for name, c := range map[string]struct {
		module  string
		get     func()
		outcome Outcome
		status  int
		message string
		logged  string
	}{
		"control: answers": {gets, func() {}, OK, StatusOK, "", ""},
		"control: traps":   {traps, nil, Trap, StatusFinding, "unreachable", ""},
		"nil": {gets, func() { nothing.get() }, Fault, StatusUnavailable, itself +
			"invalid memory address or nil pointer dereference", "faultyKB"},
		"error": {
			gets, func() { panic(errors.New("opening /home/op/store: too many files")) }, Fault, StatusUnavailable,
			itself + "its log says why", "too many files",
		},
		"text": {gets, func() { panic("/home/op/store at 0xc000123456\nsecond line") }, Fault, StatusUnavailable, itself +
			"its log says why", "/home/op/store"},
		"ended": {
			gets, runtime.Goexit, Fault, StatusUnavailable, "rlp itself failed, not the agent: its log says why",
			"rlp failed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			log, said := audit.NewMemory(), &bytes.Buffer{}
			s := specOf(t, log, "kb:read:notes")
			s.Module, s.Components.KB, s.Components.Masks = []byte(c.module), &faultyKB{get: c.get}, spyMasks{}
			s.Log = slog.New(slog.NewJSONHandler(said, nil))
			r := Launch(t.Context(), s)
			if r.Outcome != c.outcome || r.ExitCode != c.status || r.Message != c.message {
				t.Errorf("%s, %d, %q", r.Outcome, r.ExitCode, r.Message)
			}
			last := log.Events[len(log.Events)-1]
			if last.Outcome != string(c.outcome) || last.ExitCode != c.status || last.Message != c.message {
				t.Errorf("recorded: %+v", last)
			}
			if !strings.Contains(said.String(), c.logged) || (c.outcome == Fault) != strings.Contains(said.String(),
				"rlp failed") {
				t.Errorf("logged: %s", said)
			}
			report, err := json.Marshal(r)
			records, err2 := json.Marshal(log.Events)
			if err = errors.Join(err, err2); err != nil {
				t.Fatal(err)
			}
			for _, told := range []string{string(report), string(records), r.Marker()} {
				for _, never := range []string{"goroutine", ".go:", "0xc0", "/home/op", "stack trace"} {
					if strings.Contains(told, never) {
						t.Errorf("%q is in %s", never, told)
					}
				}
			}
		})
	}
}

// What the host cannot do is told in its own words, and an error that nobody wrote
// for readers is not.
func TestFaultsAreToldWithoutTheirCauses(t *testing.T) {
	for want, end := range map[string]guest.End{
		"rlp itself failed, not the agent: no memory":                    {Err: guest.Unable("no memory")},
		"rlp itself failed in fd_write, not the agent: its log says why": {In: "fd_write", Err: errors.New("write /x: full")},
	} {
		if got := faultMessage(end); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
