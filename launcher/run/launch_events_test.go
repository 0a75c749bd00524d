package run

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
)

// What a launch does is told in order, each with the run's id, and logged for whom
// it was.
func TestALaunchTellsItsLife(t *testing.T) {
	said, events := &bytes.Buffer{}, []string{}
	log := audit.NewMemory()
	s := specOf(t, log, "kb:read:notes", "process:exec:/bin/x")
	s.Warnings, s.ExecCaveat = []string{"first"}, "programs see the network"
	s.Taint.Warning, s.Taint.Notice = "no floor of the operator's", "the operator's floor"
	s.Paths.Redirects = []Redirect{{Layer: "base", Written: "/w", Path: "/p", Link: "/w"}}
	s.Relaxed = true
	s.Policy.Layers = []*caps.Layer{{
		Name: "o", Bounds: []caps.Bound{{Family: caps.KBRead, Modes: 1}},
		Allow: entriesOf(t, "kb:read:notes", "kb:read:more"),
	}, {
		Name: "l", Leases: []caps.Lease{{Entry: entryOf(t, "kb:read:notes"), Expires: caps.Forever, MaxUses: 1}},
		Deny: []caps.Entry{{Grant: caps.Grant{Family: caps.Tool, Modes: 1, Scope: "web:nothing"}, Pos: caps.Pos{
			File: "f",
			Line: 1,
		}}},
	}}
	s.Module = stepping(t, `{"a":1}`, do("result", 0, 7, 64, 64))
	s.Log = slog.New(slog.NewJSONHandler(said, nil))
	s.Event = func(name string, fields map[string]any) {
		if fields["run_id"] != aRun {
			t.Errorf("%s: %v", name, fields)
		}
		events = append(events, name)
	}
	r := Launch(t.Context(), s)
	if r.Outcome != OK || string(r.Result) != `{"a":1}` || !r.Usage.Compiled || r.Usage.Fuel == 0 {
		t.Fatalf("%s %s, result %q, %+v", r.Outcome, r.Message, r.Result, r.Usage)
	}
	if !slices.Equal(events, []string{"run.started", "run.compiled", "run.running", "run.finished"}) {
		t.Errorf("events %q", events)
	}
	for _, want := range []string{
		"first", "programs see the network", "no floor of the operator's",
		"there is no tool web:nothing", "leads through the link /w to /p", "kb:read:more is not in the base and is ignored",
	} {
		if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, want) }) ||
			!strings.Contains(said.String(), want) {
			t.Errorf("%q is not in %q", want, r.Warnings)
		}
	}
	for _, want := range []string{
		`"msg":"run_start"`, `"msg":"caps_base"`, `"msg":"caps_effective"`, `"msg":"run_end"`,
		`"untrusted_floor"`, `"outcome":"ok"`, `"tenant":"default"`,
	} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%s is not in the log: %s", want, said)
		}
	}
	last := log.Events[len(log.Events)-1]
	if last.Severity != 0 || last.Reason != "" || log.Events[0].Effective == nil {
		t.Errorf("recorded %+v", last)
	}
	if !slices.ContainsFunc(log.Decisions, func(d audit.Kept) bool {
		return d.Cap == "caps.extra" &&
			d.Target == "kb:read:more"
	}) {
		t.Errorf("what is ignored is not among %+v", log.Decisions)
	}
	if len(r.Notices) != 4 { // with the floor's, the link's and the launch's own
		t.Errorf("notices: %q", r.Notices)
	}
}

// A run that holds no programs is told nothing of them, and one that holds nothing
// says so; a run that ends badly is recorded with why.
func TestARunIsToldOnlyWhatConcernsIt(t *testing.T) {
	for _, c := range []struct {
		grant, record string
		module        string
		reason        string
	}{{"kb:read:notes", "", empty, ""}, {"", "caps.empty", empty, ""}, {"kb:read:notes", "", traps, "trap"}} {
		log := audit.NewMemory()
		s := specOf(t, log)
		if c.grant != "" {
			s = specOf(t, log, c.grant)
		}
		s.ExecCaveat, s.ExecRefused, s.Module = "programs see the network", "no lane", []byte(c.module)
		r := Launch(t.Context(), s)
		if len(r.Warnings) > 0 || r.Outcome == Unsupported {
			t.Errorf("%+v: %s, warned %q", c, r.Outcome, r.Warnings)
		}
		if got := slices.ContainsFunc(log.Decisions, func(d audit.Kept) bool {
			return d.Cap == "caps.empty"
		}); got != (c.record != "") {
			t.Errorf("%+v: recorded %+v", c, log.Decisions)
		}
		last := log.Events[len(log.Events)-1]
		if last.Reason != c.reason || (last.Severity == audit.Error) != (c.reason != "") {
			t.Errorf("%+v: ended with %+v", c, last)
		}
	}
}

// The wait for an input is the run's time: one that comes is the guest's, and what
// ends the wait is the run's end.
func TestTheInputOfARunIsWaitedFor(t *testing.T) {
	comes := func(context.Context) ([]byte, error) { return []byte("here"), nil }
	waits := func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }
	ended, end := context.WithCancelCause(t.Context())
	end(&Ending{"nothing came"})
	for name, c := range map[string]struct {
		ctx     context.Context
		read    func(context.Context) ([]byte, error)
		wall    int64
		outcome Outcome
		status  int
		message string
	}{
		"comes":     {t.Context(), comes, 60_000, OK, 0, ""},
		"none":      {t.Context(), waits, 1, Timeout, StatusTimeout, "limits.wall_time_ms = 1 while it waited for its input"},
		"cancelled": {ended, waits, 60_000, Cancelled, StatusCancelled, "nothing came"},
		"broken": {
			t.Context(), func(context.Context) ([]byte, error) { return nil, errors.New("no JSON") }, 60_000,
			Refused, StatusInput, "no JSON",
		},
	} {
		s := specOf(t, audit.NewMemory())
		s.Policy.BaseLimits = caps.Limits{}.With(caps.WallTimeMS, c.wall)
		s.Module = stepping(t, "\x00\x01\x00\x00\x80\x00\x00\x00", append([]step{do("fd_read", 0, 0, 1, 64)},
			say(256, 4)...)...)
		var waited atomic.Int64 // also asked for while the module is compiled
		var given context.Context
		s.Now = func() time.Time { return time.Unix(1+waited.Load(), 0) }
		s.ReadInput = func(ctx context.Context) ([]byte, error) {
			given = ctx
			waited.Add(3)
			return c.read(ctx)
		}
		r := Launch(c.ctx, s)
		if r.Outcome != c.outcome || r.ExitCode != c.status || !strings.Contains(r.Message, c.message) ||
			(r.GuestExit == nil) != (c.outcome != OK) {
			t.Errorf("%s: %s %d %q", name, r.Outcome, r.ExitCode, r.Message)
		}
		if c.outcome == OK && r.Stdout != "here" || c.outcome != OK && r.Usage.WallMS != 3000 {
			t.Errorf("%s: printed %q in %d ms", name, r.Stdout, r.Usage.WallMS)
		}
		if given.Err() == nil {
			t.Errorf("%s: who reads the input may still wait", name)
		}
	}
}

// A dry run says what a launch would refuse, for each reason, and launches nothing.
func TestADryRunRefusesWhatALaunchWould(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*Spec)
		outcome Outcome
		status  int
	}{
		"control":   {func(*Spec) {}, OK, 0},
		"no module": {func(s *Spec) { s.Module = []byte("no module") }, Refused, StatusInput},
		"empty":     {func(s *Spec) { s.Policy.Base, s.FailOnEmpty = nil, true }, Refused, StatusPolicy},
	} {
		s := specOf(t, audit.NewMemory(), "kb:read:notes")
		s.OpenJournal = func(audit.Head) (Journal, error) { t.Error("a journal is opened"); return nil, errors.New("none") }
		c.change(s)
		r, err := DryRun(s)
		if err != nil || !r.DryRun || r.Outcome != c.outcome || r.ExitCode != c.status ||
			(r.Message == "") != (c.outcome == OK) || len(r.Violations) > 0 != (c.status == StatusPolicy) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if err := CheckModule(s.Agent, s.Module, s.Compiler); (err != nil) != (c.status == StatusInput) {
			t.Errorf("%s: the module: %v", name, err)
		}
	}
}

// Once the report is given out nothing more is told, warned of or counted.
func TestNothingIsToldAfterTheReport(t *testing.T) {
	k := talkOf(t, "kb:read:notes")
	k.run.event("before", nil)
	k.run.warn("before")
	k.run.finish()
	told := slices.Clone(k.events)
	k.run.event("after", nil)
	k.run.warn("after")
	if !k.run.isTold() || !slices.Equal(told, []string{"before", "run.finished"}) || !slices.Equal(k.events, told) ||
		!slices.Equal(k.run.report.Warnings, []string{"before"}) {
		t.Errorf("told %q, warned %q", k.events, k.run.report.Warnings)
	}
	if k.run.gate.Spend() {
		t.Error("the gate is open")
	}
}

// A report of a run in the lane of the agent itself says that each control is
// enforced, what was taken out of the middle, and has no marker for an end that is
// none of the boundary's.
func TestReportsOfTheAgentsOwnLane(t *testing.T) {
	s := specOf(t, audit.NewMemory(), "fs:read:/data")
	s.Relaxed = true
	s.Policy.Layers = []*caps.Layer{{Name: "l", Deny: []caps.Entry{entryOf(t, "fs:read:/data/shut")}}}
	r := Launch(t.Context(), s)
	if len(r.Lane.Controls) != len(WasmControls()) || len(WasmControls()) < 5 || r.Marker() != "" {
		t.Errorf("%s %+v, marker %q", r.Outcome, r.Lane, r.Marker())
	}
	for name, kept := range r.Lane.Controls {
		if kept != "enforced" {
			t.Errorf("%s is %q", name, kept)
		}
	}
	if !slices.ContainsFunc(r.Except, func(e string) bool { return strings.Contains(e, "/data/shut") }) {
		t.Errorf("taken out: %q", r.Except)
	}
}

// What is kept of a stream is counted before, byte by byte up to the bound; where it
// may not be kept nothing is, and who writes learns it. The end is looked through
// once.
func TestCaptureCountsWhatItKeeps(t *testing.T) {
	var live bytes.Buffer
	var counted []int64
	ends := 0
	full := errors.New("full")
	c := capture{max: 5, live: &live, hold: func(n int64) error { counted = append(counted, n); return nil }}
	c.scrub = func(p []byte, end bool) []byte {
		if end {
			ends++
			return []byte("!")
		}
		return p
	}
	for _, s := range []string{"", "abc", "d"} {
		if _, err := c.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(counted, []int64{3, 1}) {
		t.Errorf("counted %v", counted)
	}
	c.hold = func(int64) error { return full }
	if n, err := c.Write([]byte("e")); !errors.Is(err, full) || n != 1 || c.kept.String() != "abcd" {
		t.Errorf("%d, %v, kept %q", n, err, &c.kept)
	}
	c.flush()
	c.flush()
	if c.kept.String() != "abcd!" || live.String() != "abcd!" || ends != 1 {
		t.Errorf("kept %q, passed on %q, %d ends", &c.kept, &live, ends)
	}
	c = capture{max: 2, hold: func(n int64) error { counted = append(counted, n); return nil }}
	counted = nil
	_, _ = c.Write([]byte("abcd"))
	_, _ = c.Write([]byte("e"))
	if !slices.Equal(counted, []int64{2}) || c.kept.String() != "ab" || !c.truncated {
		t.Errorf("counted %v, kept %q", counted, &c.kept)
	}
}

// What a granted path that is not there refuses names it with its place and says
// what to do; of one that was taken as written nobody learns why. What was taken
// away need not be there.
func TestGrantedPathsThatAreNotThere(t *testing.T) {
	base := entriesOf(t, "fs:read:/a", "fs:read:/gone", "kb:read:notes")
	at := map[string]caps.Pos{"/gone": {File: "policy.caps", Line: 2, Column: 1}, "notes": {File: "x", Line: 1}}
	for name, c := range map[string]struct {
		change func(*Spec)
		want   string
	}{
		"control: all are there": {func(s *Spec) { s.Paths.Missing = nil }, ""},
		"not there": {
			func(*Spec) {},
			"granted and not there: /gone (policy.caps:2:1); make it, take it out (--deny fs:*:/gone)",
		},
		"as written": {
			func(s *Spec) { s.Paths.AsWritten = true },
			"not granted as written: /gone (policy.caps:2:1); name files and folders by their own paths",
		},
		"relaxed": {func(s *Spec) { s.Relaxed = true }, ""},
		"taken away": {func(s *Spec) {
			s.Policy.Layers = []*caps.Layer{{Name: "l", Deny: []caps.Entry{entryOf(t, "fs:read:/gone")}}}
		}, ""},
	} {
		s := &Spec{Policy: Policy{Base: base}, Paths: Paths{Missing: at}}
		c.change(s)
		plan, err := NewPlan(s.Policy)
		must(t, err)
		_, _, why := refusal(s, plan)
		if got := why.String(); (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
		r := newRun(s, plan)
		s.Log = slog.New(slog.DiscardHandler)
		err = r.absent([]string{"/gone", "/elsewhere"})
		var gone *goneError
		if refused := errors.As(err, &gone); refused != (c.want != "" || strings.HasPrefix(name, "control")) || refused &&
			strings.Contains(err.Error(), "/elsewhere") {
			t.Errorf("%s: %v", name, err)
		}
		if taken := name == "taken away"; (len(r.report.Warnings) == 1) == taken || !taken &&
			strings.Contains(r.report.Warnings[0], "as written") != s.Paths.AsWritten {
			t.Errorf("%s: warned %q", name, r.report.Warnings)
		}
	}
	s := &Spec{
		Policy: Policy{Base: entriesOf(t, "fs:write:/z", "fs:read:/z", "fs:read:/b")},
		Paths:  Paths{Missing: map[string]caps.Pos{"/z": {}, "/b": {}}},
	}
	plan, err := NewPlan(s.Policy)
	must(t, err)
	if got := s.Paths.Refusal(plan); !strings.HasPrefix(got,
		"granted and not there: /b, /z; make it, take it out (--deny fs:*:/b)") {
		t.Errorf("each path once, in order: %q", got)
	}
	if got := described("/a", caps.Pos{}).String(); got != "/a" {
		t.Errorf("without a place: %q", got)
	}
}

// Nothing runs that could not be recorded from its beginning on: not the mark that
// it begins with, nor that it holds nothing; what is told then is that.
//
//rlp:holds R71
func TestARunThatCannotBeginInTheRecordsDoesNot(t *testing.T) {
	for name, change := range map[string]func(*Spec){
		"control":  func(*Spec) {},
		"the mark": func(s *Spec) { s.Taint.Cause, s.Taint.Floor = "a host", &caps.Layer{Name: "_untrusted"} },
		"nothing":  func(s *Spec) { s.Policy.Base = nil },
		"ignored": func(s *Spec) {
			s.Policy.Layers = []*caps.Layer{{
				Name: "o", Bounds: []caps.Bound{{Family: caps.KBRead, Modes: 1}},
				Allow: entriesOf(t, "kb:read:notes", "kb:read:more"),
			}}
		},
	} {
		log := audit.NewMemory()
		s := specOf(t, log, "kb:read:notes")
		s.Module = stepping(t, "x", say(0, 1)...)
		change(s)
		if log.Room = 1; name == "control" {
			log.Room = 2
		}
		r := Launch(t.Context(), s)
		if ran := name == "control"; (r.Outcome == OK) != ran || !ran && (r.Outcome != AuditFailed ||
			r.ExitCode != StatusAudit || r.GuestExit != nil || r.Stdout != "") {
			t.Errorf("%s: %s %d %q, printed %q", name, r.Outcome, r.ExitCode, r.Message, r.Stdout)
		}
	}
}

// A run that holds programs and a path whose uses are counted is told that they are
// not given it.
func TestPathsWithCountedUsesAreToldOfPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		grants []string
		leased string
		uses   int64
		warned bool
	}{
		"counted":           {[]string{"process:exec:/bin/x", "fs:read:/data"}, "fs:read:/data", 3, true},
		"any number":        {[]string{"process:exec:/bin/x", "fs:read:/data"}, "fs:read:/data", caps.Unbounded, false},
		"no programs":       {[]string{"fs:read:/data"}, "fs:read:/data", 3, false},
		"another's counted": {[]string{"process:exec:/bin/x", "kb:read:notes"}, "kb:read:notes", 3, false},
	} {
		s := specOf(t, audit.NewMemory(), c.grants...)
		s.Relaxed = true
		s.Policy.Layers = []*caps.Layer{{Name: "l", Leases: []caps.Lease{{
			Entry:   entryOf(t, c.leased),
			Expires: caps.Forever - 1, MaxUses: c.uses,
		}}}}
		r := Launch(t.Context(), s)
		if got := slices.ContainsFunc(r.Warnings, func(w string) bool {
			return strings.Contains(w, "programs are not given")
		}); got != c.warned || slices.Contains(r.Warnings, "") {
			t.Errorf("%s: warned %q", name, r.Warnings)
		}
	}
}
