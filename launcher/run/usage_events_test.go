package run

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/launcher/places"
)

// logged is what a run says to its log, a line each.
func logged(s *Spec) *bytes.Buffer {
	said := &bytes.Buffer{}
	s.Log = slog.New(slog.NewJSONHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return said
}

// lineOf is the only line of a log with this message.
func lineOf(t *testing.T, said *bytes.Buffer, message string) map[string]any {
	t.Helper()
	var found []map[string]any
	for line := range strings.Lines(said.String()) {
		var fields map[string]any
		must(t, json.Unmarshal([]byte(line), &fields))
		if fields["msg"] == message {
			found = append(found, fields)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d lines of %q in %s", len(found), message, said)
	}
	return found[0]
}

// What a run used is counted, per family where it decided something, and is in the
// record of its end.
func TestWhatARunUsedIsCounted(t *testing.T) {
	log := audit.NewMemory()
	s := specOf(t, log, "kb:read:notes")
	s.Components = hostcalls.Components{KB: &faultyKB{get: func() {}}, Masks: spyMasks{}, Secrets: &marked{known: true}}
	s.Policy.BaseLimits = caps.Limits{}.With(caps.StdoutMaxBytes, 6)
	get := do("kb_get", 0, 5, 5, 3, 512, 64)
	s.Module = stepping(t, "noteskey the-value", slices.Concat(say(0, 8), write(2, 8, 10),
		[]step{get, do("kb_get", 5, 3, 5, 3, 512, 64)})...)
	r := Launch(t.Context(), s)
	u := r.Usage
	if r.Outcome != OK || u.StdoutBytes != 8 || !u.StdoutTruncated || u.StderrBytes != 10 || u.StderrTruncated ||
		u.SecretsReplaced != 1 || u.Turns != 0 || r.Generation != 1 {
		t.Errorf("%s %s, %+v", r.Outcome, r.Message, u)
	}
	if want := map[string]FamilyUsage{"kb_read": {1, 1}}; !maps.Equal(u.Families, want) || u.Allowed != 1 ||
		u.Denied != 1 || u.Hostcalls < 2 {
		t.Errorf("%+v", u)
	}
	end := log.Events[len(log.Events)-1].Usage
	for key, want := range map[string]int64{
		"allowed": 1, "denied": 1, "stdout_bytes": 8, "stderr_bytes": 10,
		"secrets_replaced": 1, "hostcalls": u.Hostcalls, "fuel": u.Fuel,
	} {
		if end[key] != want {
			t.Errorf("recorded %s = %d, want %d", key, end[key], want)
		}
	}
	log = audit.NewMemory()
	Launch(t.Context(), specOf(t, log))
	if _, there := log.Events[len(log.Events)-1].Usage["secrets_replaced"]; there {
		t.Error("no value was taken out, and the record counts them")
	}
}

// The turns of a run that has several, and how often it was given another set, are
// counted; only such a run has turns.
func TestTurnsAndGenerationsAreCounted(t *testing.T) {
	k := talkOf(t, "kb:read:notes")
	k.inputs = []error{nil, nil}
	k.says(denying(t, "kb:read:notes"))
	must(t, k.next())
	must(t, k.next())
	k.run.finish()
	if u := k.run.report.Usage; u.Turns != 3 || k.run.report.Generation != 2 || len(u.Families) != 0 {
		t.Errorf("generation %d, %+v", k.run.report.Generation, u)
	}
}

// What an agent logs is in the operator's log at the agent's level and as what the
// agent said; why a call failed in the host is there, and nowhere else.
func TestWhatAnAgentLogsIsAtItsLevel(t *testing.T) {
	for level, want := range map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo,
		"warn": slog.LevelWarn, "error": slog.LevelError,
	} {
		s := specOf(t, audit.NewMemory(), "kb:read:notes")
		s.Components.KB, s.Components.Masks = &faultyKB{get: func() {}}, spyMasks{}
		said := logged(s)
		n := int64(len(level))
		s.Module = stepping(t, level+"hello noteskey", do("log", 0, n, n, 5, 512, 64), do("kb_get", n+6, 5, n+11, 3, 512, 64))
		r := Launch(t.Context(), s)
		if line := lineOf(t, said, "agent_log"); r.Outcome != OK || line["level"] != want.String() ||
			line["message"] != "hello" || line["run_id"] != aRun || line["agent"] != "agent" {
			t.Errorf("%s: %s, logged %v", level, r.Outcome, line)
		}
		if line := lineOf(t, said, "call_failed"); line["op"] != "kb_get" || line["why"] != "bad block" ||
			line["level"] != "ERROR" {
			t.Errorf("logged %v", line)
		}
		if report, err := json.Marshal(r); err != nil || bytes.Contains(report, []byte("bad block")) {
			t.Errorf("%s, %v", report, err)
		}
	}
}

// The log says of each end whether the policy refused the launch, and of a tool that
// is not attached what it lacks.
func TestTheLogSaysWhatRefused(t *testing.T) {
	tool := hostcalls.Tool{ID: "run", Program: &hostcalls.ToolProgram{Command: "/usr/bin/tool"}}
	for name, c := range map[string]struct {
		change  func(*Spec)
		refused bool
	}{
		"runs":      {func(*Spec) {}, false},
		"no module": {func(s *Spec) { s.Module = []byte("no module") }, false},
		"empty":     {func(s *Spec) { s.FailOnEmpty, s.Policy.Base = true, nil }, true},
	} {
		s := specOf(t, audit.NewMemory(), "kb:read:notes")
		s.Components.Tools = []hostcalls.Tool{tool}
		said := logged(s)
		c.change(s)
		r := Launch(t.Context(), s)
		if line := lineOf(t, said, "run_end"); line["refused_by_policy"] != c.refused ||
			line["outcome"] != string(r.Outcome) || line["timed_out"] != false || line["exit_code"] != float64(r.ExitCode) {
			t.Errorf("%s: logged %v", name, line)
		}
		if line := lineOf(t, said, "tool_not_attached"); line["tool"] != "run" ||
			line["capability"] != "process:exec:/usr/bin/tool" || line["reason"] != "cap_missing" {
			t.Errorf("%s: logged %v", name, line)
		}
	}
	s := specOf(t, audit.NewMemory(), "process:exec:/usr/bin/tool")
	s.Components.Tools = []hostcalls.Tool{tool}
	if said := logged(s); Launch(t.Context(), s).Outcome != OK || strings.Contains(said.String(), "tool_not_attached") ||
		strings.Contains(said.String(), "untrusted_floor") {
		t.Errorf("attached, and logged %s", said)
	}
}

// What the guest causes over and over is told and logged once, and nothing is logged
// of a run whose report is given out.
func TestWarningsAreLoggedAsTheyAreTold(t *testing.T) {
	k := talkOf(t, "kb:read:notes")
	said := logged(k.run.spec)
	for range 3 {
		k.run.warnOnce("again and again")
	}
	k.run.warn("%d times", 2)
	k.run.finish()
	k.run.warn("late")
	k.run.values.replaced("runloop/a/b", "stdout", "fd_write")
	if !slices.Equal(k.run.report.Warnings, []string{"again and again", "2 times"}) || k.run.values.replacements != 0 ||
		len(k.run.values.late) > 0 {
		t.Errorf("told %q, %d replaced", k.run.report.Warnings, k.run.values.replacements)
	}
	for text, want := range map[string]int{"again and again": 1, "2 times": 1, "late": 0, "runloop/a/b": 0} {
		if n := strings.Count(said.String(), text); n != want {
			t.Errorf("%q is logged %d times: %s", text, n, said)
		}
	}
}

// A report has lists where there is nothing to list, and a message of at most 4,096
// bytes whatever a bundle made up.
func TestReportsAreWholeAndBounded(t *testing.T) {
	s := specOf(t, audit.NewMemory())
	s.Tenant = "No Tenant"
	text, err := json.Marshal(Launch(t.Context(), s))
	must(t, err)
	for _, want := range []string{`"base":[]`, `"effective":[]`, `"changes":[]`, `"exit_code":65`} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	for n, want := range map[int]int{4096: 4096, 4097: 4099} {
		var r Report
		r.refuse(Refused, StatusInput, places.Host(strings.Repeat("x", n)))
		if len(r.Message) != want || strings.HasSuffix(r.Message, "...") != (n > 4096) {
			t.Errorf("%d bytes become %d", n, len(r.Message))
		}
	}
}

// The lane of a report is that of the programs where the run holds any.
func TestTheLaneOfAReport(t *testing.T) {
	for grant, want := range map[string]string{"process:exec:/bin/x": "ns", "kb:read:notes": "wasm"} {
		s := specOf(t, audit.NewMemory(), grant)
		if r := Launch(t.Context(), s); r.Lane.Name != "wasm" {
			t.Errorf("control: %s: %+v", grant, r.Lane)
		}
		s.Lane = &Lane{Name: "ns"}
		if r := Launch(t.Context(), s); r.Lane.Name != want {
			t.Errorf("%s: %+v", grant, r.Lane)
		}
	}
}

// Of what a layer allows and the bundle does not ask for, paths and programs are told
// apart: whoever wrote them believes that the agent has them.
func TestPathsThatTheBundleDoesNotAskForAreToldApart(t *testing.T) {
	s := specOf(t, audit.NewMemory(), "kb:read:notes", "fs:read:/data", "process:exec:/bin/x")
	s.Relaxed = true
	s.Policy.Layers = []*caps.Layer{{
		Name: "o", Bounds: []caps.Bound{
			{Family: caps.KBRead, Modes: 1},
			{Family: caps.FS, Modes: caps.AllModes(caps.FS)},
			{Family: caps.Exec, Modes: 1},
		},
		Allow: entriesOf(t, "kb:read:more", "fs:read:/etc", "process:exec:/bin/y"),
	}}
	r := Launch(t.Context(), s)
	if text := strings.Join(r.Warnings, "\n"); !strings.Contains(text, "fs:read:/etc") ||
		!strings.Contains(text, "process:exec:/bin/y") {
		t.Errorf("%q", r.Warnings)
	}
	told := r.For(places.Of("/home")).Warnings
	if len(told) != len(r.Warnings)-2 || strings.Contains(strings.Join(told, "\n"), "/etc") {
		t.Errorf("others are told %q", told)
	}
	r.Warnings = told
	if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "kb:read:more") }) {
		t.Errorf("warned %q", r.Warnings)
	}
}

// What one call says of a server is told to the operator, and a value that a call was
// given is told as taken out of that call.
func TestWhatCallsTellTheOperator(t *testing.T) {
	s := specOf(t, audit.NewMemory(), "mcp:call:github")
	s.Components.Secrets, s.Components.MCP = &marked{known: true}, pinning{}
	said := logged(s)
	const ask = `{"server":"github"}`
	n := int64(len(ask))
	s.Module = stepping(t, ask+"info the-value", do("mcp_call", 0, n, 1024, 512), do("log", n, 4, n+5, 9, 1024, 512))
	r := Launch(t.Context(), s)
	if r.Outcome != OK || len(r.Warnings) != 2 || !strings.Contains(r.Warnings[0], "sha256:00") ||
		r.Warnings[1] != "a value of the secret runloop/a/b was taken out of log" {
		t.Errorf("%s %s, warned %q", r.Outcome, r.Message, r.Warnings)
	}
	if strings.Contains(said.String(), "the-value") || lineOf(t, said, "agent_log")["message"] != "[gone]" {
		t.Errorf("logged %s", said)
	}
}

// pinning is a server whose tools are not known yet.
type pinning struct{ hostcalls.MCPServer }

func (p pinning) Server(string) hostcalls.MCPServer { return p }

func (pinning) Tools(context.Context) (hostcalls.MCPTools, error) {
	return hostcalls.MCPTools{Pinned: "sha256:00"}, nil
}

// gone is a stream whose reader has gone.
type gone struct{ writes int }

func (g *gone) Write([]byte) (int, error) { g.writes++; return 0, io.ErrClosedPipe }

// A reader that has gone away is not written to again, and the run goes on; one that
// is there is given no empty piece.
func TestAReaderThatHasGoneEndsNothing(t *testing.T) {
	out := &gone{}
	s := specOf(t, audit.NewMemory())
	s.Stdout = out
	s.Module = stepping(t, "text", slices.Concat(say(0, 0), say(0, 4), say(0, 4))...)
	if r := Launch(t.Context(), s); r.Outcome != OK || r.Stdout != "texttext" || out.writes != 1 {
		t.Errorf("%s %q, written to %d times", r.Outcome, r.Stdout, out.writes)
	}
	there := &pieces{}
	s.Stdout, s.OpenJournal = there, func(audit.Head) (Journal, error) { return audit.NewMemory(), nil }
	if r := Launch(t.Context(), s); r.Outcome != OK || slices.Contains(there.list, "") || strings.Join(there.list,
		"") != "texttext" {
		t.Errorf("%s, written %q", r.Outcome, there.list)
	}
}

// Where nobody reads what the guest writes, the end of the run does not wait for it,
// though text is held back that might be a secret's.
func TestTheEndWaitsForNoReader(t *testing.T) {
	out := &unreadPiece{begun: make(chan struct{}), let: make(chan struct{})}
	held := func(p []byte, end bool) []byte {
		if end {
			return []byte("held back")
		}
		return p
	}
	c := capture{max: 100, live: out, scrub: held}
	written := make(chan error)
	go func() {
		_, err := c.Write([]byte("x"))
		written <- err
	}()
	<-out.begun
	ended := make(chan struct{})
	go func() { c.flush(); close(ended) }()
	<-ended
	if n, err := c.take([]byte("late")); n != nil || err != nil {
		t.Errorf("after the end %q, %v", n, err)
	}
	close(out.let)
	if out.more {
		t.Error("written to while it takes something")
	}
	if err := <-written; err != nil || c.kept.String() != "x" {
		t.Errorf("%v, kept %q", err, &c.kept)
	}
}

type unreadPiece struct {
	begun, let chan struct{}
	more       bool
}

func (u *unreadPiece) Write(p []byte) (int, error) {
	select {
	case <-u.begun:
		u.more = true
		return len(p), nil
	default:
	}
	close(u.begun)
	<-u.let
	return len(p), nil
}
