package ask

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/launcher/run"
)

var (
	basePolicies = []string{
		"[capabilities]\nfs = [\"/in\"]\nfs_rw = [\"/out\"]\nkb_write = [\"notes\", \"drafts\"]\n",
		"schema = \"0.2\"\n[capabilities]\nnet = { hosts = [\"a.example\", \"*.b.example\"], allow_http = true }\nsecrets " +
			"= [{ id = \"runloop/a/k\", hosts = [\"a.example\"] }]\nexec = true\n",
		"[capabilities]\nkb_read = true\ntime = true\nmodel = true\nagents = [\"critic\"]\n",
		"[capabilities]\n",
	}
	layerPolicies = []string{
		"[capabilities]\nfs = []\nkb_write = [\"notes\"]\n",
		"[capabilities]\nfs_rw = [\"/out/deep\"]\n[deny]\ncapabilities = [\"fs:write:/out\", \"fs:*:/out/deep/x\", " +
			"\"kb:*:*\"]\n",
		"schema = \"0.2\"\n[capabilities.net]\nhosts = [\"a.example\"]\nmethods = [\"GET\"]\nallow_http = false\n",
		"[capabilities]\nsecrets = []\nexec = false\ntime = false\nmodel = false\nagents = []\n[deny]\ncapabilities = " +
			"[\"net:a.example\", \"*:*:*\"]\n",
		"[deny]\ntiers = [\"local_state\", \"network\"]\neffects = [\"io\"]\ntools = [\"kb_put\", \"web:*\"]\n",
		"[tools]\nallow = [\"file:*\"]\n[visible]\ncategories = [\"memory\"]\n",
	}
	editRequests = []string{
		"/in/x", "/out/x --write", "/out/deep/x/y --delete", "/etc/passwd", "https://a.example/ GET",
		"https://a.example/ POST", "http://a.example:80/ GET", "https://x.b.example/",
		"kb_put notes", "kb_read contacts", "kb_read contacts_raw", "secrets runloop/a/k@a.example:443", "time",
		"model local:echo", "exec /usr/bin/grep", "agents critic", "exec_run", "net_http",
	}
)

func drawPolicy(t *rapid.T) run.Policy {
	opt := policy.Options{}
	b, findings := policy.ParseBase("policy.caps", []byte(rapid.SampledFrom(basePolicies).Draw(t, "base")), opt)
	if b == nil {
		t.Fatal(findings)
	}
	p := run.Policy{Base: b.Entries}
	for i, text := range rapid.SliceOfN(rapid.SampledFrom(layerPolicies), 0, 4).Draw(t, "layers") {
		name := fmt.Sprintf("o%d.toml", i)
		o, findings := policy.ParseLayer("override:"+name, name, []byte(text), opt)
		if o == nil {
			t.Fatal(findings)
		}
		p.Layers = append(p.Layers, o.Layer)
	}
	return p
}

// Whatever refuses, the edits that are named turn the decision round: they were
// made, and the plan decided again. Of what is allowed, one line takes it away.
// The policy that was asked about stays as it was.
func TestEditsTurnTheDecisionRound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		text := rapid.SampledFrom(editRequests).Draw(t, "request")
		q := Query{Write: strings.HasSuffix(text, " --write"), Remove: strings.HasSuffix(text, " --delete")}
		if words := strings.Fields(text); strings.Contains(words[0], "://") && len(words) == 2 {
			q.Method, text = words[1], words[0]
		}
		q.Text = strings.TrimSuffix(strings.TrimSuffix(text, " --write"), " --delete")
		requests, err := q.requests()
		if err != nil {
			t.Fatal(err)
		}
		before, err := run.NewPlan(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range requests {
			edits, verified := decision{
				of: &Subject{Override: "own.toml"}, policy: p, request: r, shown: r,
				modes: togetherModes(requests, r),
			}.edits()
			if len(edits) == 0 || !verified {
				t.Fatalf("%s (%v): %v, %+v", r, before.Effective.Check(r), verified, edits)
			}
			allowed := before.Effective.Check(r).Allow
			for _, e := range edits {
				if e.Text == "" || e.Do == "nothing" || allowed != (e.Layer == "override") {
					t.Fatalf("%s: %+v", r, e)
				}
			}
		}
		after, err := run.NewPlan(p)
		if err != nil || after.Effective.Digest() != before.Effective.Digest() {
			t.Fatalf("the policy is another one now: %v", err)
		}
	})
}

// What nobody wrote nobody can edit.
func TestNothingEditsWhatIsBuiltIn(t *testing.T) {
	p := run.Policy{
		Base: []caps.Entry{
			{Grant: caps.Grant{Family: caps.FS, Modes: 7, Scope: "/"}},
			{Grant: caps.Grant{Family: caps.KBWrite, Modes: 1, Scope: "notes"}},
		},
		Layers: []*caps.Layer{
			policy.Protected("/home/u/.runloop", policy.DefaultTenant),
			policy.BuiltinFloor(policy.Untrusted),
		},
	}
	for r, want := range map[caps.Request]string{
		{Family: caps.FS, Name: "/proc/self/mem"}:                   "built-in protection: nothing can",
		{Family: caps.FS, Name: "/home/u/.runloop/config.toml"}:     "built-in protection: nothing can",
		{Family: caps.KBWrite, Name: "notes"}:                       "the run has seen content from outside",
		{Family: caps.FS, Mode: caps.Write, Name: "/dev/sda"}:       "built-in protection: nothing can",
		{Family: caps.Exec, Name: "/usr/bin/grep"}:                  "the run has seen content from outside",
		{Family: caps.Secrets, Mode: caps.Get, Name: "runloop/a/k"}: "the run has seen content from outside",
	} {
		edits, _ := decision{
			of: &Subject{Override: "own.toml"}, policy: p, request: r, shown: r,
			modes: caps.Modes(r.Mode),
		}.edits()
		if len(edits) != 1 || edits[0].Do != "nothing" || !strings.HasPrefix(edits[0].Text, want) {
			t.Errorf("%s: %+v", r, edits)
		}
	}
}
