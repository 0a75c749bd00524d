package run

import (
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/internal/record/audit"
)

// empty is a module whose _start does nothing.
const empty = "\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x07\x0a\x01\x06_start\x00\x00\x0a\x04\x01\x02\x00\x0b"

// aRun is the id of a run.
const aRun = "0190b1d2-7c4e-7a55-8f00-000000000001"

func entryOf(t testing.TB, text string) caps.Entry {
	t.Helper()
	g, err := caps.ParseGrant(text)
	if err != nil {
		t.Fatal(err)
	}
	return caps.Entry{Grant: g}
}

func specOf(t testing.TB, log *audit.Memory, grants ...string) *Spec {
	t.Helper()
	s := &Spec{
		Identity: Identity{RunID: aRun, Agent: "agent", Tenant: "default"}, Module: []byte(empty),
		Env: func(string) (string, bool) { return "", false }, KeepAllowed: true, KeepDenied: true,
		OpenJournal: func(audit.Head) (Journal, error) { return log, nil },
		Now:         time.Now, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, g := range grants {
		s.Policy.Base = append(s.Policy.Base, entryOf(t, g))
	}
	return s
}

func kinds(log *audit.Memory) []string {
	var list []string
	for _, e := range log.Events {
		list = append(list, e.Kind)
	}
	return list
}

// A run has a beginning and exactly one end, and both hold the plan.
//
//rlp:holds A52
func TestARunIsRecordedFromBeginningToEnd(t *testing.T) {
	log := audit.NewMemory()
	r := Launch(t.Context(), specOf(t, log, "kb:read:notes"))
	if r.Outcome != OK || r.ExitCode != 0 || r.GuestExit == nil {
		t.Fatalf("%+v", r)
	}
	if got := kinds(log); !slices.Equal(got, []string{audit.KindRunStart, audit.KindRunComplete}) {
		t.Errorf("events %v", got)
	}
	if got := log.Events[0].Effective; !slices.Equal(got, r.Effective) || !slices.Equal(got, []string{"kb:read:notes"}) {
		t.Errorf("run.start says %v, the report %v", got, r.Effective)
	}
}

// Nothing runs when it cannot be recorded: not when the journal cannot be
// opened, and not when its first record fails.
//
//rlp:holds R71
func TestNothingRunsUnrecorded(t *testing.T) {
	log := audit.NewMemory()
	if r := Launch(t.Context(), specOf(t, log)); r.GuestExit == nil {
		t.Fatalf("control: %+v", r)
	}
	full := audit.NewMemory()
	full.Room = 0
	closed := specOf(t, full)
	broken := specOf(t, audit.NewMemory())
	broken.OpenJournal = func(audit.Head) (Journal, error) { return nil, errors.New("no disk") }
	for name, s := range map[string]*Spec{"full": closed, "broken": broken} {
		r := Launch(t.Context(), s)
		if r.Outcome != AuditFailed || r.ExitCode != StatusAudit || r.GuestExit != nil {
			t.Errorf("%s: %s, exit %d, guest %v", name, r.Outcome, r.ExitCode, r.GuestExit)
		}
	}
}

// What the plan refuses is refused before the module is looked at: the module
// here is none.
//
//rlp:holds K5 K31 K67 K72
func TestRefusalsComeBeforeTheModule(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*Spec)
		outcome Outcome
		status  int
	}{
		{"control", func(*Spec) {}, Refused, StatusInput},
		{"empty", func(s *Spec) { s.Policy.Base, s.FailOnEmpty = nil, true }, Refused, StatusPolicy},
		{"lane", func(s *Spec) {
			s.Policy.Base, s.ExecRefused = []caps.Entry{entryOf(t, "process:exec:/bin/true")},
				"no lane keeps programs from the network"
		}, Unsupported, StatusUnsupported},
	} {
		log := audit.NewMemory()
		s := specOf(t, log, "kb:read:notes")
		s.Module = []byte("no module")
		c.change(s)
		r := Launch(t.Context(), s)
		if r.Outcome != c.outcome || r.ExitCode != c.status || r.GuestExit != nil {
			t.Errorf("%s: %s, exit %d", c.name, r.Outcome, r.ExitCode)
		}
		if end := log.Events[len(log.Events)-1].Kind; (end == audit.KindPolicyRejected) != (c.status == StatusPolicy) ||
			!audit.Ends(end) {
			t.Errorf("%s: ends with %s", c.name, end)
		}
	}
}

// The order of layers, and saying one twice, changes nothing that is held.
//
//rlp:holds P9 R58
func TestOrderOfLayersDoesNotMatter(t *testing.T) {
	p := Policy{Base: []caps.Entry{
		entryOf(t, "fs:read:/home/u"), entryOf(t, "kb:read:notes"),
		entryOf(t, "network:https:a.com"),
	}}
	deny := func(name, text string) *caps.Layer {
		return &caps.Layer{Name: name, Deny: []caps.Entry{entryOf(t, text)}}
	}
	p.Layers = []*caps.Layer{
		deny("a", "fs:read:/home/u/.ssh"), deny("b", "kb:read:notes"), deny("c", "fs:read:/home/u/.ssh/keys"),
		{Name: "d", Limits: caps.Limits{}.With(caps.WallTimeMS, 5)},
		{Name: "e", Limits: caps.Limits{}.With(caps.WallTimeMS, 9)},
	}
	first, err := NewPlan(p)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		q := p
		q.Layers = append(slices.Clone(p.Layers), p.Layers[rnd.IntN(len(p.Layers))])
		rnd.Shuffle(len(q.Layers), func(i, j int) { q.Layers[i], q.Layers[j] = q.Layers[j], q.Layers[i] })
		plan, err := NewPlan(q)
		if err != nil {
			t.Fatal(err)
		}
		if plan.Effective.Digest() != first.Effective.Digest() || plan.Limits != first.Limits {
			t.Fatalf("%s and %s", plan.Effective, first.Effective)
		}
	}
}

// A bundle may ask for less than a default and not for more; an operator may do both.
func TestDefaultsAreTheOperatorsToLift(t *testing.T) {
	wall := func(p Policy) int64 {
		t.Helper()
		plan, err := NewPlan(p)
		if err != nil {
			t.Fatal(err)
		}
		v, _ := plan.Limits.Get(caps.WallTimeMS)
		return v
	}
	ask := func(ms int64) caps.Limits { return caps.Limits{}.With(caps.WallTimeMS, ms) }
	operator := []*caps.Layer{{Name: "config", Limits: ask(2 * DefaultWallMS)}}
	for _, c := range []struct {
		policy Policy
		want   int64
	}{
		{Policy{}, DefaultWallMS},
		{Policy{BaseLimits: ask(10)}, 10},
		{Policy{BaseLimits: ask(10 * DefaultWallMS)}, DefaultWallMS},
		{Policy{Layers: operator}, 2 * DefaultWallMS},
		{Policy{BaseLimits: ask(10 * DefaultWallMS), Layers: operator}, 2 * DefaultWallMS},
		{Policy{BaseLimits: ask(10), Layers: operator}, 10},
		{Policy{Layers: append(operator, &caps.Layer{Limits: ask(0)})}, 0},
	} {
		if got := wall(c.policy); got != c.want {
			t.Errorf("%v: %d, want %d", c.policy.BaseLimits.Map(), got, c.want)
		}
	}
}

// Grants and layers meet on what paths are, however they are spelled, and what
// is denied is denied in both spellings.
func TestPathsMeetInTheirCanonicalForm(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link, real := filepath.Join(dir, "link"), filepath.Join(dir, "real")
	resolve := func(p string) (jail.Resolved, error) {
		if rest, ok := strings.CutPrefix(p, link); ok {
			return jail.Resolved{Path: real + rest}, nil
		}
		return jail.Resolved{Path: p}, nil
	}
	p := Policy{
		Base: []caps.Entry{entryOf(t, "fs:read:"+link)},
		Layers: []*caps.Layer{{
			Name: "o", Bounds: []caps.Bound{{Family: caps.FS, Modes: caps.AllModes(caps.FS)}},
			Allow: []caps.Entry{entryOf(t, "fs:read:"+real+"/sub")}, Deny: []caps.Entry{entryOf(t, "fs:read:"+link+"/sub/shut")},
		}},
	}
	canonical, paths, err := Canonical(p, Resolvers{Files: resolve, Programs: resolve})
	if err != nil {
		t.Fatal(err)
	}
	if want := []jail.Alias{{Written: link, Canonical: real}}; !slices.Equal(paths.Aliases, want) {
		t.Errorf("aliases %v", paths.Aliases)
	}
	plan, err := NewPlan(canonical)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"/sub/a": true, "/sub/shut/a": false, "/other": false} {
		if got := plan.Effective.Check(caps.Request{Family: caps.FS, Name: real + path}).Allow; got != want {
			t.Errorf("%s: allowed %v", path, got)
		}
	}
	if _, _, err := Canonical(p, Resolvers{Files: func(string) (jail.Resolved, error) {
		return jail.Resolved{},
			errors.New("loop")
	}, Programs: resolve}); err == nil {
		t.Error("a path that cannot be resolved is passed over")
	}
}
