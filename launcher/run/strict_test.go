package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/internal/record/audit"
)

// A granted path may go away between the look at it and its pinning: the launch
// is refused then as well, before the guest's first instruction.
//
//rlp:holds K21
func TestAPathThatGoesAwayRefuses(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	granted := filepath.Join(dir, "granted")
	for name, c := range map[string]struct {
		when    string // the folder is removed
		relaxed bool
		want    Outcome
	}{
		"there":          {"never", false, OK},
		"never there":    {"before", false, Refused},
		"gone since":     {"after", false, Refused},
		"gone, relaxed":  {"after", true, OK},
		"never, relaxed": {"before", true, OK},
	} {
		if err := os.MkdirAll(granted, 0o700); err != nil {
			t.Fatal(err)
		}
		remove := func(when string) {
			if c.when == when {
				if err := os.Remove(granted); err != nil {
					t.Fatal(err)
				}
			}
		}
		s := specOf(t, audit.NewMemory(), "fs:read:"+granted)
		s.Relaxed = c.relaxed
		remove("before")
		if s.Policy, s.Paths, err = Canonical(s.Policy, Resolvers{
			Files:    jail.Canonical,
			Programs: jail.Canonical,
		}); err != nil {
			t.Fatal(err)
		}
		remove("after")
		r := Launch(t.Context(), s)
		if r.Outcome != c.want || r.Outcome == Refused && (r.ExitCode != StatusPolicy || !strings.Contains(r.Message,
			granted)) || r.Outcome == OK && r.GuestExit == nil {
			t.Errorf("%s: %s %d %s", name, r.Outcome, r.ExitCode, r.Message)
		}
	}
}

// Whatever grants, bounds or leases a path through a link refuses the launch, and
// is named with its place, the link and what to write; the entries of the root
// folder are nobody's but root's. What others than the operator ask for is no
// reason, for no link in it is followed.
func TestAPathThroughALinkRefuses(t *testing.T) {
	resolve := func(p string) (jail.Resolved, error) {
		switch {
		case p == "/data/sub":
			return jail.Resolved{Path: "/secret", Links: []string{"/data/sub"}}, nil
		case p == "/bin/x":
			return jail.Resolved{Path: "/usr/bin/x", Links: []string{"/bin"}}, nil
		}
		return jail.Resolved{Path: p}, nil
	}
	asked := func(p string) (jail.Resolved, error) { return jail.Resolved{Path: p}, nil }
	entry := func(text string) caps.Entry {
		e := entryOf(t, text)
		e.Pos = caps.Pos{File: "f", Line: 7, Column: 1}
		return e
	}
	all := []caps.Bound{{Family: caps.FS, Modes: caps.AllModes(caps.FS)}}
	allow := &caps.Layer{Name: "override:x", Bounds: all, Allow: []caps.Entry{entry("fs:read:/data/sub")}}
	for name, c := range map[string]struct {
		policy Policy
		layer  string // that is named; "": nothing refuses
	}{
		"base":                 {Policy{Base: []caps.Entry{entry("fs:read:/data/sub")}}, "base"},
		"another folder":       {Policy{Base: []caps.Entry{entry("fs:read:/data")}}, ""},
		"an entry of the root": {Policy{Base: []caps.Entry{entry("fs:read:/bin/x")}}, ""},
		"a program":            {Policy{Base: []caps.Entry{entry("process:exec:/data/sub")}}, ""},
		"a layer":              {Policy{Layers: []*caps.Layer{allow}}, "override:x"},
		"a lease": {Policy{Layers: []*caps.Layer{{
			Name:   "l",
			Leases: []caps.Lease{{Entry: entry("fs:read:/data/sub")}},
		}}}, "l"},
		"a denial": {
			Policy{Layers: []*caps.Layer{{Name: "l", Deny: []caps.Entry{entry("fs:read:/data/sub")}}}},
			"",
		},
		"asked of a service": {Policy{Layers: []*caps.Layer{allow}, Asked: 1}, ""},
		"asked by another run": {Policy{
			Layers: []*caps.Layer{{Name: CallerLayer, Bounds: all, Allow: allow.Allow}},
			Within: &caps.Layer{},
		}, ""},
		"an operator's, in one": {Policy{Layers: []*caps.Layer{allow}, Within: &caps.Layer{}}, "override:x"},
	} {
		s := &Spec{}
		var err error
		if _, s.Paths, err = Canonical(c.policy, Resolvers{Files: resolve, Programs: resolve, Asked: asked}); err != nil {
			t.Fatal(err)
		}
		outcome, status, text := refusal(s, Plan{})
		why := text.String()
		if refused := why != ""; refused != (c.layer != "") || refused && (outcome != Refused || status != StatusPolicy ||
			!strings.Contains(why, "/data/sub (f:7:1) leads through the link /data/sub to /secret: write /secret")) {
			t.Errorf("%s: %s %d %q", name, outcome, status, why)
		}
		if list := violations(s, Plan{}); c.layer != "" && (len(list) != 1 || list[0].Layer != c.layer) {
			t.Errorf("%s: %v", name, list)
		}
		s.Relaxed = true
		if outcome, _, why := refusal(s, Plan{}); outcome != OK {
			t.Errorf("%s, relaxed: %q", name, why)
		}
	}
}

// The links on the way to all that the policy names are known, so that nobody
// moves them.
func TestTheLinksOfAPolicyAreKnown(t *testing.T) {
	resolve := func(p string) (jail.Resolved, error) {
		return jail.Resolved{Path: "/real", Links: []string{p, "/next"}}, nil
	}
	_, paths, err := Canonical(Policy{
		Base: []caps.Entry{entryOf(t, "fs:read:/a")},
		Layers: []*caps.Layer{{
			Allow: []caps.Entry{entryOf(t, "fs:read:/b")}, Deny: []caps.Entry{entryOf(t, "fs:read:/c")},
			Leases: []caps.Lease{{Entry: entryOf(t, "fs:read:/d")}},
		}},
	}, Resolvers{Files: resolve, Programs: resolve})
	if want := []string{"/a", "/b", "/c", "/d", "/next"}; err != nil || !slices.Equal(paths.Links, want) {
		t.Errorf("%q, %v; want %q", paths.Links, err, want)
	}
}
