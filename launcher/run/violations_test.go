package run

import (
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/wasi"
)

// Each reason why a policy refuses a launch is told with the capability that it is
// about and the layer that it comes from, and no other.
func TestAllReasonsOfARefusalAreTold(t *testing.T) {
	pos := caps.Pos{File: "f", Line: 2, Column: 1}
	taken := entriesOf(t, "kb:read:notes", "fs:read:/a")
	deny := []*caps.Layer{{Name: "l", Deny: taken}}
	both := entriesOf(t, "process:exec:/gone", "fs:read:/other", "fs:read:/gone", "process:exec:/bin/x")
	for name, c := range map[string]struct {
		spec *Spec
		want []string // layer, code, capability
		says string
	}{
		"nothing is wrong":      {&Spec{Policy: Policy{Base: taken}, FailOnEmpty: true}, nil, ""},
		"nothing was asked for": {&Spec{FailOnEmpty: true}, []string{"base caps_empty "}, emptyMessage},
		"nothing is left": {
			&Spec{Policy: Policy{Base: taken, Layers: deny}, FailOnEmpty: true},
			[]string{"l caps_empty kb:read:notes", "l caps_empty fs:read:/a"},
			"was taken away by l",
		},
		"nothing is left, and something was asked for in vain": {
			&Spec{Policy: Policy{Base: taken, Layers: append(deny[:1:1],
				&caps.Layer{Name: "o", Bounds: []caps.Bound{{Family: caps.KBRead, Modes: 1}}, Allow: entriesOf(t, "kb:read:notes",
					"kb:read:more")})}, FailOnEmpty: true},
			[]string{"l caps_empty kb:read:notes", "l caps_empty fs:read:/a"},
			"was taken away by l",
		},
		"nothing is left, as it may": {&Spec{Policy: Policy{Base: taken, Layers: deny}}, nil, ""},
		"a path is not there": {
			&Spec{
				Policy: Policy{Base: both},
				Paths:  Paths{Missing: map[string]caps.Pos{"/gone": pos}},
			},
			[]string{"base unavailable fs:read:/gone"},
			"granted and not there: /gone (f:2:1)",
		},
		"a path is not there, as may": {&Spec{
			Relaxed: true, Policy: Policy{Base: both},
			Paths: Paths{Missing: map[string]caps.Pos{"/gone": pos}},
		}, nil, ""},
		"no lane": {
			&Spec{Policy: Policy{Base: both}, ExecRefused: "no lane keeps programs"},
			[]string{"base unavailable process:exec:/bin/x", "base unavailable process:exec:/gone"},
			"no lane keeps programs",
		},
		"no lane is wanted": {&Spec{Policy: Policy{Base: taken}, ExecRefused: "no lane keeps programs"}, nil, ""},
	} {
		plan, err := NewPlan(c.spec.Policy)
		must(t, err)
		var got []string
		for _, v := range violations(c.spec, plan) {
			got = append(got, v.Layer+" "+v.Code.String()+" "+v.Capability)
			if !strings.Contains(v.Message, c.says) {
				t.Errorf("%s: %q", name, v.Message)
			}
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if outcome, _, why := refusal(c.spec, plan); (outcome == OK) != (c.want == nil) {
			t.Errorf("%s: refused with %q", name, why)
		}
	}
	if got := wordsAt(Plan{}, caps.FS, "/a"); got != "" {
		t.Errorf("what is not there is %q", got)
	}
}

// What the operator calls untrusted, and whom they trust, is asked of the calls;
// only files mark by their path.
func TestSourcesAreWhatTheOperatorCallsSo(t *testing.T) {
	kb, host, program := entryOf(t, "kb:read:drafts").Grant, entryOf(t, "network:https:a.example").Grant,
		entryOf(t, "process:exec:/bin/x").Grant
	taint := Taint{
		Untrusted: []caps.Source{
			{Word: caps.SourceInput},
			{Word: "kb", Grant: kb},
			{Word: "exec", Grant: program},
			{Word: "fs", Grant: entryOf(t, "fs:read:/in").Grant},
		},
		Trusted: []caps.Grant{host},
	}
	s, err := taint.sources()
	must(t, err)
	if !s.Input || !s.Untrusted.Covers(kb) || !s.Untrusted.Covers(program) || s.Untrusted.Covers(host) ||
		!s.Trusted.Covers(host) || s.Trusted.Covers(kb) {
		t.Errorf("%+v", s)
	}
	if got := taint.Folders(); !slices.Equal(got, []string{"/in"}) {
		t.Errorf("folders %q", got)
	}
	none := Taint{}
	if s, err = none.sources(); err != nil || s.Input || s.Untrusted.Covers(kb) || s.Trusted.Covers(host) {
		t.Errorf("control: %+v, %v", s, err)
	}
}

// Why nothing is linked out of an untrusted folder is recorded as that.
func TestLinkingOutOfAnUntrustedFolderSaysWhy(t *testing.T) {
	for to, want := range map[string]wasi.Errno{"in/deep/e.txt": wasi.Success, "own/e.txt": wasi.EACCES} {
		dir, fs, g := files(t)
		if e := fs.Link(dir+"/in/a.txt", false, dir+"/"+to); e != want || e != wasi.Success &&
			g.reason() != "untrusted_context" {
			t.Errorf("%s: errno %d, %s", to, e, g.reason())
		}
	}
}
