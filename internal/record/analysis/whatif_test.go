package analysis_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/record/analysis"
)

// under is everything there is, narrowed by a document.
func under(t interface{ Fatalf(string, ...any) }, text string) caps.Set {
	o, findings := policy.ParseLayer("override:o.toml", "o.toml", []byte(text), options)
	if err := policy.AsError(findings); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	set, err := caps.Base(analysis.Everything([]string{"contacts"}), caps.Limits{})
	if err != nil {
		t.Fatalf("%v", err)
	}
	if set, _, err = set.Narrow(o.Layer); err != nil {
		t.Fatalf("%v", err)
	}
	return set
}

// What a candidate would have blocked is what is denied once it is applied: a
// run under base and candidate, through a gate, is refused exactly that.
//
//rlp:holds P6
func TestWhatIfIsWhatWouldBe(t *testing.T) {
	candidates := []string{
		"[deny]\ncapabilities = [\"fs:write:/a\"]\n",
		"[capabilities]\nfs = [\"/a\"]\n",
		"[capabilities]\nfs = [\"/a/b\", \"/tmp\"]\nfs_rw = [\"/tmp/x\"]\nkb_read = true\n",
		"[capabilities]\nnet = [\"a.example\"]\nsecrets = [\"runloop/a/k\"]\n",
		"schema = \"0.2\"\n[capabilities]\nexec = [\"/usr/bin/grep\"]\nmodel = [\"openai:*\"]\nsecrets = [{ id = " +
			"\"runloop/a/k\", hosts = [\"a.example\"] }]\n",
		"[capabilities]\nkb_read = [\"contacts\"]\nkb_write = false\ntime = false\nenv = []\nmcp = [\"files\"]\nagents = []\n",
		"[capabilities.net]\nallow_http = false\n",
	}
	rapid.Check(t, func(t *rapid.T) {
		w := draw(t)
		set := under(t, rapid.SampledFrom(candidates).Draw(t, "candidate"))
		f := analysis.New(set)
		f.Begin(analysis.Run{ID: "run", Held: w.base})
		var stays, blocked, depends int64
		for i, d := range w.log.Decisions {
			r := analysis.Record{Run: "run", Seq: uint64(i + 1), RunSeq: uint64(i + 1), Decision: analysis.Decision{
				Cap: d.Cap,
				Op:  d.Op, Target: d.Target, Reason: d.Reason, Deny: d.Deny,
			}}
			switch f.Decide(&r) {
			case analysis.Stays:
				stays++
			case analysis.Blocked:
				blocked++
			case analysis.Depends:
				depends++
			}
		}
		now := int64(0)
		for _, r := range w.allowed {
			if set.Check(r).Allow {
				now++
			}
		}
		if total := int64(len(w.allowed)); stays+blocked+depends != total || stays > now || blocked > total-now {
			t.Fatalf("%d stay, %d blocked, %d depend; really %d of %d stay", stays, blocked, depends, now, total)
		}
		if got := f.Forecast(); got.Stays != stays || got.Blocked != blocked || got.Depends != depends {
			t.Fatalf("%+v", got)
		}
	})
}

// Each request that would be refused is told once, with the line that would.
func TestWhatIfNamesTheLine(t *testing.T) {
	f := analysis.New(under(t, "[limits]\nwall_time_ms = 10\n[capabilities]\nnet = { hosts = [\"b.example\"], "+
		"allow_http = true }\n[deny]\ncapabilities = [\n\"fs:delete:/out\", \"fs:write:/in/deep\"]\n"))
	post, _ := caps.Base([]caps.Entry{{Grant: caps.Grant{Family: caps.Net, Modes: caps.HTTPS, Scope: "a.example:443"}}},
		caps.Limits{})
	f.Begin(analysis.Run{ID: "r", Held: post})
	for i, d := range []analysis.Decision{
		{Cap: "fs.write", Op: "path_open", Target: "/out/x"},
		{Cap: "fs.write", Op: "path_unlink_file", Target: "/out/x"},
		{Cap: "fs.write", Op: "path_unlink_file", Target: "/out/x"},
		{Cap: "net.http", Op: "net_http", Target: "https://a.example/send"},
		{Cap: "net.http", Op: "net_http", Target: "https://b.example/"},
		{Cap: "fs.read", Op: "path_rename", Target: "/in"}, // what lies below it moves too
		{Cap: "fs.write", Op: "path_rename", Target: "/in"},
		{Cap: "fs.read", Op: "path_open", Target: "/\uFFFD"},
		{Cap: "fs.write", Op: "path_open", Target: "/etc/passwd", Deny: true, Reason: "path_not_permitted"},
		{Cap: "caps.empty", Op: "_start", Deny: true},
	} {
		f.Decide(&analysis.Record{Run: "r", Seq: uint64(i + 100), RunSeq: uint64(i + 1), Decision: d})
	}
	f.End("r", map[string]int64{"wall_ms": 11, "hostcalls": 5})
	got := f.Forecast()
	text := ""
	for _, b := range got.Blocks {
		text += fmt.Sprintln(b.Verdict, b.Cap, b.Op, b.Target, b.Count, b.Runs, b.Seq, b.Layer, b.Pos,
			b.Doubt != analysis.Exact)
	}
	want := "1 fs.write path_unlink_file /out/x 2 1 101 override:o.toml o.toml:7:1 false\n" +
		"1 net.http net_http https://a.example/send 1 1 103 override:o.toml o.toml:4:7 false\n" +
		"1 fs.write path_rename /in 1 1 106 override:o.toml o.toml:7:19 false\n" +
		"2 fs.read path_open /\uFFFD 1 1 107   true\n"
	if text != want || got.Stays != 3 || got.Blocked != 4 || got.Depends != 1 || got.Denied != 1 || got.NoAsk != 1 ||
		got.RunsBlocked != 1 {
		t.Errorf("%s\n%s\n%+v", text, want, got)
	}
	if len(got.Passed) != 1 || got.Passed[0] != (analysis.Passed{Run: "r", Limit: caps.WallTimeMS, Used: 11, Most: 10}) {
		t.Errorf("%+v", got.Passed)
	}
}

// A method that no record names is considered by what the run held.
func TestWhatIfDependsOnTheMethod(t *testing.T) {
	set := under(t, "schema = \"0.2\"\n[capabilities.net]\nhosts = [\"a.example\"]\nmethods = [\"GET\"]\n")
	for modes, want := range map[caps.ModeSet]analysis.Verdict{
		0x01: analysis.Stays, 0x04: analysis.Blocked,
		0x05: analysis.Depends, 0xff: analysis.Depends,
	} {
		held, err := caps.Base([]caps.Entry{{Grant: caps.Grant{Family: caps.Net, Modes: modes, Scope: "a.example:443"}}},
			caps.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		f := analysis.New(set)
		f.Begin(analysis.Run{ID: "r", Held: held})
		d := analysis.Decision{Cap: "net.http", Op: "net_http", Target: "https://a.example/"}
		if got := f.Decide(&analysis.Record{Run: "r", Decision: d}); got != want {
			t.Errorf("%x: %v, want %v", modes, got, want)
		}
		if b := f.Forecast().Blocks; want == analysis.Depends && !strings.Contains(b[0].Doubt.String(),
			"depends on the method") {
			t.Errorf("%+v", b[0])
		}
	}
}

// A tool that a candidate takes away is refused whatever it touches.
func TestWhatIfTools(t *testing.T) {
	f := analysis.New(under(t, "[deny]\ntools = [\"kb_delete\", \"mcp:github/search\", \"send_mail\"]\ncapabilities = "+
		"[\"fs:delete:/out\"]\n"))
	for i, c := range []struct {
		d    analysis.Decision
		want analysis.Verdict
	}{
		{analysis.Decision{Cap: "kb.write", Op: "kb_delete", Target: "notes/k"}, analysis.Blocked},
		{analysis.Decision{Cap: "kb.write", Op: "kb_put", Target: "notes/k"}, analysis.Stays},
		{
			analysis.Decision{Cap: "mcp.call", Op: "mcp_call", Target: "github/search", Tool: "mcp:github/search"},
			analysis.Blocked,
		},
		{
			analysis.Decision{Cap: "net.http", Op: "mcp_call", Target: "api.example.com:443", Tool: "send_mail"},
			analysis.Blocked,
		},
		{analysis.Decision{Cap: "net.http", Op: "mcp_call", Target: "api.example.com:443", Tool: "weather"}, analysis.Stays},
		{analysis.Decision{Cap: "secrets.get", Op: "mcp_call", Target: "runloop/a/k", Tool: "weather"}, analysis.Stays},
		{analysis.Decision{Cap: "fs.write", Op: "mcp_call", Target: "/out", Tool: "weather"}, analysis.Depends},
		{analysis.Decision{Cap: "mcp.call", Op: "mcp_call", Target: "github/read", Tool: "mcp:github/read"}, analysis.Stays},
	} {
		if got := f.Decide(&analysis.Record{Run: "r", Seq: uint64(i), Decision: c.d}); got != c.want {
			t.Errorf("%+v: %v", c.d, got)
		}
	}
}

// What one run held says nothing of another.
func TestWhatIfKeepsRunsApart(t *testing.T) {
	f := analysis.New(under(t, "schema = \"0.2\"\n[capabilities.net]\nhosts = [\"a.example\"]\nmethods = [\"GET\"]\n"))
	d := analysis.Decision{Cap: "net.http", Op: "net_http", Target: "https://a.example/"}
	for run, c := range map[string]struct {
		modes caps.ModeSet
		want  analysis.Verdict
	}{"get": {0x01, analysis.Stays}, "post": {0x04, analysis.Blocked}, "both": {0x05, analysis.Depends}} {
		held, err := caps.Base([]caps.Entry{{Grant: caps.Grant{Family: caps.Net, Modes: c.modes, Scope: "a.example:443"}}},
			caps.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		f.Begin(analysis.Run{ID: run, Held: held})
		for range 2 {
			if got := f.Decide(&analysis.Record{Run: run, Decision: d}); got != c.want {
				t.Errorf("%s: %v", run, got)
			}
		}
	}
}
