package ask

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/record/analysis"
	"runloop.dev/rlp/launcher/run"
)

// An edit is told in the words of the file that it is of, and whoever makes it
// has what was asked: after is the file with what the words say, and nothing
// else, done.
func TestEditsSpeakTheWordsOfTheFile(t *testing.T) {
	const v02 = "schema = \"0.2\"\n"
	for _, c := range []struct{ before, request, words, after string }{
		{
			"[deny]\ntiers = [\"local_state\", \"network\"]\n", "kb_write notes", `remove from line 2 of F: "local_state"`,
			"[deny]\ntiers = [\"network\"]\n",
		},
		{
			"[deny]\neffects = [\"io-write\"]\n", "kb_write notes", `remove from line 2 of F: "io-write"`,
			"[deny]\neffects = []\n",
		},
		{"[deny]\ntools = [\"kb_put\"]\n", "kb_put notes", `remove from line 2 of F: "kb_put"`, "[deny]\ntools = []\n"},
		{
			"[deny]\ncapabilities = [\"kb:*:notes\"]\n", "kb_write notes", `remove from line 2 of F: "kb:*:notes"`,
			"[deny]\ncapabilities = []\n",
		},
		{
			"[tools]\nallow = [\"kb_get\"]\n", "kb_put notes",
			`add to line 2 of F, in the list that is there: allow = ["memory:kb_put"]`,
			"[tools]\nallow = [\"kb_get\", \"memory:kb_put\"]\n",
		},
		{
			"[visible]\ncategories = [\"file\"]\n", "kb_put notes",
			`add to line 2 of F, in the list that is there: categories = ["memory"]`,
			"[visible]\ncategories = [\"file\", \"memory\"]\n",
		},
		{
			"[constraints.kb]\ntables = [\"drafts\"]\n", "kb_write notes",
			`add to line 2 of F, in the list that is there: tables = ["notes"]`,
			"[constraints.kb]\ntables = [\"drafts\", \"notes\"]\n",
		},
		{
			"[constraints.net]\nhosts = [\"b.example\"]\n", "https://a.example/",
			`add to line 1 of F, in the list that is there: hosts = ["a.example"]`,
			"[constraints.net]\nhosts = [\"b.example\", \"a.example\"]\n",
		},
		{
			v02 + "[capabilities]\nnet = { hosts = [\"a.example\"], methods = [\"POST\"] }\n", "https://a.example/ GET",
			`add to line 3 of F, in the list that is there: methods = ["GET"]`,
			v02 + "[capabilities]\nnet = { hosts = [\"a.example\"], methods = [\"POST\", \"GET\"] }\n",
		},
		{
			v02 + "[capabilities.net]\nhosts = [\"b.example\"]\nmethods = [\"POST\"]\n", "https://a.example/ GET",
			`add to line 2 of F, in the list that is there: hosts = ["a.example"], methods = ["GET"]`,
			v02 + "[capabilities.net]\nhosts = [\"b.example\", \"a.example\"]\nmethods = [\"POST\", \"GET\"]\n",
		},
		{
			"[capabilities]\nkb_write = false\n", "kb_write notes",
			`write on line 2 of F, in place of what it says: kb_write = ["notes"]`, "[capabilities]\nkb_write = [\"notes\"]\n",
		},
		{
			"[capabilities]\ntime = false\n", "time", `write on line 2 of F, in place of what it says: time = true`,
			"[capabilities]\ntime = true\n",
		},
		{
			"[capabilities]\nexec = false\n", "exec /usr/bin/grep",
			`write on line 2 of F, in place of what it says: exec = true`, "[capabilities]\nexec = true\n",
		},
		{
			v02 + "[capabilities]\nexec = false\n", "exec /usr/bin/grep",
			`write on line 3 of F, in place of what it says: exec = ["/usr/bin/grep"]`,
			v02 + "[capabilities]\nexec = [\"/usr/bin/grep\"]\n",
		},
		{
			`{"allowed_adapters": ["core"]}`, "kb_write notes",
			`add to line 1 of F, in the list that is there: allowed_adapters = ["kb_write"]`,
			`{"allowed_adapters": ["core", "kb_write"]}`,
		},
		{
			`{"forbidden_adapters": ["sqlite"]}`, "kb_write notes", `remove from line 1 of F: "sqlite"`,
			`{"forbidden_adapters": []}`,
		},
		{
			`{"adapter_constraints": {"http": {"allow_hosts": []}}}`, "https://a.example/",
			`add to line 1 of F, in the list that is there: allow_hosts = ["a.example"]`,
			`{"adapter_constraints": {"http": {"allow_hosts": ["a.example"]}}}`,
		},
	} {
		file := filepath.Join(t.TempDir(), "o.toml")
		planOf := func(text string) (run.Policy, run.Plan) {
			t.Helper()
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			o, findings := policy.ParseLayer("override:o.toml", file, []byte(text), policy.Options{})
			if o == nil {
				t.Fatalf("%s: %v", text, findings)
			}
			p := run.Policy{Base: analysis.Everything(nil), Layers: append(p0(), o.Layer)}
			plan, err := run.NewPlan(p)
			if err != nil {
				t.Fatal(err)
			}
			return p, plan
		}
		q := Query{}
		request, method, found := strings.Cut(c.request, " ")
		if !found || !strings.Contains(request, "://") {
			request, method = c.request, ""
		}
		q.Method = method
		q.Text = request
		requests, err := q.requests()
		if err != nil {
			t.Fatal(err)
		}
		p, plan := planOf(c.before)
		refused := false
		for _, r := range requests {
			if plan.Effective.Check(r).Allow {
				continue
			}
			refused = true
			edits, verified := decision{
				of: &Subject{Override: "own.toml"}, policy: p, request: r, shown: r,
				modes: togetherModes(requests, r),
			}.edits()
			if want := strings.ReplaceAll(c.words, " F", " "+file); len(edits) != 1 || !verified || edits[0].Text != want {
				t.Errorf("%s\n%s: %v\n got %+v\nwant %s", c.before, r, verified, edits, want)
			}
		}
		_, plan = planOf(c.after)
		for _, r := range requests {
			if d := plan.Effective.Check(r); !d.Allow || !refused {
				t.Errorf("%s\n%s: refused before: %v, and after the edit %v", c.after, r, refused, d)
			}
		}
	}
}

// p0 are layers that allow all.
func p0() []*caps.Layer { return []*caps.Layer{{Name: "config"}} }
