package run

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
)

// large is a module that is not compiled in this process: the empty one, and a
// custom section of 2,048 bytes.
func large() []byte {
	return []byte(empty + "\x00\x80\x10\x03pad" + strings.Repeat("\x00", 2048-4))
}

// No process is started to compile what is refused, and where none can be
// started nothing runs: the component is not there, which the report says.
//
//rlp:holds K33 K72
func TestTheCompilerIsStartedForWhatMayRun(t *testing.T) {
	for name, c := range map[string]struct {
		deny   bool
		status int
		asked  int
	}{
		"refused": {true, StatusPolicy, 0},
		"allowed": {false, StatusUnavailable, 1},
	} {
		log := audit.NewMemory()
		s := specOf(t, log)
		if !c.deny {
			s = specOf(t, log, "kb:read:notes")
		}
		s.FailOnEmpty, s.Module = true, large()
		asked := 0
		s.Compiler = func() (string, error) {
			asked++
			return "", errors.New("rlp's own file is gone; install it again")
		}
		r := Launch(t.Context(), s)
		if r.ExitCode != c.status || r.Outcome != Refused || asked != c.asked {
			t.Errorf("%s: %d %s, asked %d times: %s", name, r.ExitCode, r.Outcome, asked, r.Message)
		}
		if !c.deny && !strings.Contains(r.Message, "install it again") {
			t.Errorf("%s: %s", name, r.Message)
		}
	}
}

// A module at which this program breaks ends its own launch, recorded; the control
// is one that compiles.
func TestABrokenCompilationEndsItsLaunch(t *testing.T) {
	for _, breaks := range []bool{false, true} {
		log, said := audit.NewMemory(), &bytes.Buffer{}
		s := specOf(t, log)
		s.Log = slog.New(slog.NewTextHandler(said, nil))
		s.Slow = func() func() {
			if breaks {
				panic("what a module holds")
			}
			return func() {}
		}
		r := Launch(t.Context(), s)
		if !breaks {
			if r.Outcome != OK {
				t.Fatalf("control: %+v", r)
			}
			continue
		}
		last := log.Events[len(log.Events)-1]
		if r.Outcome != Refused || r.ExitCode != StatusUnavailable || last.Kind != audit.KindRunFailed ||
			last.Message != r.Message {
			t.Errorf("%s, %d, %q; recorded %s", r.Outcome, r.ExitCode, r.Message, last.Kind)
		}
		if text := said.String() + r.Message; strings.Contains(text, "what a module holds") ||
			!strings.Contains(text, "compiling broke") {
			t.Errorf("told: %s", text)
		}
	}
}
