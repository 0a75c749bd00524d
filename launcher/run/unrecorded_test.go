package run

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/audit"
)

// losing is a journal that cannot keep the records that a test names.
type losing struct {
	*audit.Memory
	loses  func(kind, target string) bool
	closed int
}

var errLost = errors.New("bad sector")

func (l *losing) Event(e *audit.Event) error {
	if l.loses(e.Kind, "") {
		return errLost
	}
	return l.Memory.Event(e)
}

func (l *losing) Decide(d *audit.Decision) (audit.Mark, error) {
	if l.loses("", d.Target) {
		return 0, errLost
	}
	return l.Memory.Decide(d)
}

func (l *losing) Close() error { l.closed++; return l.Memory.Close() }

// A run of which one record could not be kept has ended with that, whatever was kept
// before and after it; with secrets, whose values are taken out of records, as without.
//
//rlp:holds R71
func TestOneLostRecordEndsTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		loses func(kind, target string) bool
		lost  bool
		ran   bool
	}{
		"control":                    {func(string, string) bool { return false }, false, true},
		"the beginning":              {func(kind, _ string) bool { return kind == audit.KindRunStart }, true, false},
		"a decision":                 {func(_, target string) bool { return target == "notes/key" }, true, false},
		"one with a value taken out": {func(_, target string) bool { return target == "notes/[gone]" }, true, false},
		"that it was taken out":      {func(_, target string) bool { return target == "runloop/a/b" }, true, false},
		"the end":                    {func(kind, _ string) bool { return audit.Ends(kind) }, true, true},
	} {
		for _, secrets := range []bool{false, true} {
			if !secrets && (strings.Contains(name, "value") || strings.Contains(name, "taken")) {
				continue
			}
			log := &losing{Memory: audit.NewMemory(), loses: c.loses}
			s := specOf(t, nil, "kb:read:notes")
			s.OpenJournal = func(audit.Head) (Journal, error) { return log, nil }
			s.Components.KB, s.Components.Masks = &faultyKB{get: func() {}}, spyMasks{}
			if secrets {
				s.Components.Secrets = &marked{known: true}
			}
			s.Module = stepping(t, "noteskeythe-value", slices.Concat([]step{
				do("kb_get", 0, 5, 5, 3, 512, 64),
				do("kb_get", 0, 5, 8, 9, 512, 64),
			}, say(0, 8))...)
			r := Launch(t.Context(), s)
			if (r.Outcome == AuditFailed) != c.lost || (r.ExitCode == StatusAudit) != c.lost || strings.Contains(r.Message,
				"bad sector") != c.lost || strings.Contains(r.Message, "\n") {
				t.Errorf("%s, secrets %v: %s %d %q", name, secrets, r.Outcome, r.ExitCode, r.Message)
			}
			if (r.Stdout != "") != c.ran || (r.GuestExit != nil) != c.ran || log.closed != 1 {
				t.Errorf("%s, secrets %v: printed %q, closed %d times", name, secrets, r.Stdout, log.closed)
			}
		}
	}
}

// A value that is found in the last message, when the gate is closed, is recorded as
// well, or the run has ended with that.
//
//rlp:holds A51
func TestWhatIsTakenOutOfTheLastMessageIsRecorded(t *testing.T) {
	for _, lost := range []bool{false, true} {
		log := &losing{Memory: audit.NewMemory(), loses: func(_, target string) bool {
			return lost && target == "runloop/a/b"
		}}
		s := specOf(t, nil, "kb:read:notes")
		s.OpenJournal = func(audit.Head) (Journal, error) { return log, nil }
		s.Components.Secrets = &marked{known: true}
		s.Module = []byte("no module")
		s.Agent = "the-value" // messages about the module name the agent
		r := Launch(t.Context(), s)
		if (r.Outcome == AuditFailed) != lost || !lost && (r.Outcome != Refused || !strings.Contains(r.Message, "[gone]")) {
			t.Errorf("lost %v: %s %d %q", lost, r.Outcome, r.ExitCode, r.Message)
		}
		if n := len(log.Decisions); n > 0 == lost {
			t.Errorf("lost %v: recorded %+v", lost, log.Decisions)
		}
	}
}

// Each text of a record that a guest can steer is without values.
//
//rlp:holds K11
func TestEveryTextOfAnEventIsLookedThrough(t *testing.T) {
	k := talkOf(t)
	k.run.values.secrets = &marked{known: true}
	j := &discreetJournal{k.run.journal, &k.run.values}
	must(t, j.Event(&audit.Event{Kind: "x", Message: "m the-value", ErrorSummary: "s the-value", Label: "l the-value"}))
	if e := k.log.Events[0]; e.Message != "m [gone]" || e.ErrorSummary != "s [gone]" || e.Label != "l [gone]" ||
		e.Kind != "x" {
		t.Errorf("%+v", e)
	}
	_, err := j.Decide(&audit.Decision{Target: "d the-value"})
	must(t, err)
	if d := k.log.Decisions[len(k.log.Decisions)-1]; d.Target != "d [gone]" {
		t.Errorf("%+v", d)
	}
	k.log.Room = 0
	for _, target := range []string{"d the-value", "d"} {
		if _, err := j.Decide(&audit.Decision{Target: target}); !errors.Is(err, audit.ErrFull) {
			t.Errorf("%s: full: %v", target, err)
		}
	}
}

// A journal that has no word for what a gate says is closed again, and nothing runs.
func TestAGateThatCannotBeMadeRunsNothing(t *testing.T) {
	log := &wordless{unnamed: &unnamed{audit.NewMemory(), "granted"}}
	s := specOf(t, nil)
	s.OpenJournal = func(audit.Head) (Journal, error) { return log, nil }
	s.Module = stepping(t, "x", say(0, 1)...)
	if r := Launch(t.Context(), s); r.Outcome != AuditFailed || r.ExitCode != StatusAudit || r.Stdout != "" ||
		log.closed != 1 {
		t.Errorf("%s %d %q, printed %q, closed %d times", r.Outcome, r.ExitCode, r.Message, r.Stdout, log.closed)
	}
}

type wordless struct {
	*unnamed
	closed int
}

func (w *wordless) Close() error { w.closed++; return nil }

// An input that marks the run is taken in before the guest runs, or it does not; one
// that is taken in takes none of its calls away.
func TestAnInputIsRecordedBeforeTheGuestRuns(t *testing.T) {
	for _, room := range []int{-1, 1} {
		log := audit.NewMemory()
		log.Room = room
		s := specOf(t, log, "kb:read:notes")
		s.Input, s.Taint.Untrusted, s.Taint.Floor = []byte("1"), []caps.Source{{Word: caps.SourceInput}},
			&caps.Layer{Name: "_untrusted"}
		s.Module = stepping(t, "[1]", append(say(0, 1), do("result", 0, 3, 64, 64))...)
		r := Launch(t.Context(), s)
		if full := room > 0; (r.Stdout == "") != full || (string(r.Result) == "[1]") == full ||
			(r.Outcome == AuditFailed) != full || (r.Outcome == OK) == full {
			t.Errorf("room for %d: %s %q, printed %q, result %q", room, r.Outcome, r.Message, r.Stdout, r.Result)
		}
	}
}

// What lies in an untrusted folder is not handed out when the mark that it leaves
// cannot be recorded: neither one path nor a whole tree.
func TestAnUntrustedFileIsNotHandedOutUnmarked(t *testing.T) {
	for _, room := range []int{-1, 1} {
		for _, tree := range []bool{false, true} {
			set, err := caps.Base([]caps.Entry{entryOf(t, "fs:read:/in")}, caps.Limits{})
			must(t, err)
			log := audit.NewMemory()
			g, err := gate.New(set, log, gate.Options{
				KeepAllowed: true, KeepDenied: true, MaxCalls: -1,
				Floor: &caps.Layer{Name: "_untrusted"},
			})
			must(t, err)
			p, err := newPathGate(g, []string{"/in/deep"})
			must(t, err)
			log.Room = room // for the decision, and not for the mark
			admit := func() gate.Permit { return p.Admit(jail.PathOpen, caps.Read, "/in/deep/a") }
			if tree {
				admit = func() gate.Permit { return p.AdmitTree(jail.PathRename, caps.Read, "/in") }
			}
			if permit := admit(); permit.OK() != (room < 0) {
				t.Errorf("room for %d, tree %v: %+v", room, tree, permit)
			}
		}
	}
}

// A folder is not moved away with an untrusted one in it, and what is refused says why,
// though the floor takes nothing away.
func TestAFolderAroundAnUntrustedOneStays(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.MkdirAll(dir+"/tree/in", 0o700))
	must(t, os.MkdirAll(dir+"/other/in", 0o700))
	set, err := caps.Base([]caps.Entry{{Grant: caps.Grant{Family: caps.FS, Modes: caps.AllModes(caps.FS), Scope: dir}}},
		caps.Limits{})
	must(t, err)
	g := recordedGate{log: audit.NewMemory()}
	g.Gate, err = gate.New(set, g.log, gate.Options{MaxCalls: -1, Floor: &caps.Layer{Name: "_untrusted"}})
	must(t, err)
	p, err := newPathGate(g.Gate, []string{dir + "/tree/in"})
	must(t, err)
	fs, err := jail.Open(jail.Config{Gate: p, Roots: []string{dir}})
	must(t, err)
	t.Cleanup(func() { _ = fs.Close() })
	if e := fs.Rename(dir+"/tree", dir+"/moved", false); e != wasi.EACCES || g.reason() != "untrusted_context" {
		t.Errorf("errno %d, %s", e, g.reason())
	}
	if e := fs.Rename(dir+"/other", dir+"/moved", false); e != wasi.Success {
		t.Errorf("control: errno %d", e)
	}
}

// A marked run that ends itself ends with its own code.
func TestAMarkedRunEndsWithItsOwnCode(t *testing.T) {
	s := marking(t, true, caps.Limits{}.With(caps.StdoutMaxBytes, 100), do("proc_exit", 3), say(0, 8)[2])
	if r := Launch(t.Context(), s); r.Outcome != Exit || r.ExitCode != 3 || r.Untrusted == nil || len(r.Stdout) != 8 {
		t.Errorf("%s %d %s, printed %q", r.Outcome, r.ExitCode, r.Message, r.Stdout)
	}
}

// Of a run that was left behind no result is told: it may be about to change.
func TestNoResultIsToldOfWhatWasLeftBehind(t *testing.T) {
	for _, abandoned := range []bool{false, true} {
		k := talkOf(t)
		k.run.host = hostcalls.New(hostcalls.Config{Gate: k.run.gate, Limits: k.run.plan.Limits})
		funcs, err := k.run.host.Funcs()
		must(t, err)
		for _, f := range funcs {
			if f.Name == "result" {
				must(t, f.Call(t.Context(), []byte("[1]"), []uint64{0, 3, 0, 0}))
			}
		}
		k.run.ended(guest.End{Kind: guest.OK, Abandoned: abandoned})
		if got := string(k.run.report.Result); (got == "[1]") == abandoned {
			t.Errorf("left behind %v: result %q", abandoned, got)
		}
	}
}

// Output that there is no memory for is not kept.
func TestOutputWithoutMemoryIsNotKept(t *testing.T) {
	const mib = 1 << 20
	s := specOf(t, audit.NewMemory())
	s.Module = repeats("wasi_snapshot_preview1", "fd_write", 0x7f, "\x10\x00\x00\x00\x00\x00\x01\x00", 1, 0, 1, 8)
	s.Policy.Layers = []*caps.Layer{{Name: "operator", Limits: caps.Limits{}.With(caps.MemoryBytes,
		2*mib).With(caps.StdoutMaxBytes, 1<<40)}}
	r := Launch(t.Context(), s)
	if piece := int64(64 << 10); r.Outcome != Memory || int64(len(r.Stdout)) != r.Usage.StdoutBytes-piece {
		t.Errorf("%s: %d bytes are kept of %d", r.Outcome, len(r.Stdout), r.Usage.StdoutBytes)
	}
}
