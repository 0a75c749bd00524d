package run

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/jail"
)

// A lookup resolves paths by putting a word before them, and remembers which it
// was asked.
type lookup struct {
	before string
	asked  []string
	err    error
}

func (l *lookup) resolve(written string) (jail.Resolved, error) {
	l.asked = append(l.asked, written)
	if l.err != nil && strings.HasPrefix(written, "/bad") {
		return jail.Resolved{}, l.err
	}
	return jail.Resolved{Path: l.before + written, Links: []string{l.before}, Missing: strings.HasPrefix(written,
		"/gone")}, nil
}

// lookups are one for each kind of path.
type lookups struct{ files, programs, asked, base, basePrograms lookup }

func lookupsOf() *lookups {
	return &lookups{
		lookup{before: "/f"},
		lookup{before: "/p"},
		lookup{before: "/a"},
		lookup{before: "/b"},
		lookup{before: "/q"},
	}
}

func entriesOf(t *testing.T, texts ...string) (list []caps.Entry) {
	for i, text := range texts {
		e := entryOf(t, text)
		e.Pos = caps.Pos{File: "f", Line: i + 1, Column: 1}
		list = append(list, e)
	}
	return list
}

func scopes(list []caps.Entry) string {
	var all []string
	for _, e := range list {
		all = append(all, e.Grant.Scope)
	}
	return strings.Join(all, " ")
}

// Each path is resolved by who may learn where it leads: the bundle's by its own,
// those of others than the operator as they ask, programs as programs, and a
// stranger is told of the programs of the base alone. What has no path, and the
// widest of all, is not looked up.
func TestPathsAreResolvedForWhoWroteThem(t *testing.T) {
	words := []string{"fs:read:/x", "process:exec:/x", "kb:read:notes", "fs:read:/", "process:exec:*"}
	layer := func(name string) *caps.Layer {
		return &caps.Layer{Name: name, Allow: entriesOf(t, words...), Leases: []caps.Lease{
			{Entry: entriesOf(t, words[0])[0]},
			{Entry: entriesOf(t, words[1])[0]},
		}}
	}
	for name, c := range map[string]struct {
		layer        *caps.Layer
		asked        int
		within       *caps.Layer
		whole        bool // all resolvers are there
		base, layers string
	}{
		"an operator's":         {layer("l"), 0, nil, true, "/b/x /q/x notes / *", "/f/x /p/x notes / *"},
		"an operator's, of few": {layer("l"), 0, nil, false, "/f/x /p/x notes / *", "/f/x /p/x notes / *"},
		"the bundle's":          {layer(BaseLayer), 0, nil, true, "/b/x /q/x notes / *", "/b/x /q/x notes / *"},
		"a stranger's":          {layer("l"), 1, nil, true, "/b/x /q/x notes / *", "/a/x /q/x notes / *"},
		"a stranger's, of few":  {layer("l"), 1, nil, false, "/f/x /p/x notes / *", "/f/x /p/x notes / *"},
		"an agent's": {
			layer(CallerLayer), 0, &caps.Layer{}, true, "/b/x /q/x notes / *",
			"/a/x /p/x notes / *",
		},
		"an operator's, for a child": {layer("l"), 0, &caps.Layer{}, true, "/b/x /q/x notes / *", "/f/x /p/x notes / *"},
		"the bundle's, for a stranger": {
			layer(BaseLayer), 0, &caps.Layer{}, false, "/f/x /p/x notes / *",
			"/f/x /p/x notes / *",
		},
	} {
		l := lookupsOf()
		r := Resolvers{Files: l.files.resolve, Programs: l.programs.resolve}
		if c.whole {
			r.Asked, r.Base, r.BasePrograms = l.asked.resolve, l.base.resolve, l.basePrograms.resolve
		}
		p := Policy{Base: entriesOf(t, words...), Layers: []*caps.Layer{c.layer}, Asked: c.asked, Within: c.within}
		got, paths, err := Canonical(p, r)
		must(t, err)
		leases := got.Layers[0].Leases
		if scopes(got.Base) != c.base || scopes(got.Layers[0].Allow) != c.layers || leases[0].Grant.Scope+" "+
			leases[1].Grant.Scope+" notes / *" != c.layers {
			t.Errorf("%s: base %q, allowed %q, leases %v", name, scopes(got.Base), scopes(got.Layers[0].Allow), leases)
		}
		if scopes(p.Base) != "/x /x notes / *" || scopes(c.layer.Allow) != "/x /x notes / *" ||
			c.layer.Leases[0].Grant.Scope != "/x" || p.Layers[0] != c.layer {
			t.Errorf("%s: the policy that was given became %+v", name, p)
		}
		if paths.AsWritten != c.whole {
			t.Errorf("%s: taken as written: %v", name, paths.AsWritten)
		}
		for _, links := range paths.Links {
			if links == "/p" || links == "/q" {
				t.Errorf("%s: the links of programs are among %q", name, paths.Links)
			}
		}
		for _, asked := range [][]string{l.files.asked, l.programs.asked} {
			if len(asked) > 1 {
				t.Errorf("%s: looked up %q", name, asked)
			}
		}
	}
}

// A stranger's name of a program is the base's if that grants it by any name, and
// otherwise stays as it was written, whether anything is there or not.
func TestAStrangersProgramsStayAsWritten(t *testing.T) {
	programs := func(p string) (jail.Resolved, error) {
		switch p {
		case "/bin/sh", "/usr/bin/sh":
			return jail.Resolved{Path: "/usr/bin/dash"}, nil
		case "/bin/bad":
			return jail.Resolved{}, errors.New("loop")
		}
		return jail.Resolved{Path: "/elsewhere" + p}, nil
	}
	same := func(p string) (jail.Resolved, error) { return jail.Resolved{Path: p}, nil }
	words := entriesOf(t, "process:exec:/bin/sh", "process:exec:/bin/other", "process:exec:/bin/bad")
	p := Policy{
		Base:   entriesOf(t, "process:exec:/usr/bin/sh", "fs:read:/elsewhere/bin/other"),
		Layers: []*caps.Layer{{Name: "l", Allow: words}}, Asked: 1,
	}
	got, _, err := Canonical(p, Resolvers{Files: same, Programs: programs})
	if err != nil || scopes(got.Layers[0].Allow) != "/usr/bin/dash /bin/other /bin/bad" {
		t.Errorf("%v, %v", got.Layers, err)
	}
	p.Layers[0].Allow = words[:2]
	p.Asked = 0
	if got, _, err = Canonical(p, Resolvers{Files: same, Programs: programs}); err != nil ||
		scopes(got.Layers[0].Allow) != "/usr/bin/dash /elsewhere/bin/other" {
		t.Errorf("control: %v, %v", got.Layers, err)
	}
}

// A path that leads nowhere ends the launch with its place, wherever the operator
// wrote it; what a stranger denies stays as it is written.
func TestPathsThatLeadNowhereAreTold(t *testing.T) {
	loop := errors.New("loop")
	bad := entriesOf(t, "fs:read:/ok", "fs:read:/bad")
	leases := []caps.Lease{{Entry: bad[1]}}
	for name, c := range map[string]struct {
		policy Policy
		fails  bool
	}{
		"base":                 {Policy{Base: bad}, true},
		"allowed":              {Policy{Layers: []*caps.Layer{{Allow: bad}}}, true},
		"leased":               {Policy{Layers: []*caps.Layer{{Leases: leases}}}, true},
		"denied":               {Policy{Layers: []*caps.Layer{{Deny: bad}}}, true},
		"denied by a stranger": {Policy{Layers: []*caps.Layer{{Deny: bad}}, Asked: 1}, false},
		"denied by an agent":   {Policy{Layers: []*caps.Layer{{Name: CallerLayer, Deny: bad}}, Within: &caps.Layer{}}, true},
	} {
		l := &lookup{before: "/f", err: loop}
		got, _, err := Canonical(c.policy, Resolvers{Files: l.resolve, Programs: l.resolve})
		var where *PathError
		if !c.fails {
			if err != nil || scopes(got.Layers[0].Deny) != "/ok /bad /f/ok" {
				t.Errorf("%s: %v, %v", name, got.Layers, err)
			}
			continue
		}
		if !errors.As(err, &where) || !errors.Is(err, loop) || where.Pos.Line != 2 || where.Path != "/bad" ||
			got.Base != nil || got.Layers != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is known of the paths: aliases in order and once, the first place that named
// what is not there, and what is not what it was written as.
func TestWhatIsKnownOfPaths(t *testing.T) {
	l := &lookup{before: "/f"}
	other := &lookup{before: "/p"}
	same := func(p string) (jail.Resolved, error) { return jail.Resolved{Path: p, Missing: true}, nil }
	denies := append(make([]caps.Entry, 0, 4), entriesOf(t, "fs:read:/d", "kb:read:notes")...)
	p := Policy{
		Base: entriesOf(t, "fs:read:/z", "fs:read:/gone", "fs:write:/z", "fs:read:/a", "fs:write:/gone",
			"process:exec:/gone", "kb:read:notes"),
		Layers: []*caps.Layer{{Name: "l", Deny: denies}},
	}
	got, paths, err := Canonical(p, Resolvers{Files: l.resolve, Programs: other.resolve})
	must(t, err)
	if want := []jail.Alias{
		{Written: "/a", Canonical: "/f/a"},
		{Written: "/gone", Canonical: "/f/gone"},
		{Written: "/z", Canonical: "/f/z"},
	}; !slices.Equal(paths.Aliases, want) {
		t.Errorf("aliases %v", paths.Aliases)
	}
	if len(paths.Missing) != 1 || paths.Missing["/f/gone"].Line != 2 {
		t.Errorf("missing %v", paths.Missing)
	}
	if len(paths.Redirects) != 6 || len(l.asked) != 4 || !slices.Equal(paths.Links, []string{"/f"}) {
		t.Errorf("redirects %v, looked up %v, links %q", paths.Redirects, l.asked, paths.Links)
	}
	if scopes(got.Layers[0].Deny) != "/d notes /f/d" || denies[:3][2].Grant.Scope != "" {
		t.Errorf("denied %q, and in the policy that was given %q", scopes(got.Layers[0].Deny), scopes(denies[:3]))
	}
	if got, paths, err = Canonical(Policy{Base: p.Base}, Resolvers{Files: same, Programs: same}); err != nil ||
		len(paths.Aliases)+len(paths.Redirects) > 0 || got.Base[0].Grant.Scope != "/z" {
		t.Errorf("control: %v, %v, %v", paths.Aliases, paths.Redirects, err)
	}
}
