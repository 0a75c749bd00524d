package hostcalls

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
)

// sourcesOf are the sources that an operator writes: untrusted ones, and after
// "trust:" hosts.
func sourcesOf(t testing.TB, words ...string) Sources {
	t.Helper()
	var untrusted, trusted []caps.Entry
	s := Sources{}
	for _, w := range words {
		if host, ok := strings.CutPrefix(w, "trust:"); ok {
			g, err := caps.ParseTrustedHost(host)
			if err != nil {
				t.Fatal(err)
			}
			trusted = append(trusted, caps.Entry{Grant: g})
			continue
		}
		src, err := caps.ParseSource(w)
		if err != nil {
			t.Fatal(err)
		}
		if src.Word == caps.SourceInput {
			s.Input = true
			continue
		}
		untrusted = append(untrusted, caps.Entry{Grant: src.Grant})
	}
	var err error
	if s.Untrusted, err = caps.Base(untrusted, caps.Limits{}); err == nil {
		s.Trusted, err = caps.Base(trusted, caps.Limits{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// marked wants the run to be marked by cause, "" for not at all.
func (r *rig) marked(what, cause string) {
	r.t.Helper()
	if got, _ := r.gate.Tainted(); got != cause {
		r.t.Errorf("%s: marked by %q, want %q", what, got, cause)
	}
}

// The answer of a host marks the run unless the operator trusts it, by its one
// spelling, over the scheme and at the port that he said; whatever its status.
// Each answer on the way counts. Where nothing answers nothing is marked.
//
//rlp:holds Y27 Y28
func TestAnswersMarkTheRun(t *testing.T) {
	for _, c := range []struct{ url, cause string }{
		{"https://good.example/", ""},
		{"https://GOOD.example./a?b", ""},
		{"https://good.example:443/", ""},
		{"https://a.trusted.org/", ""},
		{"https://good.example/to?url=https://good.example/x", ""},
		{"https://good.example/missing", ""},
		{"http://plain.example/", ""},
		{"http://good.example/", "http:http://good.example/"},
		{"https://plain.example/", "http:https://plain.example/"},
		{"https://good.example:8443/", "http:https://good.example:8443/"},
		{"https://sub.good.example/", "http:https://sub.good.example/"},
		{"https://trusted.org/", "http:https://trusted.org/"},
		{"https://a.b.trusted.org/", "http:https://a.b.trusted.org/"},
		{"https://good.example.evil.example/", "http:https://good.example.evil.example/"},
		{"https://evil.example/good.example?good.example#@good.example", "http:https://evil.example/good.example"},
		{"https://evil.example/missing?key=s3cret", "http:https://evil.example/missing"},
		{"https://evil.example/empty", "http:https://evil.example/empty"},
		{"https://evil.example/broken", "http:https://evil.example/broken"},
		{"https://good.example/to?url=https://evil.example/x", "http:https://evil.example/x"},
		{"https://evil.example/to?url=https://good.example/x", "http:https://evil.example/to"},
		{"https://good.example/to?url=http://good.example/x", "http:http://good.example/x"},
		{"https://evil.example/to?url=https://nobody-may.example/", "http:https://evil.example/to"},
		{"https://good.example/to?url=https://nobody-may.example/", ""}, // refused before anything is asked
		{"https://good.example/to?url=https://gone.example/", ""},
		{"https://me:pw@evil.example/", ""},
		{"https://nobody-may.example/", ""},
		{"https://gone.example/", ""},
	} {
		w := newWorld(t)
		for _, name := range []string{
			"good.example", "plain.example", "evil.example", "sub.good.example", "trusted.org",
			"a.trusted.org", "a.b.trusted.org", "good.example.evil.example",
		} {
			w.name(name, []netip.Addr{publicAddr})
		}
		w.handler = func(rw http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/to":
				rw.Header().Set("Location", r.URL.Query().Get("url"))
				rw.WriteHeader(http.StatusFound)
			case "/missing":
				http.NotFound(rw, r)
			case "/empty":
				rw.WriteHeader(http.StatusNoContent)
			case "/broken":
				rw.Header().Set("Content-Length", "100")
				_, _ = rw.Write([]byte("begun"))
			}
		}
		r := netRig(t, w, "schema = \"0.2\"\n[capabilities]\nnet = { hosts = [\"good.example\", \"good.example:8443\", "+
			"\"*.good.example\", \"plain.example\", \"evil.example\", "+
			"\"trusted.org\", \"*.trusted.org\", \"a.b.trusted.org\", \"good.example.evil.example\", \"gone.example\"], "+
			"allow_http = true }\n")
		r.host.cfg.Sources = sourcesOf(t, "trust:Good.Example", "trust:*.trusted.org", "trust:http://plain.example")
		r.http(map[string]any{"url": c.url}, "")
		r.marked(c.url, c.cause)
		r.gateIsOpen()
	}
}

// gateIsOpen wants every record to have been made.
func (r *rig) gateIsOpen() {
	r.t.Helper()
	if err := r.gate.Err(); err != nil {
		r.t.Error(err)
	}
}

// What cannot be recorded is not shown: the guest gets nothing of an answer
// that would have marked the run.
//
//rlp:holds Y28 R71
func TestNothingIsShownUnmarked(t *testing.T) {
	for room, shown := range map[int]bool{-1: true, 1: false} { // 1: the decision, and no more
		r := newRig(t, "kb:read:notes")
		r.kb["notes/a"] = "orders"
		r.host.cfg.KB = labelledKB{memoryKB: r.kb, untrusted: map[string]bool{"notes/a": true}}
		r.log.Room = room
		stack := []uint64{16, 5, 32, 1, outAt, outRoom}
		copy(r.mem[16:], "notes")
		copy(r.mem[32:], "a")
		err := r.funcs["kb_get"].Call(t.Context(), r.mem, stack)
		if got := strings.Contains(string(r.mem), "orders"); got != shown || (err == nil) != shown {
			t.Errorf("with room for %d records: shown %v, %v", room, got, err)
		}
	}
}

// labelledKB is memoryKB with labels, which remembers why what was changed is
// not to be trusted.
type labelledKB struct {
	memoryKB
	untrusted map[string]bool
	because   map[string]string
}

func (k labelledKB) Get(ctx context.Context, domain, key string) (KBValue, error) {
	v, err := k.memoryKB.Get(ctx, domain, key)
	v.Trusted = !k.untrusted[domain+"/"+key]
	return v, err
}

func (k labelledKB) Put(ctx context.Context, c KBChange) (uint64, error) {
	k.because["put "+c.Domain+"/"+c.Key] = c.Because
	return k.memoryKB.Put(ctx, c)
}

func (k labelledKB) CAS(_ context.Context, c KBChange, revision uint64) (uint64, error) {
	k.because["cas "+c.Domain+"/"+c.Key] = c.Because
	if revision != 1 {
		return 0, &Fail{Errno: Again, Hint: "another"}
	}
	return 2, nil
}

func (k labelledKB) Delete(_ context.Context, c KBChange) error {
	k.because["delete "+c.Domain+"/"+c.Key] = c.Because
	return nil
}

func (k labelledKB) List(ctx context.Context, domain, prefix string) ([]KBEntry, error) {
	list, err := sortedKB{k.memoryKB}.List(ctx, domain, prefix)
	for i := range list {
		list[i].Trusted = !k.untrusted[domain+"/"+list[i].Key]
	}
	return list, err
}

func (k labelledKB) Search(_ context.Context, q KBQuery) ([]KBHit, error) {
	if _, there := k.memoryKB[q.Domain+"/"+q.Text]; !there {
		return nil, nil
	}
	return []KBHit{{Key: q.Text, Score: 1, Snippet: "s", Trusted: !k.untrusted[q.Domain+"/"+q.Text]}}, nil
}

// A value that is not to be trusted marks who reads it, finds it, or is shown
// its key; that there is one does not. What a marked run changes is not to be
// trusted either, for the same reason.
//
//rlp:holds Y28
func TestValuesMarkTheRun(t *testing.T) {
	for _, c := range []struct {
		call  []string
		cause string
	}{
		{[]string{"kb_get", "notes", "good"}, ""},
		{[]string{"kb_get", "notes", "none"}, ""},
		{[]string{"kb_get", "notes", "bad"}, "kb:notes/bad"},
		{[]string{"kb_get", "mail", "good"}, "kb:mail/good"},
		{[]string{"kb_list", "notes", "goo"}, ""},
		{[]string{"kb_list", "notes", "zzz"}, ""},
		{[]string{"kb_list", "notes", ""}, "kb:notes/bad"},
		{[]string{"kb_list", "mail", ""}, "kb:mail/good"},
		{[]string{"kb_search", "notes", `{"text":"good"}`}, ""},
		{[]string{"kb_search", "notes", `{"text":"nothing"}`}, ""},
		{[]string{"kb_search", "notes", `{"text":"bad"}`}, "kb:notes/bad"},
		{[]string{"kb_search", "mail", `{"text":"good"}`}, "kb:mail/good"},
		{[]string{"kb_cas", "notes", "bad", "v", "7"}, ""}, // lost: it says no more than that
		{[]string{"kb_put", "notes", "bad", "v"}, ""},
		{[]string{"kb_delete", "notes", "bad"}, ""},
		{[]string{"kb_get", "drafts", "bad"}, ""}, // denied
	} {
		for _, masks := range []Masks{noMasks{}, nil} {
			grants := []string{"kb:read:notes", "kb:read:mail", "kb:write:notes"}
			if masks == nil {
				grants = append(grants, "kb:read:notes_raw", "kb:read:mail_raw")
			}
			r := newRig(t, grants...)
			r.kb["notes/good"], r.kb["notes/bad"], r.kb["mail/good"] = "x", "y", "z"
			kb := labelledKB{r.kb, map[string]bool{"notes/bad": true}, map[string]string{}}
			r.host.cfg.KB, r.host.cfg.Masks, r.host.cfg.Sources = kb, masks, sourcesOf(t, "kb:mail")
			r.call(c.call[0], c.call[1:]...)
			r.marked(strings.Join(c.call, " "), c.cause)
			for _, because := range kb.because {
				if because != "" {
					t.Errorf("%v: a clean run writes because of %q", c.call, because)
				}
			}
			r.call("kb_put", "notes", "k", "v")
			r.call("kb_cas", "notes", "k", "v", "1")
			r.call("kb_delete", "notes", "k")
			for _, verb := range []string{"put", "cas", "delete"} {
				if got := kb.because[verb+" notes/k"]; got != c.cause {
					t.Errorf("%v: %s because of %q, want %q", c.call, verb, got, c.cause)
				}
			}
		}
	}
}

// What a program prints marks the run only where the operator says so, by the
// program's own file or any name on the way to it.
//
//rlp:holds Y28
func TestOutputMarksTheRun(t *testing.T) {
	for _, c := range []struct{ source, cause string }{
		{"", ""},
		{"exec:/usr/bin/grep", ""},
		{"exec:/usr/bin/dash", "exec:/usr/bin/dash"},
		{"exec:/usr/bin/sh", "exec:/usr/bin/dash"},
		{"exec:/bin/sh", "exec:/usr/bin/dash"},
		{"exec:*", "exec:/usr/bin/dash"},
	} {
		r, f := execRig(t, "process:exec:/usr/bin/dash")
		if c.source != "" {
			r.host.cfg.Sources = sourcesOf(t, c.source)
		}
		r.call(execRunName, `{"argv":["/bin/grep"]}`, "")
		r.marked("denied", "")
		f.err = &Fail{Errno: IO, Hint: "it did not start"}
		r.call(execRunName, `{"argv":["/bin/sh"]}`, "")
		r.marked("failed", "")
		f.err = nil
		r.call(execRunName, `{"argv":["/bin/sh"]}`, "")
		r.marked(c.source, c.cause)
	}
}

// What the agent is given to do marks it where the operator says so.
//
//rlp:holds Y28
func TestInputMarksTheRun(t *testing.T) {
	for source, cause := range map[string]string{"input": "input", "kb:notes": ""} {
		r := newRig(t)
		r.host.cfg.Sources = sourcesOf(t, source)
		if err := r.host.TakeInInput(); err != nil {
			t.Fatal(err)
		}
		r.marked(source, cause)
	}
}

// Whatever a run does and in whatever order, it never holds more than before;
// once it is marked the floor holds to its end, and its first cause is named.
//
//rlp:holds P17 Y31
func TestMarkedRunsOnlyNarrow(t *testing.T) {
	calls := [][]string{
		{"kb_get", "notes", "good"},
		{"kb_get", "notes", "bad"},
		{"kb_list", "notes", ""},
		{"kb_search", "notes", `{"text":"bad"}`},
		{"kb_put", "notes", "good", "v"},
		{"kb_delete", "notes", "bad"},
		{execRunName, `{"argv":["/bin/sh"]}`, ""},
		{execRunName, `{"argv":["/bin/grep"]}`, ""},
		{"time_now"},
		{"turn_next"},
	}
	rapid.Check(t, func(rt *rapid.T) {
		r, _ := execRig(t, "kb:read:notes", "kb:write:notes", "process:exec:/usr/bin/dash", "process:exec:/usr/bin/grep",
			"time:read:*")
		floor := &caps.Layer{Name: "_untrusted", Because: caps.UntrustedContext}
		for _, f := range []caps.Family{caps.KBWrite, caps.Exec} {
			floor.Deny = append(floor.Deny, caps.Entry{Grant: caps.Grant{Family: f, Modes: caps.AllModes(f), Scope: "*"}})
		}
		r.withFloor(floor)
		r.kb["notes/good"], r.kb["notes/bad"] = "x", "y"
		kb := labelledKB{r.kb, map[string]bool{"notes/bad": true}, map[string]string{}}
		r.host.cfg.KB, r.host.cfg.Sources = kb, sourcesOf(t, "exec:/usr/bin/grep")
		first := ""
		for range rapid.IntRange(1, 10).Draw(rt, "steps") {
			before := r.gate.Set()
			c := rapid.SampledFrom(calls).Draw(rt, "call")
			n, _ := r.call(c[0], c[1:]...)
			for _, g := range r.gate.Set().Grants() {
				if !before.Covers(g) {
					rt.Fatalf("%v gave %v", c, g)
				}
			}
			writes := c[0] == "kb_put" || c[0] == "kb_delete" || c[0] == execRunName
			if first != "" && writes && n != -int64(Acces) {
				rt.Fatalf("%v after %s: %d", c, first, n)
			}
			cause, marked := r.gate.Tainted()
			if first != "" && cause != first || marked && r.gate.Set().Any(caps.KBWrite) {
				rt.Fatalf("%v: marked by %q, then by %q, and holds %v", c, first, cause, r.gate.Set())
			}
			first = cause
		}
	})
}

// A program that sees something of an untrusted source marks the run before it
// starts, wherever the one lies in the other: a copy that it makes has no mark.
// From then on it has what the floor leaves.
//
//rlp:holds Y27 Y28
func TestProgramsThatSeeUntrustedFilesMarkTheRun(t *testing.T) {
	out := []string{"process:exec:/usr/bin/grep", "fs:read:/out", "fs:write:/out", "fs:delete:/out"}
	for name, c := range map[string]struct {
		grants, sources []string
		deny            string
		all             bool
		cause           string
	}{
		"the same": {
			grants: []string{"fs:read:/downloads"}, sources: []string{"fs:/downloads"},
			cause: "fs:/downloads",
		},
		"within what it sees": {
			grants: []string{"fs:read:/data"}, sources: []string{"fs:/data/in/x"},
			cause: "fs:/data/in/x",
		},
		"all that it sees":   {grants: []string{"fs:read:/data/in/x"}, sources: []string{"fs:/data"}, cause: "fs:/data/in/x"},
		"everything":         {grants: []string{"fs:read:/"}, sources: []string{"fs:/downloads"}, cause: "fs:/downloads"},
		"elsewhere":          {grants: []string{"fs:read:/data"}, sources: []string{"fs:/downloads", "fs:/data2"}},
		"it was taken away":  {grants: []string{"fs:read:/data"}, sources: []string{"fs:/data/in"}, deny: "fs:read:/data/in"},
		"only to be written": {grants: []string{"fs:write:/data"}, sources: []string{"fs:/data/in"}},
		"no lane of its own": {all: true, sources: []string{"fs:/downloads"}, cause: "fs:/downloads"},
		"nothing untrusted":  {grants: []string{"fs:read:/"}, all: true, sources: []string{"kb:drafts"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, f := execRig(t, append(out, c.grants...)...)
			r.host.cfg.Sources = sourcesOf(t, c.sources...)
			entry := func(text string) caps.Entry {
				g, err := caps.ParseGrant(text)
				if err != nil {
					t.Fatal(err)
				}
				return caps.Entry{Grant: g}
			}
			r.withFloor(&caps.Layer{
				Name: "_untrusted", Because: caps.UntrustedContext,
				Deny: []caps.Entry{entry("process:exec:*"), entry("fs:write:/out")},
			})
			if c.deny != "" {
				if err := r.gate.Hold(&caps.Layer{Name: "less", Deny: []caps.Entry{entry(c.deny)}}); err != nil {
					t.Fatal(err)
				}
			}
			f.seesAll = c.all
			f.starts = func() { r.marked("at the start", c.cause) }
			if errno, text := r.call(execRunName, `{"argv":["/bin/grep"]}`, ""); errno < 0 || len(f.ran) != 1 {
				t.Fatalf("%d, %s", errno, text)
			}
			if f.ran[0].Holds.Check(caps.Request{Family: caps.FS, Mode: caps.Write, Name: "/out/x"}).Allow != (c.cause == "") {
				t.Errorf("the program may write: %v", c.cause == "")
			}
			if errno, _ := r.call(execRunName, `{"argv":["/bin/grep"]}`, ""); (errno < 0) != (c.cause != "") {
				t.Errorf("the next one: %d", errno)
			}
		})
	}
}

// withFloor opens the rig's gate again, with a floor.
func (r *rig) withFloor(floor *caps.Layer) {
	r.t.Helper()
	g, err := gate.New(r.gate.Set(), r.log, gate.Options{KeepAllowed: true, KeepDenied: true, MaxCalls: -1, Floor: floor})
	if err != nil {
		r.t.Fatal(err)
	}
	cfg := r.host.cfg
	cfg.Gate = g
	r.gate, r.host = g, New(cfg)
	funcs, err := r.host.Funcs()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range funcs {
		r.funcs[f.Name] = f
	}
}

// A refusal that follows from an input says which, that the floor it is, and
// that it ends with the run.
//
//rlp:holds Y36
func TestRefusalsNameTheInput(t *testing.T) {
	r := newRig(t, "kb:read:notes", "kb:write:notes")
	r.withFloor(&caps.Layer{Name: "_untrusted", Because: caps.UntrustedContext, Deny: []caps.Entry{
		{Grant: caps.Grant{Family: caps.KBWrite, Modes: 1, Scope: "*"}},
	}})
	r.kb["notes/bad"] = "y"
	r.host.cfg.KB = labelledKB{r.kb, map[string]bool{"notes/bad": true}, map[string]string{}}
	if n, _ := r.call("kb_put", "notes", "k", "v"); n < 0 {
		t.Fatalf("control: %d", n)
	}
	r.call("kb_get", "notes", "bad")
	n, a := r.denial("kb_put", "notes", "k", "v")
	if n != -2 || a.Reason != "untrusted_context" || a.Capability != "kb:write:notes" {
		t.Errorf("%d %+v", n, a)
	}
	for _, says := range []string{
		"kb:notes/bad", "_untrusted", "kb_write", "rest of it", "next launch", "security.caps",
		"caps/profiles/_untrusted.toml",
	} {
		if !strings.Contains(a.Hint, says) {
			t.Errorf("%q does not say %q", a.Hint, says)
		}
	}
	last := r.log.Decisions[len(r.log.Decisions)-1]
	if last.Label != "kb:notes/bad" || last.Layer != "_untrusted" || last.Reason != "untrusted_context" {
		t.Errorf("recorded %+v", last)
	}
}

// FuzzCause: whatever an input is called, its name is one line of UTF-8 that
// fits into a record and beside a value, and begins with its word.
func FuzzCause(f *testing.F) {
	f.Add("https://evil.example/\n\x00\u2028\xff")
	f.Add(strings.Repeat("é", 2000))
	f.Fuzz(func(t *testing.T, name string) {
		c := gate.Cause("kb", name)
		if len(c) > gate.MaxCause || !utf8.ValidString(c) || !strings.HasPrefix(c, "kb") ||
			strings.ContainsAny(c, "\n\r\x00\u2028\u2029\x1b") {
			t.Fatalf("%q", c)
		}
	})
}

// The label that a run passes on is masked, also where the run sees what is
// stored: who reads it later may not.
//
//rlp:holds R27
func TestCausesAreMasked(t *testing.T) {
	r := newRig(t, "kb:read:notes", "kb:read:notes_raw")
	r.kb["notes/bob@x"] = "y"
	r.host.cfg.Masks = upperMasks{}
	r.host.cfg.KB = labelledKB{r.kb, map[string]bool{"notes/bob@x": true}, map[string]string{}}
	masked, err := upperMasks{}.MaskKey("notes", "bob@x")
	if err != nil || masked == "bob@x" {
		t.Fatal(masked, err)
	}
	if n, v := r.call("kb_get", "notes", "bob@x"); n != 1 || v != "y" {
		t.Errorf("%d %q", n, v)
	}
	r.marked("a personal key", "kb:notes/"+masked)
}
