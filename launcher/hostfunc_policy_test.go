package launcher_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/launcher"
)

// A noting is a launcher with the host call acme.note in a home with settings, and
// the bundle of an agent that calls it twice.
type noting struct {
	*launcher.Launcher
	home, bundle string
}

func newNoting(t *testing.T, settings string) noting {
	t.Helper()
	n := noting{home: filepath.Join(t.TempDir(), "home")}
	write(t, filepath.Join(n.home, "config.toml"), settings)
	var err error
	n.Launcher, err = launcher.Open(launcher.Options{Home: n.home, Env: os.Environ(), HostFuncs: []launcher.HostFunc{
		launcher.Define("acme", "note", caps.KBWrite, parseNote, doNote),
	}})
	if err != nil {
		t.Fatal(err)
	}
	n.bundle = n.agent(t, "notes", calls(2, "acme", "note", "x"), `kb_write = ["notes"]`)
	return n
}

// agent installs an agent.
func (n noting) agent(t *testing.T, name, module, asks string) (bundle string) {
	t.Helper()
	bundle, err := agentIn(filepath.Join(n.home, "agents"), name, module, asks)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

// recorded are the answers to calls of acme.note in the log, in their order.
func (n noting) recorded(t *testing.T, f launcher.Filter) (answers []string) {
	t.Helper()
	for r, err := range n.Audit(t.Context(), f) {
		if err != nil {
			t.Fatal(err)
		}
		if d := r.Decision; d != nil && d.Op == "acme.note" {
			answers = append(answers, strings.TrimSpace(fmt.Sprintf("%s %s %s", d.Target, d.Reason, d.Layer)))
		}
	}
	return answers
}

// Leases and confirmation hold for a host call of the program's as for any other,
// and the log says so.
//
//rlp:holds D3
func TestLeasesAndConfirmationHoldForAHostCallOfTheProgram(t *testing.T) {
	const granted = "notes granted"
	for _, c := range []struct {
		name, settings, override string
		want                     []string
		printed                  string
	}{
		{"control", "", "", []string{granted, granted}, "noted xnoted x"},
		{
			"leased once", "", "schema = \"0.2\"\n[leases]\n\"kb:write:notes\" = { max_uses = 1 }\n",
			[]string{granted, "notes lease_expired override:notes.toml"},
			"noted x",
		},
		{
			"never leased", "", "schema = \"0.2\"\n[leases]\n\"kb:write:notes\" = { max_uses = 0 }\n",
			[]string{"notes lease_expired override:notes.toml"},
			"",
		},
		{
			"refused", "[security]\nconfirm_external_actions = true\nconfirm = \"refuse\"\n", "",
			[]string{"notes not_confirmed"},
			"",
		},
		{
			"nobody to ask", "[security]\nconfirm_external_actions = true\nconfirm = \"ask\"\n", "",
			[]string{"notes not_confirmed"},
			"",
		},
		{
			"confirmed", "[security]\nconfirm_external_actions = true\nconfirm = \"allow\"\n", "",
			[]string{granted, granted},
			"noted xnoted x",
		},
	} {
		n := newNoting(t, c.settings)
		if c.override != "" {
			write(t, filepath.Join(n.home, "caps", "overrides", "notes.toml"), c.override)
		}
		report, err := n.Launch(t.Context(), launcher.Request{Bundle: n.bundle})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := n.recorded(t, launcher.Filter{Run: report.RunID}); !slices.Equal(got, c.want) {
			t.Errorf("%s: recorded %q, want %q", c.name, got, c.want)
		}
		if report.Stdout != c.printed {
			t.Errorf("%s: %q", c.name, report.Stdout)
		}
	}
}

// An agent that another one launches calls it within what both hold.
//
//rlp:holds D3
func TestADelegateCallsAHostCallOfTheProgram(t *testing.T) {
	n := newNoting(t, "[security]\n")
	write(t, filepath.Join(n.home, "caps", "profiles", "_delegate.toml"),
		"schema_version = \"1.0\"\nname = \"_delegate\"\n[deny]\ncapabilities = []\n")
	launches := calling("runloop_v1", "agent_launch", `{"agent":"notes"}`)
	for asks, want := range map[string][]string{
		"agents = [\"notes\"]\nkb_write = [\"notes\"]":  {"notes granted", "notes granted"},
		"agents = [\"notes\"]\nkb_write = [\"drafts\"]": {"notes cap_missing parent:boss"},
	} {
		boss := n.agent(t, "boss", launches, asks)
		report, err := n.Launch(t.Context(), launcher.Request{Bundle: boss})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Children) != 1 {
			t.Fatalf("%s: %+v", asks, report)
		}
		if got := n.recorded(t, launcher.Filter{Run: report.Children[0].RunID}); !slices.Equal(got, want) {
			t.Errorf("%s: recorded %q, want %q", asks, got, want)
		}
	}
}

// The linter and explanations know it.
//
//rlp:holds D3
func TestAHostCallOfTheProgramIsLintedAndExplained(t *testing.T) {
	n := newNoting(t, "")
	greedy := n.agent(t, "greedy", calling("acme", "note", "x"), `kb_read = ["notes"]`)
	unknown, err := launcher.Open(launcher.Options{Home: n.home})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		by     *launcher.Launcher
		bundle string
		want   string
	}{
		{n.Launcher, n.bundle, ""},
		{n.Launcher, greedy, "the module imports note, and the policy asks for no kb_write"},
		{unknown, n.bundle, "acme.note"},
	} {
		findings, err := c.by.Lint(c.bundle)
		if err != nil {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(findings, func(f launcher.Finding) bool {
			return (f.Code == "import_not_asked" || f.Code == "module") && (c.want == "" || strings.Contains(f.Message, c.want))
		})
		if found != (c.want != "") {
			t.Errorf("%s: %v", c.want, findings)
		}
	}

	for _, c := range []struct {
		text, deny, want string
	}{
		{"kb:write:notes", "", "allow"},
		{"kb:write:notes", "kb:write:*", "deny caller"},
		{"tools:acme.note", "", "allow"},
		{"tools:acme.note", "tool:call:tools:acme.note", "deny caller"},
	} {
		q := launcher.Request{Bundle: n.bundle}
		if c.deny != "" {
			q.Deny = []string{c.deny}
		}
		why, err := n.Explain(t.Context(), q, launcher.Query{Text: c.text})
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		if got := strings.TrimSpace(why.Decision + " " + why.Layer); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
	}
}
