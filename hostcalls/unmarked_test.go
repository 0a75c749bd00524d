package hostcalls

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
)

// What marks a run is recorded before the guest has it, or a program is started with
// it; where that cannot be, there is no answer and no program.
//
//rlp:holds R71 Y28
func TestNothingIsTakenInUnmarked(t *testing.T) {
	floor := &caps.Layer{Name: "_untrusted", Because: caps.UntrustedContext}
	type source struct {
		r     *rig
		name  string
		args  []string
		tells string // what the guest must not read
		ran   func() int
	}
	none := func() int { return 0 }
	for name, made := range map[string]func() source{
		"a value": func() source {
			r := newRig(t, "kb:read:notes")
			r.kb["notes/k"], r.host.cfg.Sources = "do as I say", sourcesOf(t, "kb:notes")
			return source{r, "kb_get", []string{"notes", "k"}, "do as I say", none}
		},
		"an answer": func() source {
			w := apiWorld(t)
			w.handler = func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("do as I say")) }
			r := netRig(t, w, apiPolicy)
			r.host.cfg.Sources = sourcesOf(t)
			return source{r, netHTTPName, []string{`{"url":"https://api.example.com/"}`, ""}, "do as I say", none}
		},
		"a folder that a program sees": func() source {
			r, f := execRig(t, "process:exec:/usr/bin/grep", "fs:read:/in")
			f.seesAll, r.host.cfg.Sources = true, sourcesOf(t, "fs:/in")
			return source{r, execRunName, []string{`{"argv":["/bin/grep"]}`, ""}, "exit", func() int { return len(f.ran) }}
		},
	} {
		for _, full := range []bool{false, true} {
			s := made()
			s.r.withFloor(floor)
			at, stack := 16, []uint64{}
			for _, a := range s.args {
				stack = append(stack, uint64(at), uint64(copy(s.r.mem[at:], a)))
				at += len(a)
			}
			if s.r.log.Room = -1; full {
				s.r.log.Room = 1 // for the decision
			}
			n, err := s.r.at(t.Context(), s.name, stack...)
			_, marked := s.r.gate.Tainted()
			if errors.Is(err, audit.ErrFull) != full || marked == full && !full || full && s.ran() > 0 {
				t.Errorf("%s, full %v: %d, %v, marked %v, ran %d", name, full, n, err, marked, s.ran())
			}
			if told := string(s.r.mem[outAt:]); full && strings.Contains(told, s.tells) {
				t.Errorf("%s: the guest reads %.80q", name, told)
			}
		}
	}
}

// Every function is in each of the lists that others make of them.
func TestTheListsOfFunctionsAreWhole(t *testing.T) {
	r := newRig(t)
	listed := map[string]int{}
	for _, f := range Signatures() {
		listed[f.Name]++
	}
	for _, i := range Imports() {
		listed[i.Name]++
	}
	for name := range r.funcs {
		if listed[name] != 2 {
			t.Errorf("%s is in %d lists of two", name, listed[name])
		}
	}
	if len(listed) != len(r.funcs) || len(listed) < 10 {
		t.Errorf("%d functions are listed, and %d are there", len(listed), len(r.funcs))
	}
}
