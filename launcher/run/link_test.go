package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/record/audit"
)

// A guest is given the names that are set and granted and the values of its
// placeholders, in order, and nobody is asked about anything else.
func TestTheEnvironmentIsWhatIsGranted(t *testing.T) {
	log := audit.NewMemory()
	s := specOf(t, log, "env:read:FOO", "env:read:EMPTY", "env:read:UNSET", "env:read:SHUT", "env:read:RLP_PARAM_CITY",
		"kb:read:notes")
	s.Policy.Layers = []*caps.Layer{{Name: "l", Leases: []caps.Lease{{
		Entry:   entryOf(t, "env:read:SHUT"),
		Expires: caps.Forever,
	}}}}
	s.Params = map[string]string{"zone": "utc", "city": "Bern"}
	s.Env = func(name string) (string, bool) {
		return map[string]string{"FOO": "foo", "notes": "n", "SHUT": "x", "OTHER": "o", "RLP_PARAM_CITY": "forged"}[name],
			name != "UNSET"
	}
	s.Module = stepping(t, "", slices.Concat([]step{do("environ_sizes_get", 0, 4), do("environ_get", 16, 1024)}, say(0, 8),
		say(1024, 256))...)
	r := Launch(t.Context(), s)
	if r.Outcome != OK {
		t.Fatalf("%s: %s", r.Outcome, r.Message)
	}
	const want = "EMPTY=\x00FOO=foo\x00RLP_PARAM_CITY=Bern\x00RLP_PARAM_ZONE=utc\x00"
	if got := strings.TrimRight(r.Stdout[8:], "\x00") + "\x00"; got != want || r.Stdout[0] != 4 ||
		int(r.Stdout[4]) != len(want) {
		t.Errorf("%q, want %q", r.Stdout, want)
	}
	allowed, denied := given(log)
	if !slices.Equal(allowed, []string{"EMPTY", "FOO"}) || !slices.Equal(denied, []string{"SHUT lease_expired"}) {
		t.Errorf("asked about %v, and %v", allowed, denied)
	}
}

// A guest reads its own name, its arguments and its input, and ends as it says.
func TestAGuestHasItsArgumentsAndItsInput(t *testing.T) {
	s := specOf(t, audit.NewMemory())
	s.Args, s.Input = []string{"--fast", "x"}, []byte(`{"a":1}`)
	s.Module = stepping(t, "\x00\x01\x00\x00\x80\x00\x00\x00", slices.Concat(
		[]step{do("args_get", 512, 1024), do("fd_read", 0, 0, 1, 64)}, say(1024, 15), say(256, 7), []step{do("proc_exit", 3)},
		say(1024, 15))...)
	r := Launch(t.Context(), s)
	if want := "agent\x00--fast\x00x\x00" + `{"a":1}`; r.Stdout != want || r.Outcome != Exit || r.ExitCode != 3 ||
		r.GuestExit == nil || *r.GuestExit != 3 {
		t.Errorf("%s %d, %q", r.Outcome, r.ExitCode, r.Stdout)
	}
}

// A seed makes random numbers repeatable, another seed makes others, and none makes
// none alike.
func TestRandomNumbersAreSeeded(t *testing.T) {
	draw := func(seed *uint64) string {
		s := specOf(t, audit.NewMemory())
		s.Seed, s.Module = seed, stepping(t, "", append([]step{do("random_get", 0, 32)}, say(0, 32)...)...)
		return Launch(t.Context(), s).Stdout
	}
	one, again, other := draw(new(uint64(1))), draw(new(uint64(1))), draw(new(uint64(2)))
	some, more := draw(nil), draw(nil)
	if len(one) != 32 || one != again || one == other || some == more || one == strings.Repeat("\x00", 32) {
		t.Errorf("%x, %x and %x", one, again, other)
	}
}

// A run ends at the first call whose decision cannot be recorded: what comes after
// it is not done.
//
//rlp:holds R71
func TestARunEndsWhereItCannotBeRecorded(t *testing.T) {
	dir := t.TempDir()
	for _, full := range []bool{false, true} {
		log := audit.NewMemory()
		s := specOf(t, log, "fs:read:"+dir)
		s.Module = stepping(t, strings.TrimPrefix(dir, "/"),
			append([]step{do("path_filestat_get", 3, 0, 0, int64(len(dir)-1), 1024)}, say(0, 1)...)...)
		if full {
			log.Room = 1 // for the beginning of the run
		}
		r := Launch(t.Context(), s)
		if (r.Outcome == AuditFailed) != full || (r.Stdout == "") != full || (r.GuestExit == nil) != full || full &&
			(r.ExitCode != StatusAudit || strings.Contains(r.Message, "\n")) {
			t.Errorf("full %v: %s %d, printed %q", full, r.Outcome, r.ExitCode, r.Stdout)
		}
	}
}

// unnamed is a journal that has no name for one word.
type unnamed struct {
	*audit.Memory
	word string
}

func (u *unnamed) Intern(s string) (audit.Name, error) {
	if s == u.word {
		return 0, errors.New("no room for " + s)
	}
	return u.Memory.Intern(s)
}

// What cannot be made ready refuses the launch before the guest's first
// instruction, and says what it was.
func TestNothingRunsHalfLinked(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/f", nil, 0o600))
	for name, c := range map[string]struct {
		change  func(*Spec)
		outcome Outcome
		why     string
	}{
		"control":       {func(*Spec) {}, OK, ""},
		"an operation":  {naming("path_open"), Refused, "no room for path_open"},
		"one opened":    {naming("fd_read"), Refused, "no room for fd_read"},
		"a host call":   {naming("kb_get"), Refused, "no room for kb_get"},
		"the variables": {naming("environ_get"), Refused, "naming environ_get: no room for environ_get"},
		"an argument":   {func(s *Spec) { s.Args = []string{"a\x00b"} }, Refused, "argument"},
		"a variable":    {func(s *Spec) { s.Params = map[string]string{"a": "a\x00b"} }, Refused, "environment"},
		"a source": {
			func(s *Spec) { s.Taint.Trusted = []caps.Grant{{Family: caps.FS, Scope: "no path"}} }, Refused,
			"untrusted",
		},
		"a grant": {
			func(s *Spec) { s.Policy.Base = append(s.Policy.Base, entryOf(t, "fs:read:"+dir+"/f/g")) }, Refused,
			"pinning the fs grants",
		},
		"a variable's record": {func(s *Spec) {
			log := audit.NewMemory()
			log.Room, s.OpenJournal = 1, func(audit.Head) (Journal, error) { return log, nil }
		}, AuditFailed, "takes no more"},
		"the input's mark": {func(s *Spec) {
			s.Input, s.Taint.Untrusted, s.Taint.Floor = []byte("1"), []caps.Source{{Word: caps.SourceInput}},
				&caps.Layer{Name: "_untrusted"}
			log := audit.NewMemory()
			log.Room, s.OpenJournal = 1, func(audit.Head) (Journal, error) { return log, nil }
		}, AuditFailed, "takes no more"},
	} {
		s := specOf(t, audit.NewMemory(), "env:read:FOO")
		s.Env = func(string) (string, bool) { return "foo", true }
		s.Module = stepping(t, "x", say(0, 1)...)
		c.change(s)
		r := Launch(t.Context(), s)
		if r.Outcome != c.outcome || !strings.Contains(r.Message, c.why) || strings.Contains(r.Message, "\n") ||
			(r.GuestExit == nil) != (c.outcome != OK) || (r.Stdout == "") != (c.outcome != OK) {
			t.Errorf("%s: %s %q, printed %q", name, r.Outcome, r.Message, r.Stdout)
		}
	}
}

func naming(word string) func(*Spec) {
	return func(s *Spec) {
		s.OpenJournal = func(audit.Head) (Journal, error) { return &unnamed{audit.NewMemory(), word}, nil }
	}
}

// marking is a run that prints eight bytes, reads what may mark it and prints eight
// more.
func marking(t *testing.T, untrusted bool, floor caps.Limits, then ...step) *Spec {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	s := specOf(t, audit.NewMemory(), "fs:read:"+dir)
	s.Taint.Floor = &caps.Layer{Name: "_untrusted", Because: caps.UntrustedContext, Limits: floor}
	if untrusted {
		s.Taint.Untrusted = []caps.Source{{Word: "fs", Grant: caps.Grant{Family: caps.FS, Modes: 1, Scope: dir}}}
	}
	all := slices.Concat(say(0, 8), []step{do("path_open", 3, 0, 1, int64(len(dir)-1), 2, 2, 0, 0, 4096)}, then)
	s.Module = stepping(t, dir, all...)
	return s
}

// The limits of the floor hold from the call on that marks the run: what was
// printed before stays, and what comes then is cut.
//
//rlp:holds Y30
func TestAFloorsLimitsHoldFromTheMarkOn(t *testing.T) {
	four := caps.Limits{}.With(caps.StdoutMaxBytes, 4).With(caps.StderrMaxBytes, 2)
	later := slices.Concat(say(0, 8), write(2, 0, 8))
	for name, c := range map[string]struct {
		untrusted, input bool
		floor            caps.Limits
		out, err         int
	}{
		"control: not marked":    {false, false, four, 16, 8},
		"control: no limits":     {true, false, caps.Limits{}, 16, 8},
		"marked by a folder":     {true, false, four, 8, 2},
		"marked before it began": {true, true, four, 4, 2},
	} {
		s := marking(t, c.untrusted, c.floor, later...)
		if c.input {
			s.Input, s.Taint.Untrusted = []byte("1"), append(s.Taint.Untrusted, caps.Source{Word: caps.SourceInput})
		}
		r := Launch(t.Context(), s)
		if r.Outcome != OK || len(r.Stdout) != c.out || len(r.Stderr) != c.err || (r.Untrusted != nil) != c.untrusted {
			t.Errorf("%s: %s %s, printed %d and %d, marked by %v", name, r.Outcome, r.Message, len(r.Stdout), len(r.Stderr),
				r.Untrusted)
		}
	}
}

// A marked run that only computes is bound by the time that the floor leaves.
//
//rlp:holds Y30
func TestAFloorsTimeHoldsWithoutAnotherCall(t *testing.T) {
	r := Launch(t.Context(), marking(t, true, caps.Limits{}.With(caps.WallTimeMS, 1), forever))
	if r.Outcome != Timeout || !strings.Contains(r.Message, "wall_time_ms = 1") {
		t.Errorf("%s: %s", r.Outcome, r.Message)
	}
	s := marking(t, false, caps.Limits{}.With(caps.WallTimeMS, 1), forever)
	s.Policy.BaseLimits = caps.Limits{}.With(caps.CPUFuel, 1000)
	if r := Launch(t.Context(), s); r.Outcome == Timeout && strings.Contains(r.Message, "= 1 ") {
		t.Errorf("control: %s: %s", r.Outcome, r.Message)
	}
}

// A floor that gets limits between turns binds the run that is marked after that.
//
//rlp:holds Y30
func TestAFloorThatGetsLimitsLaterBinds(t *testing.T) {
	for _, edited := range []bool{false, true} {
		s := marking(t, true, caps.Limits{}, say(0, 8)...)
		dir := s.Policy.Base[0].Grant.Scope
		s.Module = stepping(t, dir, slices.Concat([]step{do("turn_next", 4096, 64)}, say(0, 8),
			[]step{do("path_open", 3, 0, 1, int64(len(dir)-1), 2, 2, 0, 0, 4096)}, say(0, 8))...)
		s.Inputs = inputs{}
		s.Look = func() (Look, bool, error) {
			floor := &caps.Layer{
				Name: "_untrusted", Because: caps.UntrustedContext,
				Limits: caps.Limits{}.With(caps.StdoutMaxBytes, 4),
			}
			return Look{Floor: []*caps.Layer{floor}, Components: []string{"floor"}}, edited, nil
		}
		r := Launch(t.Context(), s)
		if want := map[bool]int{false: 16, true: 8}[edited]; r.Outcome != OK || len(r.Stdout) != want || r.Untrusted == nil {
			t.Errorf("edited %v: %s %s, printed %d, marked by %v", edited, r.Outcome, r.Message, len(r.Stdout), r.Untrusted)
		}
	}
}

// inputs are one input, over and over.
type inputs struct{}

func (inputs) Next(context.Context) ([]byte, error) { return []byte("{}"), nil }

// What is pinned is each file of the base once, whatever else it grants.
func TestRootsAreTheFilesOfTheBase(t *testing.T) {
	base := []caps.Entry{
		entryOf(t, "fs:read:/b"), entryOf(t, "kb:read:notes"), entryOf(t, "fs:read:/a"),
		entryOf(t, "fs:write:/b"), entryOf(t, "process:exec:/bin/x"),
	}
	if got := roots(base); !slices.Equal(got, []string{"/a", "/b"}) {
		t.Errorf("%q", got)
	}
}

// Each operation on files is judged by its own name: who hides one leaves the
// others, what is moved as a whole is judged as a whole, and what a lease bounds is
// not moved away from it.
//
//rlp:holds Y13
func TestOperationsOnFilesAreJudgedByTheirNames(t *testing.T) {
	rename := func(dir, from string, fs *jail.Jail) wasi.Errno {
		return fs.Rename(dir+"/"+from, dir+"/own/new", false)
	}
	for name, c := range map[string]struct {
		layer func(dir string) *caps.Layer
		from  string
		want  wasi.Errno
	}{
		"control":         {func(string) *caps.Layer { return nil }, "own/c.txt", wasi.Success},
		"another one":     {func(string) *caps.Layer { return hiding("file:path_open") }, "own/c.txt", wasi.Success},
		"hidden":          {func(string) *caps.Layer { return hiding("file:path_rename") }, "own/c.txt", wasi.EACCES},
		"control: a tree": {func(string) *caps.Layer { return nil }, "own", wasi.EINVAL}, // into itself
		"leased": {func(dir string) *caps.Layer {
			return &caps.Layer{Name: "l", Leases: []caps.Lease{{
				Entry:   entryOf(t, "fs:read:"+dir+"/own/c.txt"),
				Expires: caps.Forever, MaxUses: 5,
			}}}
		}, "own/c.txt", wasi.EACCES},
		"something denied in it": {func(dir string) *caps.Layer {
			return &caps.Layer{Name: "l", Deny: []caps.Entry{entryOf(t, "fs:read:"+dir+"/inner/shut")}}
		}, "inner", wasi.EACCES},
		"control: nothing denied in it": {func(string) *caps.Layer { return nil }, "inner", wasi.Success},
	} {
		dir, fs, g := files(t)
		must(t, os.MkdirAll(dir+"/inner/shut", 0o700))
		if l := c.layer(dir); l != nil {
			must(t, g.Hold(l))
		}
		if e := rename(dir, c.from, fs); e != c.want {
			t.Errorf("%s: errno %d, want %d", name, e, c.want)
		}
	}
}

// A call that names no path is recorded with what it said, as far as that is to be
// read.
func TestRejectedPathsAreToldInPart(t *testing.T) {
	k := talkOf(t, "fs:read:/data")
	p, err := newPathGate(k.run.gate, nil)
	must(t, err)
	for said, want := range map[string]string{
		"a\x00b":                 `"a\x00b"`,
		strings.Repeat("x", 256): `"` + strings.Repeat("x", 256) + `"`,
		strings.Repeat("x", 257): `"` + strings.Repeat("x", 256) + `"...`,
	} {
		p.Reject("path_open", []byte(said))
		if last := k.log.Decisions[len(k.log.Decisions)-1]; last.Target != want || !last.Deny || last.Op != "path_open" {
			t.Errorf("%q: %+v", said, last)
		}
	}
	n := len(k.log.Decisions)
	if p.Reject("clock_time_get", nil); len(k.log.Decisions) != n {
		t.Errorf("a call on no path is recorded as %+v", k.log.Decisions[n])
	}
}
