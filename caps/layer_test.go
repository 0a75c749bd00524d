package caps_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
)

// TestOverrideSemantics holds what an override leaves, family by family.
//
//rlp:holds R25 R27 R42 R43 R44 R45 R46 R49 R50 R53
func TestOverrideSemantics(t *testing.T) {
	fs, net, kbr, kbw := caps.FS, caps.Net, caps.KBRead, caps.KBWrite
	for _, c := range []struct {
		name     string
		base     []string
		families []caps.Family // that the override names
		allow    []string
		deny     []string
		want     []string
		except   []string
	}{
		{name: "no override at all", base: []string{"fs:read:/data"}, want: []string{"fs:read:/data"}},
		{name: "a base that is empty", families: []caps.Family{fs}, allow: []string{"fs:read:/"}},
		{
			name: "deeper override", base: []string{"fs:read:/data"}, families: []caps.Family{fs},
			allow: []string{"fs:read:/data/sub"}, want: []string{"fs:read:/data/sub"},
		},
		{
			name: "deeper base", base: []string{"fs:read:/data/sub"}, families: []caps.Family{fs},
			allow: []string{"fs:read:/data"}, want: []string{"fs:read:/data/sub"},
		},
		{
			name: "component, not prefix", base: []string{"fs:read:/tmp"}, families: []caps.Family{fs},
			allow: []string{"fs:read:/tmpfoo"},
		},
		{
			name: "modes apart", base: []string{"fs:read:/a", "fs:write:/a"}, families: []caps.Family{fs},
			allow: []string{"fs:read:/a"}, want: []string{"fs:read:/a"},
		},
		{
			name: "missing key", base: []string{"fs:read:/a", "net:x.org"}, families: []caps.Family{fs},
			want: []string{"network:https:x.org"},
		},
		{
			name: "net = []", base: []string{"net:x.org", "time:read:*"}, families: []caps.Family{net},
			want: []string{"time:read:*"},
		},
		{
			name: "the trap of drafts", base: []string{"kb:write:contacts", "kb:write:artifacts"}, families: []caps.Family{kbw},
			allow: []string{"kb:write:drafts"},
		},
		{
			name: "a list within true", base: []string{"kb:read:*"}, families: []caps.Family{kbr},
			allow: []string{"kb:read:contacts"}, want: []string{"kb:read:contacts"},
		},
		{
			name: "true takes no domain but raw ones", base: []string{"kb:read:contacts", "kb:read:contacts_raw"},
			families: []caps.Family{kbr}, allow: []string{"kb:read:*"}, want: []string{"kb:read:contacts"},
		},
		{
			name: "true never is more than the base", base: []string{"kb:read:events"}, families: []caps.Family{kbr},
			allow: []string{"kb:read:*"}, want: []string{"kb:read:events"},
		},
		{
			name: "nested denies", base: []string{"fs:read:/home/u"}, deny: []string{
				"fs:*:/home/u/.ssh",
				"fs:*:/home/u/work/key",
			},
			want: []string{"fs:read:/home/u"}, except: []string{"fs:read:/home/u/.ssh", "fs:read:/home/u/work/key"},
		},
		{
			name: "a deny above the base", base: []string{"fs:read:/home/u/a", "fs:read:/b"}, deny: []string{"fs:*:/home"},
			want: []string{"fs:read:/b"},
		},
		{
			name: "a grant and a deny of it", base: []string{"fs:read:/a"}, families: []caps.Family{fs},
			allow: []string{"fs:read:/a"}, deny: []string{"fs:read:/a"},
		},
		{
			name: "all but these", base: []string{"env:read:*"}, deny: []string{"env:read:HOME"},
			want: []string{"env:read:*"}, except: []string{"env:read:HOME"},
		},
		{
			name: "deny of a family takes raw names as well", base: []string{"kb:read:contacts", "kb:read:contacts_raw"},
			deny: []string{"kb:*:*"},
		},
		{
			name: "hosts under a wildcard", base: []string{"network:https:*.x.org"}, families: []caps.Family{net},
			allow: []string{"net:a.x.org", "net:x.org", "net:a.b.x.org"}, want: []string{"network:https:a.x.org"},
		},
		{
			name: "a wildcard over hosts", base: []string{"net:a.x.org", "net:x.org", "net:a.b.x.org", "net:evilx.org"},
			families: []caps.Family{net}, allow: []string{"network:https:*.x.org"}, want: []string{"network:https:a.x.org"},
		},
		{
			name: "ports are part of a host", base: []string{"net:x.org:8443"}, families: []caps.Family{net},
			allow: []string{"net:x.org"},
		},
		{
			name: "a method and a host together", base: []string{"network:https:get@a.org", "network:https:post@b.org"},
			families: []caps.Family{net}, allow: []string{"network:https:get@b.org", "network:https:post@a.org"},
		},
		{
			name: "a secret bound to a host", base: []string{"secrets:read:runloop/a/b"}, families: []caps.Family{caps.Secrets},
			allow: []string{"secrets:read:runloop/a/b@x.org"}, want: []string{"secrets:read:runloop/a/b@x.org"},
		},
		{
			name: "a secret denied towards a host", base: []string{"secrets:read:runloop/a/b"},
			deny: []string{"secrets:*:runloop/a/b@x.org"},
			want: []string{"secrets:read:runloop/a/b"}, except: []string{"secrets:use:runloop/a/b@x.org"},
		},
		{
			name: "models by provider", base: []string{"model:use:openai:*", "model:use:local:echo"},
			families: []caps.Family{caps.Model},
			allow:    []string{"model:use:openai:o3", "model:use:local:*"}, want: []string{
				"model:use:local:echo",
				"model:use:openai:o3",
			},
		},
	} {
		l := bounds(t, c.families, c.allow...)
		l.Deny = denies(t, c.deny...)
		s := narrow(t, set(t, c.base...), l)
		var except []string
		for _, g := range s.Except() {
			except = append(except, g.Strings()...)
		}
		if got := s.Strings(); !slices.Equal(got, c.want) || !slices.Equal(except, c.except) {
			t.Errorf("%s: %v leaves %v; want %v except %v", c.name, c.base, s, c.want, c.except)
		}
	}
}

// TestProtectedPlaces holds that a built-in layer denies a place however broad
// the grant is, and spares what is named within it and no more.
func TestProtectedPlaces(t *testing.T) {
	l := &caps.Layer{
		Name:  "protected",
		Deny:  denies(t, "fs:*:/home/u/.runloop", "fs:*:/proc", "fs:*:/home/u/.runloop/artifacts/keys"),
		Spare: denies(t, "fs:*:/home/u/.runloop/artifacts", "fs:*:/etc"),
	}
	s := set(t, "fs:read:*", "fs:write:/home/u")
	after := narrow(t, s, l)
	for asked, want := range map[string]bool{
		"fs:read:/etc/hosts":                         true,
		"fs:write:/etc/hosts":                        false, // a spare gives nothing
		"fs:read:/proc/self/environ":                 false,
		"fs:read:/proc":                              false,
		"fs:read:/procs":                             true,
		"fs:read:/home/u/.runloop/secrets/x":         false,
		"fs:read:/home/u/.runloop":                   false,
		"fs:read:/home/u/.runloop/artifacts":         true,
		"fs:write:/home/u/.runloop/artifacts/a/b":    true,
		"fs:write:/home/u/.runloop/artifacts2":       false,
		"fs:read:/home/u/.runloop/artifacts/keys/id": false,
		"fs:read:/home/u/.runloop/artifacts/keys2":   true,
		"fs:write:/home/u/notes":                     true,
	} {
		if got := allowed(t, after, asked); got != want {
			t.Errorf("%s: %v, want %v", asked, got, want)
		}
		if !allowed(t, s, asked) && asked != "fs:write:/etc/hosts" {
			t.Errorf("%s: denied without the layer already", asked)
		}
	}
	if d := after.CheckTree(caps.Request{Family: caps.FS, Name: "/home"}); d.Allow ||
		after.LayerName(d.Layer) != "protected" {
		t.Errorf("the tree of /home: %+v", d)
	}
	if d := after.CheckTree(caps.Request{Family: caps.FS, Name: "/home/u/notes"}); !d.Allow {
		t.Errorf("the tree of /home/u/notes: %+v", d)
	}
}

// TestChanges holds what a layer reports: one change for each thing taken,
// with the line that took it, and one for each thing that is not in the base.
//
//rlp:holds R48 R49
func TestChanges(t *testing.T) {
	pos := func(line int) caps.Pos { return caps.Pos{File: "o.toml", Line: line, Column: 3} }
	entry := func(line int, capability string) caps.Entry {
		e := entries(t, capability)[0]
		e.Pos = pos(line)
		return e
	}
	denied := denies(t, "fs:*:/home/u/.ssh")[0]
	denied.Pos = pos(9)
	l := &caps.Layer{
		Name: "override:o.toml",
		Bounds: []caps.Bound{
			{Family: caps.KBWrite, Modes: 1, Pos: pos(2)},
			{Family: caps.FS, Modes: 1 << caps.Write, Pos: pos(4)},
			{Family: caps.Net, Modes: caps.AllModes(caps.Net), Pos: pos(5)},
			{Family: caps.KBRead, Modes: 1, Pos: pos(7)},
		},
		Allow: []caps.Entry{
			entry(3, "kb:write:drafts"),
			entry(5, "network:https:x.org"), entry(5, "network:http:x.org"), // one host, written once
			entry(6, "network:https:y.org"), entry(6, "network:http:y.org"),
			{Grant: caps.Grant{Family: caps.KBRead, Modes: 1, Scope: "events"}, Pos: pos(8), Implied: true},
			{Grant: caps.Grant{Family: caps.KBRead, Modes: 1, Scope: "contacts"}, Pos: pos(7), Implied: true},
		},
		Deny: []caps.Entry{denied},
	}
	base := set(t, "kb:write:contacts", "kb:write:artifacts", "fs:read:/home/u", "fs:write:/home/u", "net:x.org",
		"kb:read:contacts")
	after, changes, err := base.Narrow(l)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		got = append(got, fmt.Sprintf("%v %v %d %s", c.Kind, c.Grant, c.Source.Line, c.Layer))
	}
	want := []string{
		"revoked fs:write:/home/u 4 override:o.toml",
		"revoked fs:read:/home/u/.ssh 9 override:o.toml",
		"revoked kb:write:artifacts 2 override:o.toml",
		"revoked kb:write:contacts 2 override:o.toml",
		"ignored network:https:y.org 6 override:o.toml",
		"ignored kb:write:drafts 3 override:o.toml",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("changes:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !after.Any(caps.Net) || after.Any(caps.KBWrite) {
		t.Errorf("left: %v", after)
	}
	if _, again, _ := after.Narrow(l); len(again) != 2 {
		t.Errorf("the second time nothing is revoked, and the same is ignored: %v", again)
	}
	j, err := json.Marshal(changes[0])
	if want := `{"layer":"override:o.toml","source":"o.toml:4:3","capability":"fs:write:/home/u","kind":"revoked"}`; err != nil || string(j) != want {
		t.Errorf("JSON %s, %v; want %s", j, err, want)
	}
}

// TestBroaderEntryIsNoChange holds that an entry that is merely wider than the
// base is neither ignored nor a revocation.
func TestBroaderEntryIsNoChange(t *testing.T) {
	base := set(t, "fs:read:/data/sub", "network:https:a.x.org", "secrets:read:runloop/a/b@x.org")
	l := bounds(t, []caps.Family{caps.FS, caps.Net, caps.Secrets}, "fs:read:/data", "network:https:*.x.org",
		"secrets:read:runloop/a/b")
	if _, changes, err := base.Narrow(l); err != nil || len(changes) != 0 {
		t.Errorf("changes %v, %v", changes, err)
	}
}

// TestIgnoredIsOfTheBase holds that what is ignored does not depend on the
// layers before: an entry that an earlier layer revoked is in the base.
//
//rlp:holds R48
func TestIgnoredIsOfTheBase(t *testing.T) {
	none := bounds(t, []caps.Family{caps.FS})
	some := bounds(t, []caps.Family{caps.FS}, "fs:read:/a", "fs:read:/b")
	after := narrow(t, set(t, "fs:read:/a"), none)
	_, changes, err := after.Narrow(some)
	if err != nil || len(changes) != 1 || changes[0].Kind != caps.Ignored || changes[0].Grant.Scope != "/b" {
		t.Errorf("changes %v, %v", changes, err)
	}
}

// TestFailsClosed holds that what cannot be applied leaves nothing, whether or not
// the error is looked at.
func TestFailsClosed(t *testing.T) {
	base := set(t, "fs:read:/a", "time:read:*")
	for name, l := range map[string]*caps.Layer{
		"path not clean": {Name: "bad", Deny: entriesOf([]caps.Grant{{Family: caps.FS, Modes: 1, Scope: "/a/../b"}})},
		"host not clean": {Name: "bad", Deny: entriesOf([]caps.Grant{{Family: caps.Net, Modes: 1, Scope: "X.org:443"}})},
		"no port":        {Name: "bad", Deny: entriesOf([]caps.Grant{{Family: caps.Net, Modes: 1, Scope: "x.org"}})},
		"no such mode":   {Name: "bad", Deny: entriesOf([]caps.Grant{{Family: caps.Time, Modes: 2, Scope: "*"}})},
		"no mode":        {Name: "bad", Spare: entriesOf([]caps.Grant{{Family: caps.Time, Scope: "*"}})},
		"no such family": {
			Name:  "bad",
			Allow: entriesOf([]caps.Grant{{Family: caps.NumFamilies + 1, Modes: 1, Scope: "*"}}),
		},
		"bound of nothing": {Name: "bad", Bounds: []caps.Bound{{Family: caps.NumFamilies + 1, Modes: 1}}},
	} {
		s, changes, err := base.Narrow(l)
		if err == nil || !s.IsEmpty() || len(changes) != 2 || s.String() != "∅" {
			t.Errorf("%s: %v, %v, %v", name, s, changes, err)
		}
		d := s.Check(caps.Request{Family: caps.FS, Name: "/a"})
		if d.Allow || d.Code != caps.CapMissing || s.LayerName(d.Layer) != "bad" {
			t.Errorf("%s: %+v by %q", name, d, s.LayerName(d.Layer))
		}
		if again, _, err := s.Narrow(&caps.Layer{}); err == nil || !again.IsEmpty() {
			t.Errorf("%s: narrowed again: %v, %v", name, again, err)
		}
		if closed, err := base.Intern(l); err == nil || !closed.IsEmpty() {
			t.Errorf("%s: interned: %v, %v", name, closed, err)
		}
	}
	if s, err := caps.Base(entriesOf([]caps.Grant{{Family: caps.FS, Modes: 1, Scope: "/a"}, {
		Family: caps.FS, Modes: 1,
		Scope: "b",
	}}), caps.Limits{}); err == nil || !s.IsEmpty() {
		t.Errorf("a base with a relative path: %v, %v", s, err)
	}
}

func TestTooManyScopes(t *testing.T) {
	list := make([]caps.Entry, caps.MaxScopes+1)
	for i := range list {
		list[i].Grant = caps.Grant{Family: caps.Env, Modes: 1, Scope: fmt.Sprintf("V%d", i)}
	}
	list[0].Grant.Scope = "*" // or the layer below would name what is not in the base
	full, err := caps.Base(list[:caps.MaxScopes], caps.Limits{})
	if err != nil || !full.Check(caps.Request{Family: caps.Env, Name: "V77"}).Allow {
		t.Fatalf("as many as there may be: %v", err)
	}
	if s, err := caps.Base(list, caps.Limits{}); !errors.Is(err, caps.ErrTooManyScopes) || !s.IsEmpty() {
		t.Errorf("a base of one more: %v", err)
	}
	if s, _, err := full.Narrow(&caps.Layer{Name: "l", Deny: list[caps.MaxScopes:]}); !errors.Is(err,
		caps.ErrTooManyScopes) || !s.IsEmpty() {
		t.Errorf("a layer with one more: %v", err)
	}
	outside, err := caps.Base(list[1:caps.MaxScopes], caps.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	l := &caps.Layer{Name: "l", Bounds: []caps.Bound{{Family: caps.FS, Modes: 1}}}
	for i := range list {
		l.Allow = append(l.Allow, caps.Entry{Grant: caps.Grant{Family: caps.FS, Modes: 1, Scope: fmt.Sprintf("/%d", i)}})
	}
	if s, changes, err := outside.Narrow(l); err != nil || s.IsEmpty() || len(changes) != len(list) {
		t.Errorf("what the base does not have takes room: %v, %d changes", err, len(changes))
	}
}

// TestExplain holds that every vote is told, with the line that refuses.
func TestExplain(t *testing.T) {
	list := entries(t, "fs:read:/home/u")
	list[0].Pos = caps.Pos{File: "policy.caps", Line: 3, Column: 8}
	deny := denies(t, "fs:*:/home/u/.ssh")
	deny[0].Pos = caps.Pos{File: "deny.toml", Line: 2, Column: 17}
	bound := bounds(t, []caps.Family{caps.FS}, "fs:read:/home/u/work")
	bound.Bounds[0].Pos = caps.Pos{File: "o.toml", Line: 5, Column: 1}
	s := narrow(t, mustBase(t, list, caps.Limits{}), &caps.Layer{Name: "deny", Deny: deny}, bound,
		&caps.Layer{Name: "other"})

	e := s.Explain(caps.Request{Family: caps.FS, Name: "/home/u/.ssh/id"})
	want := []caps.Vote{
		{Layer: "base", Allow: true, Pos: list[0].Pos},
		{Layer: "deny", Pos: deny[0].Pos},
		{Layer: "override", Pos: bound.Bounds[0].Pos},
		{Layer: "other", Allow: true},
	}
	if e.Allow || e.Code != caps.PathNotPermitted || e.Scope != "/home/u/.ssh" || !slices.Equal(e.Votes, want) {
		t.Errorf("%+v", e)
	}
	if s.LayerName(e.Decision.Layer) != "deny" || e.Asked != "fs:read:/home/u/.ssh/id" {
		t.Errorf("%+v", e)
	}
	e = s.Explain(caps.Request{Family: caps.FS, Name: "/home/u/work/x"})
	if !e.Allow || e.Code != caps.Granted || slices.ContainsFunc(e.Votes, func(v caps.Vote) bool { return !v.Allow }) {
		t.Errorf("%+v", e)
	}
	e = s.Explain(caps.Request{Family: caps.FS, Name: "/etc/passwd"})
	if e.Allow || e.Votes[0].Allow || e.Decision.Layer != 0 || s.LayerName(0) != "base" {
		t.Errorf("%+v", e)
	}
	if e := s.Explain(caps.Request{Family: caps.FS, Name: "x"}); e.Allow || e.Votes != nil ||
		e.Code != caps.InvalidRequest {
		t.Errorf("%+v", e)
	}
	j, err := json.Marshal(s.Explain(caps.Request{Family: caps.FS, Name: "/etc"}))
	if err != nil || !strings.Contains(string(j), `"reason":"path_not_permitted"`) {
		t.Errorf("%s, %v", j, err)
	}
}

// TestNarrowedTwice holds that two sets made from one are apart, explanations
// included.
//
//rlp:holds C13
func TestNarrowedTwice(t *testing.T) {
	s := set(t, "fs:read:/a", "fs:read:/b")
	for _, name := range []string{"one", "two", "three"} { // until the steps have room to spare
		s = narrow(t, s, &caps.Layer{Name: name})
	}
	before := s.Digest()
	left := narrow(t, s, &caps.Layer{Name: "left", Deny: denies(t, "fs:*:/a")})
	right := narrow(t, s, &caps.Layer{Name: "right", Deny: denies(t, "fs:*:/b")})
	for _, c := range []struct {
		set     caps.Set
		name    string
		allowed map[string]bool
	}{
		{left, "left", map[string]bool{"fs:read:/a": false, "fs:read:/b": true}},
		{right, "right", map[string]bool{"fs:read:/a": true, "fs:read:/b": false}},
	} {
		if c.set.LayerName(4) != c.name {
			t.Errorf("the layer of %s is %q", c.name, c.set.LayerName(4))
		}
		for asked, want := range c.allowed {
			if allowed(t, c.set, asked) != want {
				t.Errorf("%s: %s is not %v", c.name, asked, want)
			}
		}
	}
	if s.Digest() != before || !allowed(t, s, "fs:read:/a") {
		t.Error("narrowing changed the set that it started from")
	}
}
