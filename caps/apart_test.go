package caps_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
)

// Two sets that are narrowed from one know nothing of each other's scopes,
// however much room the one has to spare: each finds its own, and names the
// layer that refuses.
//
//rlp:holds C13
func TestScopesOfSetsFromOneAreApart(t *testing.T) {
	for n := range 10 {
		list := []string{"fs:read:/a", "fs:read:/b"}
		for i := range n {
			list = append(list, fmt.Sprintf("fs:read:/a/n%d", i))
		}
		s := narrow(t, set(t, list...), &caps.Layer{Name: "no b", Deny: denies(t, "fs:*:/b")})
		left := narrow(t, s, &caps.Layer{Name: "left", Deny: denies(t, "fs:*:/a/x")})
		right := narrow(t, s, &caps.Layer{Name: "right", Deny: denies(t, "fs:*:/b/y")})
		for _, c := range []struct {
			name  string
			set   caps.Set
			path  string
			layer int16
		}{
			{"left", left, "/a/x", 2},
			{"left", left, "/a/y", -1},
			{"left", left, "/b/y", 1},
			{"right", right, "/a/x", -1},
			{"right", right, "/b/y", 1},
			{"right", right, "/b/x", 1},
			{"before", s, "/a/x", -1},
			{"before", s, "/b/y", 1},
		} {
			d := c.set.Check(caps.Request{Family: caps.FS, Name: c.path})
			if d.Allow != (c.layer < 0) || d.Layer != c.layer {
				t.Errorf("%d more: %s: %s is %+v, want layer %d", n, c.name, c.path, d, c.layer)
			}
		}
	}
}

// What is interned has room made for it, and no decision changes.
func TestInternedScopesAreThere(t *testing.T) {
	s := set(t, "fs:read:/a")
	one, two := &caps.Layer{Name: "one", Deny: denies(t, "fs:*:/a/b")}, &caps.Layer{
		Name: "two",
		Deny: denies(t, "fs:*:/a/c"),
	}
	more, err := s.Intern(one, two)
	if err != nil || more.Digest() != s.Digest() || more.NumLayers() != 1 {
		t.Fatalf("%v, %v", more, err)
	}
	for _, path := range []string{"/a/b", "/a/c"} {
		if s.ScopeID(caps.FS, path) != -1 || more.ScopeID(caps.FS, path) < 0 {
			t.Errorf("%s is %d, and was %d", path, more.ScopeID(caps.FS, path), s.ScopeID(caps.FS, path))
		}
	}
	// What lies where the base grants nothing takes no room.
	outside := narrow(t, s, &caps.Layer{Deny: denies(t, "fs:write:/a/w", "fs:*:/z")})
	if outside.NumScopes(caps.FS) != s.NumScopes(caps.FS) {
		t.Errorf("%d scopes of %d", outside.NumScopes(caps.FS), s.NumScopes(caps.FS))
	}
	if n := (caps.Set{}).NumScopes(caps.FS); n != 1 {
		t.Errorf("the universe of nothing has %d paths", n)
	}
	if n := (caps.Set{}).NumScopes(caps.KBRead); n != 2 {
		t.Errorf("the universe of nothing has %d domains: all, and all raw ones", n)
	}
}

// A set that a layer could not be applied to, or that has no base, keeps the
// limits it had, says why, and never more than that it refuses.
func TestClosedSets(t *testing.T) {
	limited := caps.Limits{}.With(caps.MaxDepth, 3)
	bad := entriesOf([]caps.Grant{{Family: caps.FS, Modes: 1, Scope: "/a/../b"}})
	bad[0].Pos = caps.Pos{File: "bad.toml", Line: 7, Column: 2}
	base := mustBase(t, entries(t, "fs:read:/a"), caps.Limits{}.With(caps.CPUFuel, 9))
	for name, l := range map[string]*caps.Layer{
		"allow":        {Name: "bad", Limits: limited, Allow: bad},
		"behind a new": {Name: "bad", Limits: limited, Allow: append(entries(t, "fs:read:/a/new"), bad...)},
		"lease":        {Name: "bad", Limits: limited, Leases: []caps.Lease{{Entry: bad[0]}}},
	} {
		s, _, err := base.Narrow(l)
		if err == nil || !strings.HasPrefix(err.Error(), "narrowing by bad: ") || !strings.HasSuffix(err.Error(),
			" (bad.toml:7:2)") {
			t.Fatalf("%s: %v", name, err)
		}
		if got, want := s.Limits().Map(), map[string]int64{"max_depth": 3, "cpu_fuel": 9}; len(got) != len(want) ||
			got["max_depth"] != 3 || got["cpu_fuel"] != 9 {
			t.Errorf("%s: limits %v, want %v", name, got, want)
		}
		e := s.Explain(caps.Request{Family: caps.FS, Name: "/a"})
		want := []caps.Vote{{Layer: "base", Allow: true}, {Layer: "bad"}}
		if e.Allow || !slices.Equal(e.Votes, want) {
			t.Errorf("%s: %+v", name, e)
		}
		if s.Covers(caps.Grant{Family: caps.FS, Modes: 1, Scope: "/a"}) {
			t.Errorf("%s: it covers something", name)
		}
	}
	for name, g := range map[string]caps.Grant{
		"no such family": {Family: caps.Tool + 1, Modes: 1, Scope: "*"},
		"no mode":        {Family: caps.FS, Scope: "/a"},
		"no such mode":   {Family: caps.FS, Modes: 8, Scope: "/a"},
		"no scope":       {Family: caps.FS, Modes: 1},
		"not canonical":  {Family: caps.KBRead, Modes: 1, Scope: "*_raw"},
	} {
		s, err := caps.Base([]caps.Entry{{Grant: g}}, limited)
		if err == nil || !strings.HasPrefix(err.Error(), "making the base: ") || strings.Contains(err.Error(), "()") ||
			!s.IsEmpty() || s.Limits() != limited {
			t.Errorf("%s: %v, %v, %v", name, s, s.Limits().Map(), err)
		}
		if _, _, again := s.Narrow(&caps.Layer{}); !errors.Is(err, errors.Unwrap(again)) {
			t.Errorf("%s: narrowed: %v", name, again)
		}
		if everything(t).Covers(g) {
			t.Errorf("%s: everything covers %v", name, g)
		}
	}
}

// Covering is every mode and everything within.
func TestCovers(t *testing.T) {
	s := narrow(t, set(t, "fs:read:/a", "fs:write:/a", "kb:read:*", "secrets:read:runloop/a/b@x.org",
		"secrets:get:runloop/c/d"),
		&caps.Layer{Deny: denies(t, "fs:write:/a/hole", "kb:read:events")})
	for c, want := range map[string]bool{
		"fs:read:/a": true, "fs:read:/a/hole": true, "fs:write:/a": false, "fs:write:/a/b": true, "fs:write:/a/hole/x": false,
		"fs:read:*": false, "fs:delete:/a": false,
		"kb:read:*": false, "kb:read:notes": true, "kb:read:events": false,
		"secrets:read:runloop/a/b@x.org": true, "secrets:read:runloop/a/b": false, "secrets:get:runloop/a/b": true,
		"secrets:use:runloop/a/b@y.org": false,
		"secrets:get:runloop/c/d":       true, "secrets:read:runloop/c/d@x.org": false,
	} {
		g, err := caps.ParseGrant(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Covers(g); got != want {
			t.Errorf("%s: %v", c, got)
		}
	}
	if s.Covers(caps.Grant{Family: caps.FS, Modes: caps.Modes(caps.Read, caps.Write), Scope: "/a"}) {
		t.Error("of two modes one is covered")
	}
}

// A layer made of a set leaves what was spared within what was denied.
func TestALayerSparesWhatTheSetSpared(t *testing.T) {
	base := set(t, "fs:read:/a", "fs:write:/a")
	s := narrow(t, base, &caps.Layer{Deny: denies(t, "fs:*:/a/b"), Spare: denies(t, "fs:*:/a/b/c")})
	again := narrow(t, base, s.Layer("parent"))
	if again.Digest() != s.Digest() || !allowed(t, again, "fs:read:/a/b/c") || allowed(t, again, "fs:read:/a/b") {
		t.Errorf("%v became %v", s, again)
	}
}

// Grants and holes are listed in one order, whatever order they came in.
func TestGrantsAreListedInOrder(t *testing.T) {
	s := set(t, "fs:read:/", "env:read:*", "net:*", "secrets:read:runloop/a/b")
	layers := []*caps.Layer{
		{Deny: denies(t, "fs:*:/x", "net:y.org")},
		{Deny: denies(t, "fs:*:/d", "net:b.org", "env:read:*"), Spare: denies(t, "env:read:Z", "env:read:B")},
		{
			Deny:  denies(t, "fs:*:/a", "net:a.org", "secrets:use:runloop/a/b@*.x.org"),
			Spare: denies(t, "secrets:use:runloop/a/b@h.x.org"),
		},
	}
	s = narrow(t, s, layers...)
	listed := func(list []caps.Grant) string {
		var out []string
		for _, g := range list {
			out = append(out, fmt.Sprintf("%s:%x:%s", g.Family, g.Modes, g.Scope))
		}
		return strings.Join(out, " ")
	}
	if got, want := listed(s.Grants()),
		"fs:1:/ net:ff:* secrets:3:runloop/a/b secrets:2:runloop/a/b@h.x.org:443 env:1:B env:1:Z"; got != want {
		t.Errorf("grants %s\nwant %s", got, want)
	}
	if got, want := listed(s.Except()),
		"fs:1:/a fs:1:/d fs:1:/x net:ff:a.org:443 net:ff:b.org:443 net:ff:y.org:443 secrets:2:runloop/a/b@*.x.org:443 env:1:*"; !strings.HasPrefix(want, got) {
		t.Errorf("holes %s\nwant %s", got, want)
	}
	files := set(t, "fs:read:/a", "fs:write:/a@h")
	if got, want := listed(files.Grants()), "fs:1:/a fs:2:/a@h"; got != want {
		t.Errorf("grants %s\nwant %s", got, want)
	}
}

// Digests are kept in records and compared between versions of the program:
// what one is of is written here, byte by byte, once.
func TestDigestsStayAsTheyAre(t *testing.T) {
	plain := set(t, "fs:read:/a", "net:x.org")
	full := narrow(t, mustBase(t, entries(t, "fs:read:/a", "fs:write:/a", "network:https:get@x.org", "kb:read:*",
		"kb:read:notes_raw"), caps.Limits{}.With(caps.CPUFuel, 7)), &caps.Layer{
		Name: "one", Deny: append(denies(t, "fs:write:/a/b"), toolEntry("web:net_http")),
		Constraints: caps.Constraints{}.With(caps.NetMinTLS, 13),
		Leases:      []caps.Lease{{Entry: entries(t, "fs:read:/a")[0], Expires: 5, MaxUses: 6}},
	})
	for name, c := range map[string]struct {
		set  caps.Set
		want string
	}{
		"nothing": {caps.Set{}, "2ba9072c9213c0b2667240724c048e0c1a4b7cc25939d8859122b7e6c3da3b35"},
		"plain":   {plain, "9d47380213990f328e94eaa9b046c7357049deb4ab6a50e1acaed947b95127c9"},
		"full":    {full, "1dc9b76e0b97f22a04bdf89164d9d7cd395e60055609514b40ae85d8c5c97e0d"},
	} {
		if d := c.set.Digest(); hex.EncodeToString(d[:]) != c.want {
			t.Errorf("%s: %x, was %s", name, d, c.want)
		}
	}
	// Which tools are left of nothing makes no difference.
	if less := narrow(t, caps.Set{},
		&caps.Layer{Deny: []caps.Entry{toolEntry("web:*")}}); less.Digest() != (caps.Set{}).Digest() {
		t.Error("nothing without a tool is something else than nothing")
	}
}

// A vote of the base about a host call names no entry: none grants it.
func TestVotesAboutTools(t *testing.T) {
	s := narrow(t, set(t, "net:x.org"), &caps.Layer{Name: "one", Deny: []caps.Entry{toolEntry("memory:*")}})
	for scope, want := range map[string]bool{"web:net_http": true, "memory:kb_get": false} {
		e := s.Explain(caps.Request{Family: caps.Tool, Name: scope})
		if e.Allow != want || !slices.Equal(e.Votes, []caps.Vote{{Layer: "base", Allow: true}, {Layer: "one", Allow: want}}) {
			t.Errorf("%s: %+v", scope, e)
		}
	}
}

// A set whose layers name more outside of the base than a universe holds is
// explained all the same, by what they made of the base.
func TestExplainedWithinTheUniverse(t *testing.T) {
	l := &caps.Layer{Name: "l", Bounds: []caps.Bound{{Family: caps.Env, Modes: 1}}}
	for i := range caps.MaxScopes + 1 {
		l.Allow = append(l.Allow, caps.Entry{Grant: caps.Grant{Family: caps.Env, Modes: 1, Scope: fmt.Sprintf("V%d", i)}})
	}
	s := narrow(t, set(t, "fs:read:/a", "env:read:V7"), l)
	e := s.Explain(caps.Request{Family: caps.Env, Name: "V7"})
	if want := []caps.Vote{{Layer: "base", Allow: true}, {Layer: "l", Allow: true}}; !e.Allow ||
		!slices.Equal(e.Votes, want) {
		t.Errorf("%+v", e)
	}
}

// A lease is of its own family, though another has a scope of the same name.
func TestLeasesOfTheirFamily(t *testing.T) {
	s := narrow(t, set(t, "kb:read:notes", "kb:write:notes", "env:read:*"), &caps.Layer{Leases: []caps.Lease{
		{Entry: entries(t, "kb:write:notes")[0], Expires: 5, MaxUses: 3}, {
			Entry: entries(t, "env:read:*")[0], Expires: 9,
			MaxUses: 1,
		},
	}})
	for f, want := range map[caps.Family]struct {
		scope   string
		counted bool
		ending  int64
	}{
		caps.KBRead: {"notes", false, caps.Forever}, caps.KBWrite: {"notes", true, 5}, caps.Env: {"*", true, 9},
	} {
		id := s.ScopeID(f, want.scope)
		if got := s.Counted(f)(id, 0); id < 0 || got != want.counted {
			t.Errorf("%s %s: counted %v", f, want.scope, got)
		}
		if got := s.Ending(f); got != want.ending {
			t.Errorf("%s ends at %d", f, got)
		}
	}
	for f, scope := range map[caps.Family]string{
		caps.FS: "/nowhere", caps.KBRead: "*_raw", caps.Env: "NONE",
		caps.Net: "*.x.org:443", caps.Tool: "web:*",
	} {
		if id := s.ScopeID(f, scope); id != -1 {
			t.Errorf("%s %s is scope %d", f, scope, id)
		}
	}
}
