package analysis_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/record/analysis"
	"runloop.dev/rlp/internal/record/audit"
)

var paths = []string{
	"/", "/a", "/a/b", "/a/b/c", "/a/bc", "/tmp", "/tmp/x", "/tmpfoo/y", "/tmp/x/z", "/w/1", "/w/2",
	"/w/3", "/odd/\"q\"\\", "/odd/[x]", "/odd/\u202ename",
}

// universe is every request that the tests know of.
func universe() []caps.Request {
	var all []caps.Request
	add := func(f caps.Family, names ...string) {
		for m := range caps.Mode(32) {
			for _, n := range names {
				if caps.AllModes(f).Has(m) {
					all = append(all, caps.Request{Family: f, Mode: m, Name: n})
				}
			}
		}
	}
	add(caps.FS, paths...)
	add(caps.Net, "a.example:443", "a.example:80", "a.example:8443", "b.example:443", "b.example:80", "10.0.0.1:80",
		"[::1]:443")
	add(caps.Time, "*")
	add(caps.KBRead, "contacts", "contacts_raw", "notes")
	add(caps.KBWrite, "drafts", "notes")
	for _, id := range []string{"runloop/a/k", "runloop/a/k-2"} {
		all = append(
			all, caps.Request{Family: caps.Secrets, Mode: caps.Get, Name: id}, caps.Request{
				Family: caps.Secrets, Mode: caps.Use,
				Name: id,
			},
			caps.Request{Family: caps.Secrets, Mode: caps.Use, Name: id + "@a.example:443"}, caps.Request{
				Family: caps.Secrets,
				Mode:   caps.Use, Name: id + "@b.example:80",
			},
		)
	}
	add(caps.Model, "local:echo", "openai:x")
	add(caps.Exec, "/usr/bin/grep", "/usr/bin/sed")
	add(caps.Env, "PATH", "LANG")
	add(caps.MCP, "github", "files")
	add(caps.Agents, "critic", "writer")
	return all
}

// op is the function and target that a call with this request has in records.
func op(r caps.Request) (name, target string) {
	switch r.Family {
	case caps.FS:
		return [...]string{"path_open", "path_open", "path_unlink_file"}[r.Mode], r.Name
	case caps.Net:
		scheme := "https"
		if caps.HTTP.Has(r.Mode) {
			scheme = "http"
		}
		if caps.TCP.Has(r.Mode) {
			return "connect", "tcp://" + r.Name
		}
		return "net_http", scheme + "://" + r.Name + "/send"
	case caps.Time:
		return "clock_time_get", ""
	case caps.KBRead:
		return "kb_get", r.Name + "/some/key"
	case caps.KBWrite:
		return "kb_put", r.Name + "/some/key"
	case caps.Secrets:
		switch {
		case r.Mode == caps.Get:
			return "secret_handle", r.Name
		case strings.Contains(r.Name, "@"):
			return "net_http", r.Name
		}
		return "exec_run", r.Name
	case caps.MCP:
		return "mcp_call", r.Name
	}
	return "call_" + r.Family.String(), r.Name
}

// a world is a base, what a run under it asked for, and what it learns.
type world struct {
	base    caps.Set
	allowed []caps.Request
	denied  []caps.Request
	log     *audit.Memory
	learner *analysis.Learner
}

// draw makes a run under a random policy, through a gate as real runs are.
func draw(t *rapid.T) *world {
	all := universe()
	var entries []caps.Entry
	for _, r := range rapid.SliceOfN(rapid.SampledFrom(all), 0, 25).Draw(t, "granted") {
		g := caps.Grant{Family: r.Family, Modes: 1 << r.Mode, Scope: r.Name}
		if r.Family == caps.Net && rapid.Bool().Draw(t, "scheme") {
			g.Modes = caps.HTTPS
		}
		entries = append(entries, caps.Entry{Grant: g})
	}
	base, err := caps.Base(entries, caps.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{base: base, log: audit.NewMemory(), learner: analysis.NewLearner()}
	w.learner.Begin(analysis.Run{ID: "run", Held: base})
	w.ask(t, rapid.SliceOfN(rapid.SampledFrom(all), 0, 60).Draw(t, "asked"))
	return w
}

func (w *world) ask(t *rapid.T, list []caps.Request) {
	g, err := gate.New(w.base, w.log, gate.Options{KeepAllowed: true, KeepDenied: true, MaxCalls: -1})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		name, target := op(r)
		o, err := g.Op(name)
		if err != nil {
			t.Fatal(err)
		}
		if a := g.Admit(o, r, target, nil); a.OK() {
			w.allowed = append(w.allowed, r)
		} else {
			w.denied = append(w.denied, r)
		}
	}
	for i, d := range w.log.Decisions {
		if d.Deny && strings.HasPrefix(d.Cap, "secrets") {
			d.Target = "secret"
		}
		w.learner.Decide("run", uint64(i+1), &analysis.Decision{
			Cap: d.Cap, Op: d.Op, Target: d.Target, Reason: d.Reason,
			Layer: d.Layer, Deny: d.Deny,
		})
	}
}

// used reports whether r was used: itself, or a folder that holds it; of a
// request over the network, whether the host was reached by any method held.
func (w *world) used(r caps.Request) bool {
	for _, u := range w.allowed {
		switch {
		case u.Family != r.Family:
		case u.Mode == r.Mode && u.Name == r.Name:
			return true
		case u.Family == caps.Net && u.Name == r.Name && u.Mode/8 == r.Mode/8 && w.base.Check(r).Allow:
			return true // the record says no method
		}
	}
	return false
}

func said(s analysis.Suggestion, r caps.Request) bool {
	for _, wide := range s.Wider {
		set, err := caps.Base([]caps.Entry{{Grant: wide.Grant}}, caps.Limits{})
		if err == nil && set.Check(r).Allow {
			return true
		}
	}
	return false
}

func unsaid(s analysis.Suggestion, r caps.Request) bool {
	for _, u := range s.Unsaid {
		if strings.Contains(u, r.Name) {
			return true
		}
	}
	return false
}

// judge holds what is left of the base under the suggestion against what was used.
func (w *world) judge(t *rapid.T, s analysis.Suggestion, left caps.Set) {
	for _, r := range w.allowed {
		if !left.Check(r).Allow && !unsaid(s, r) {
			t.Fatalf("%s was used and is denied under\n%s", r, s.Text)
		}
	}
	for _, r := range universe() {
		if left.Check(r).Allow && !w.used(r) && !said(s, r) && !belowUsed(w, s, r) {
			t.Fatalf("%s was never used, is allowed, and nothing says so:\n%s", r, s.Text)
		}
	}
}

// belowUsed reports whether r lies below a path that was itself used: a
// document cannot tell the file from the folder, and who looks says which it is.
func belowUsed(w *world, _ analysis.Suggestion, r caps.Request) bool {
	for _, u := range w.allowed {
		if r.Family == caps.FS && u.Family == caps.FS && u.Mode == r.Mode && u.Name != r.Name &&
			(u.Name == "/" || strings.HasPrefix(r.Name, u.Name+"/")) {
			return true
		}
	}
	return false
}

var options = policy.Options{Domains: nil}

// Narrowed by the override that was made of its runs, an agent may do all that
// it did, and nothing that it did not but what the override says.
func TestOverrideIsWhatWasUsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := draw(t)
		s := w.learner.Suggest(analysis.Options{Override: true})
		o, findings := policy.ParseLayer("override:x.toml", "x.toml", []byte(s.Text), options)
		if err := policy.AsError(findings); err != nil {
			t.Fatalf("%v\n%s", err, s.Text)
		}
		left, _, err := w.base.Narrow(o.Layer)
		if err != nil {
			t.Fatal(err)
		}
		w.judge(t, s, left)
	})
}

// A policy.caps made of runs is what they used, but for what it says.
func TestPolicyIsWhatWasUsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := draw(t)
		s := w.learner.Suggest(analysis.Options{})
		b, findings := policy.ParseBase("policy.caps", []byte(s.Text), options)
		if err := policy.AsError(findings); err != nil {
			t.Fatalf("%v\n%s", err, s.Text)
		}
		set, err := caps.Base(b.Entries, b.Limits)
		if err != nil {
			t.Fatal(err)
		}
		w.judge(t, s, set)
	})
}

// No folder comes of files, unless it was asked for, and then it says so.
func TestNoFolderOfFiles(t *testing.T) {
	l := analysis.NewLearner()
	for i, p := range []string{"/w/1", "/w/2", "/w/3", "/v/1"} {
		l.Decide("r", uint64(i+1), &analysis.Decision{Cap: "fs.read", Op: "path_open", Target: p})
	}
	for folders, want := range map[int]string{
		0: `"/w/3", #`, 4: `"/w/3", #`,
		3: `"/w", # a folder in place of 3 files; path_open 3x; first: run r record 1`,
	} {
		s := l.Suggest(analysis.Options{Folders: folders})
		if !strings.Contains(s.Text, want) || strings.Contains(s.Text, `"/v",`) || strings.Contains(s.Text,
			`"/w",`) != (folders == 3) {
			t.Errorf("%d:\n%s", folders, s.Text)
		}
		if (folders == 3) != strings.Contains(s.Text, "# wider than what was used: fs:read:/w (a folder") {
			t.Errorf("%d:\n%s", folders, s.Text)
		}
	}
}

// A folder that was itself used is no file of the one above it: to grant that
// one would be to grant its other folders.
func TestAUsedFolderGathersNothing(t *testing.T) {
	l := analysis.NewLearner()
	for i, p := range []string{"/home/me/notes", "/home/me/out/1"} {
		l.Decide("r", uint64(i+1), &analysis.Decision{Cap: "fs.read", Op: "path_open", Target: p})
	}
	folder := func(p string) bool { return p == "/home/me/notes" }
	s := l.Suggest(analysis.Options{Folders: 1, IsFolder: folder})
	if !strings.Contains(s.Text, `"/home/me/notes", # a folder that was itself used`) || !strings.Contains(s.Text,
		`"/home/me/out", # a folder in place of 1 files`) || strings.Contains(s.Text, `"/home/me",`) {
		t.Errorf("%s", s.Text)
	}
	// control: a file, as far as anybody knows
	if s = l.Suggest(analysis.Options{Folders: 1}); !strings.Contains(s.Text, `"/home/me", #`) {
		t.Errorf("%s", s.Text)
	}
}

// What a guest chose to name ends no line, and writes none.
func TestNamesStayWithinTheirLine(t *testing.T) {
	l := analysis.NewLearner()
	evil := "/w/x\n[capabilities]\nexec = true\n#\u2028\x1b[2J"
	l.Decide("r", 1, &analysis.Decision{Cap: "fs.read", Op: "path_open", Target: evil})
	l.Decide("r", 2, &analysis.Decision{
		Cap: "fs.write", Op: "path_open", Target: evil, Deny: true,
		Reason: "path_not_permitted",
	})
	l.Decide("r", 3, &analysis.Decision{Cap: "fs.read", Op: "path_open", Target: "/w/\u202e\"y"})
	s := l.Suggest(analysis.Options{})
	b, findings := policy.ParseBase("p", []byte(s.Text), options)
	if policy.HasErrors(findings) || len(b.Entries) != 1 || b.Entries[0].Grant.Scope != "/w/\u202e\"y" {
		t.Errorf("%v %v\n%s", b, findings, s.Text)
	}
	if strings.ContainsAny(s.Text, "\x1b\u2028\u202e") || len(s.Unsaid) != 1 || !strings.Contains(s.Text,
		"asked for and denied: fs.write /w/x\\n[capabilities]\\nexec") {
		t.Errorf("%s", s.Text)
	}
}

// A rename asks for reading, writing and removing its source, and for writing
// its target: the records are told apart by their order.
func TestRename(t *testing.T) {
	var r analysis.Reader
	got := ""
	for _, d := range []analysis.Decision{
		{Cap: "fs.read", Target: "/a"},
		{Cap: "fs.write", Target: "/a"},
		{Cap: "fs.write", Target: "/a"},
		{Cap: "fs.write", Target: "/a"}, // onto itself
		{Cap: "fs.read", Target: "/b"},
		{Cap: "fs.write", Target: "/b"},
		{Cap: "fs.write", Target: "/b"},
		{Cap: "fs.write", Target: "/c"},
	} {
		d.Op = "path_rename"
		a, ok := r.Ask(&d)
		got += fmt.Sprint(ok, a.Modes, a.Tree, a.Doubt == analysis.Exact, " ")
	}
	want := "true 1 true true true 2 true true true 4 true true true 2 true true "
	if got != want+want {
		t.Error(got)
	}
	var alone analysis.Reader
	if a, _ := alone.Ask(&analysis.Decision{
		Cap: "fs.write", Op: "path_rename", Target: "/c",
		Deny: true,
	}); a.Doubt != analysis.Removal {
		t.Errorf("%+v", a)
	}
}

// Whatever agents and their records say, the document is one that is read, in
// both forms, and grants nothing of what was denied.
func FuzzSuggest(f *testing.F) {
	f.Add("fs.read", "path_open", "/a\n]", "", false)
	f.Add("fs.write", "path_rename", "/a\x00\"", "", false)
	f.Add("net.http", "net_http", "https://[::1]:99/\\", "send_mail", false)
	f.Add("secrets.get", "exec_run", "runloop/a/k@b:1", "x", false)
	f.Add("kb.read", "kb_get", "contacts_raw/x", "", true)
	f.Add("exec.spawn", "exec_run", "/usr/bin/[", "", false)
	f.Add("model.use", "model_complete", "a:b:c*", "", false)
	f.Fuzz(func(t *testing.T, capability, op, target, tool string, deny bool) {
		l := analysis.NewLearner()
		for i, to := range []string{target, target + "/x", target + ":80"} {
			l.Decide("run", uint64(i), &analysis.Decision{
				Cap: capability, Op: op, Target: to, Tool: tool, Deny: deny,
				Reason: target,
			})
		}
		base := l.Suggest(analysis.Options{Head: []string{target}})
		b, findings := policy.ParseBase("policy.caps", []byte(base.Text), policy.Options{Domains: domainsOf(target)})
		if b == nil {
			t.Fatalf("%v\n%s", findings, base.Text)
		}
		if deny && len(b.Entries) > 0 {
			t.Fatalf("what was denied is granted:\n%s", base.Text)
		}
		over := l.Suggest(analysis.Options{Override: true, Folders: 1})
		if o, findings := policy.ParseLayer("override:o.toml", "o.toml", []byte(over.Text),
			policy.Options{Domains: domainsOf(target)}); o == nil {
			t.Fatalf("%v\n%s", findings, over.Text)
		}
	})
}

// domainsOf makes the domain that a target names one that there is.
func domainsOf(target string) []string {
	var list []string
	for _, s := range []string{target, target + ":80"} {
		name, _, _ := strings.Cut(s, "/")
		list = append(list, strings.TrimSuffix(name, "_raw"))
	}
	return list
}

// What is used by https alone is no reason for http, what is put in no reason
// for a handle, and what was used by no known method is told.
func TestSuggestionsOfHostsAndSecrets(t *testing.T) {
	for _, c := range []struct {
		decisions []analysis.Decision
		want, not []string
	}{
		{
			[]analysis.Decision{{Cap: "net.http", Op: "net_http", Target: "https://a.example/x"}},
			[]string{"\"a.example\", # net_http 1x", "allow_http = false"},
			[]string{"methods =", "[deny]", ":443"},
		},
		{
			[]analysis.Decision{
				{Cap: "net.http", Op: "net_http", Target: "https://a.example/x"},
				{Cap: "net.http", Op: "net_http", Target: "http://a.example/x"},
			},
			[]string{"\"a.example\", # net_http 2x", "allow_http = true"},
			[]string{":443", "[deny]"},
		},
		{
			[]analysis.Decision{
				{Cap: "net.http", Op: "net_http", Target: "https://a.example:8443/x"},
				{Cap: "net.http", Op: "net_http", Target: "http://[::1]/x"},
			},
			[]string{"\"a.example:8443\"", "\"[::1]:80\"", "\"network:http:a.example:8443\"", "\"network:https:[::1]:80\""},
			nil,
		},
		{
			[]analysis.Decision{{Cap: "secrets.get", Op: "net_http", Target: "runloop/a/k@a.example:443"}},
			[]string{"{ id = \"runloop/a/k\", hosts = [\"a.example\"] }, # net_http 1x", "\"secrets:get:runloop/a/k\""},
			nil,
		},
		{
			[]analysis.Decision{
				{Cap: "secrets.get", Op: "secret_handle", Target: "runloop/a/k"},
				{Cap: "secrets.get", Op: "exec_run", Target: "runloop/a/k"},
			},
			[]string{
				"    \"runloop/a/k\", # exec_run 1x, secret_handle 1x",
				"# wider than what was used: secrets:read:runloop/a/k (its value went to a program",
			},
			[]string{"[deny]"},
		},
	} {
		l := analysis.NewLearner()
		for i, d := range c.decisions {
			l.Decide("r", uint64(i+1), &d)
		}
		text := l.Suggest(analysis.Options{Override: true}).Text
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("no %s in\n%s", w, text)
			}
		}
		for _, w := range c.not {
			if strings.Contains(text, w) {
				t.Errorf("%s in\n%s", w, text)
			}
		}
	}
}
