package hostcalls

import (
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
)

// A program that is run by exec_run and a tool of a server need the operator's yes
// where one is asked for: after a no nothing is started or called, and the record says
// why. Nobody is asked about what the policy refuses.
//
//rlp:holds C15
func TestNothingIsDoneAfterANo(t *testing.T) {
	const call = `{"server":"github","tool":"search"}`
	type attempt struct {
		r    *rig
		name string
		args []string
		done func() int
	}
	run := func(grants ...string) attempt {
		r, f := execRig(t, grants...)
		return attempt{r, execRunName, []string{`{"argv":["/bin/grep"]}`, ""}, func() int { return len(f.ran) }}
	}
	ask := func(layers ...string) attempt {
		r, f := mcpRig(t, github, layers...)
		return attempt{r, mcpCallName, []string{call}, func() int { return len(f.calls) }}
	}
	for name, c := range map[string]struct {
		attempt
		yes    bool
		asked  int
		reason string
	}{
		"a program, yes":     {run("process:exec:/usr/bin/grep"), true, 1, ""},
		"a program, no":      {run("process:exec:/usr/bin/grep"), false, 1, "not_confirmed"},
		"a program, refused": {run("kb:read:notes"), true, 0, "cap_missing"},
		"a server, yes":      {ask(), true, 1, ""},
		"a server, no":       {ask(), false, 1, "not_confirmed"},
		"a server, refused":  {ask("[capabilities]\nmcp = []\n"), true, 0, "cap_missing"},
		"a server, no longer": {
			ask("schema = \"0.2\"\n[leases]\n\"mcp:call:github\" = { max_uses = 0 }\n"), true, 0,
			"lease_expired",
		},
	} {
		person := &asker{yes: c.yes}
		c.r.host.cfg.Confirm, c.r.host.cfg.ConfirmExternal = person.confirm, true
		n, text := c.r.call(c.name, c.args...)
		if (n >= 0) != (c.reason == "") || !strings.Contains(text, c.reason) || c.done() > 0 != (c.reason == "") ||
			len(person.asked) != c.asked {
			t.Errorf("%s: %d %s, done %d times, asked %+v", name, n, text, c.done(), person.asked)
		}
		if d := c.r.log.Decisions[0]; d.Deny != (c.reason != "") || c.reason != "" && d.Reason != c.reason {
			t.Errorf("%s: recorded %+v", name, d)
		}
	}
}

// To list the tools of a server changes nothing: nobody is asked.
func TestNobodyIsAskedAboutAList(t *testing.T) {
	person := &asker{}
	r, _ := mcpRig(t, github)
	r.host.cfg.Confirm, r.host.cfg.ConfirmExternal = person.confirm, true
	if n, text := r.call(mcpCallName, `{"server":"github"}`); n < 0 || len(person.asked) > 0 {
		t.Errorf("%d %s, asked %+v", n, text, person.asked)
	}
}

// The time that a call took is recorded with it, and that it was confirmed with that
// call alone.
func TestACallIsRecordedWithWhatBecameOfIt(t *testing.T) {
	r, f := mcpRig(t, github)
	now := int64(0)
	r.host.cfg.Now = func() int64 { return now }
	f.before = func() { now += 3_000_000 }
	r.host.cfg.Confirm, r.host.cfg.ConfirmExternal = (&asker{yes: true}).confirm, true
	for _, call := range []string{`{"server":"github","tool":"search"}`, `{"server":"github"}`} {
		if n, text := r.call(mcpCallName, call); n < 0 {
			t.Fatalf("%d %s", n, text)
		}
	}
	var ms []float64
	var said []string
	for _, e := range r.log.Events {
		if e.Verb == mcpCallName {
			ms, said = append(ms, e.DurationMS), append(said, e.ErrorSummary)
		}
	}
	if len(ms) != 2 || ms[0] != 3 || ms[1] != 0 || said[0] != "confirmed by the test" || said[1] != "" {
		t.Errorf("took %v, %q", ms, said)
	}
}

// A call that cannot be read is recorded as one of its family.
func TestAnUnreadableCallIsOneOfItsFamily(t *testing.T) {
	r, _ := mcpRig(t, github)
	for name, c := range map[string]struct {
		args []string
		cap  caps.Family
	}{
		mcpCallName: {[]string{"["}, caps.MCP}, "kb_get": {[]string{"\x00", "k"}, caps.KBRead},
		execRunName: {[]string{"[", ""}, caps.Exec},
	} {
		if n, a := r.denial(name, c.args...); n != -int64(Inval) || a.Reason != "invalid_request" {
			t.Errorf("%s: %d %+v", name, n, a)
		}
		if d := r.log.Decisions[len(r.log.Decisions)-1]; !strings.HasPrefix(d.Cap, caps.AuditName(c.cap, 0)[:3]) || !d.Deny ||
			d.Op != name {
			t.Errorf("%s: recorded %+v", name, d)
		}
	}
}
