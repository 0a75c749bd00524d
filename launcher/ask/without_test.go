package ask

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/launcher/places"
	"runloop.dev/rlp/launcher/run"
)

const homeOfTests = "/home/u/.runloop"

// drawSubject is an agent whose layers are files of the home, under the layer that
// protects it.
func drawSubject(t *rapid.T) *Subject {
	p := drawPolicy(t)
	p.Layers = append([]*caps.Layer{policy.Protected(homeOfTests, policy.DefaultTenant)}, p.Layers...)
	for _, l := range p.Layers {
		for _, list := range [][]caps.Entry{l.Allow, l.Deny, l.Spare} {
			for i := range list {
				list[i].Pos.File = homeOfTests + "/caps/overrides/" + list[i].Pos.File
			}
		}
		for i := range l.Bounds {
			l.Bounds[i].Pos.File = homeOfTests + "/caps/overrides/" + l.Bounds[i].Pos.File
		}
	}
	return &Subject{
		Bundle: &bundles.Bundle{Manifest: &bundles.Manifest{}}, Policy: p, Domains: policy.BuiltinDomains(),
		Override: homeOfTests + "/caps/overrides/x.toml", Programs: jail.Canonical,
	}
}

func textOf(t rapid.TB, v any, err error) string {
	t.Helper()
	p, jsonErr := json.Marshal(v)
	if err != nil || jsonErr != nil {
		t.Fatal(err, jsonErr)
	}
	return string(p)
}

// What an answer for who does not operate says of the decision is what it is, and
// it names neither the home nor the layer that protects it.
func TestAnswersForOthersSayTheSameAndNameNoPlace(t *testing.T) {
	named := 0
	rapid.Check(t, func(t *rapid.T) {
		s := drawSubject(t)
		q := Query{Text: rapid.SampledFrom([]string{
			"/in/x", "/out/deep/x/y", "kb_put notes", "https://a.example/",
			"exec_run", "time", "model local:echo", "/proc/self/mem",
		}).Draw(t, "request"), Now: time.Unix(0, 0)}
		whole, err := Explain(s, q)
		if err != nil {
			t.Fatal(err)
		}
		others := s.Without(places.Of(homeOfTests))
		told, err := Explain(others, q)
		text := textOf(t, told, err)
		held, err := Show(others)
		text += textOf(t, held, err)
		if strings.Contains(text, homeOfTests) || strings.Contains(text, `"`+caps.ProtectedLayer+`"`) {
			t.Fatalf("told is %s", text)
		}
		layer := whole.Layer
		if layer == caps.ProtectedLayer && !slices.ContainsFunc(told.Votes, func(v caps.Vote) bool { return !v.Allow }) {
			layer = caps.HostLayer
		}
		if told.Allow != whole.Allow || layer != caps.ProtectedLayer && told.Layer != layer {
			t.Fatalf("others are told %v by %s, and it is %v by %s", told.Allow, told.Layer, whole.Allow, whole.Layer)
		}
		if strings.Contains(textOf(t, whole, nil), homeOfTests) {
			named++
		}
	})
	if named == 0 {
		t.Error("control: nothing names the home to who operates")
	}
}

// Where a link of the policy leads and what a placeholder stands for is not told,
// nor whether a path that is guessed is that; what a launch does is.
func TestAnswersForOthersFollowNoLink(t *testing.T) {
	fs := func(path string) caps.Entry {
		return caps.Entry{Grant: caps.Grant{Family: caps.FS, Modes: caps.Modes(caps.Read), Scope: path}}
	}
	s := &Subject{
		Bundle: &bundles.Bundle{Manifest: &bundles.Manifest{}}, Programs: jail.Canonical,
		Policy: run.Policy{Base: []caps.Entry{fs("/mnt/secret"), fs("/opt/own")}},
		Paths: run.Paths{Redirects: []run.Redirect{{
			Family: caps.FS, Written: "/srv/link", Path: "/mnt/secret", Link: "/srv/link",
		}}},
	}
	told := func(name string) {
		t.Helper()
		others := s.Without(places.Of(homeOfTests))
		e, err := Explain(others, Query{Text: name + "/x"})
		text := textOf(t, e, err)
		if !e.Allow || e.Scope != name || e.Refused != "" || (e.Untold == "") != s.Relaxed {
			t.Errorf("%s: %s", name, text)
		}
		if e, err := Explain(others, Query{Text: "/opt/own/x"}); err != nil || !e.Allow {
			t.Errorf("a path that is told as it is: %+v %v", e, err)
		}
		held, err := Show(others)
		text += textOf(t, held, err)
		for _, hidden := range append(s.values(), "/mnt") {
			if strings.Contains(text, hidden) {
				t.Errorf("%s: told is %s", name, text)
			}
		}
		var refusals []string
		for _, guess := range append(s.values(), "/mnt/secret", "/etc/passwd", "/srv/linked") {
			_, err := Explain(others, Query{Text: guess + "/x"})
			if err == nil {
				t.Fatalf("%s is answered", guess)
			}
			refusals = append(refusals, strings.ReplaceAll(err.Error(), guess, "GUESS"))
		}
		if len(slices.Compact(refusals)) != 1 {
			t.Errorf("guesses are told apart: %q", refusals)
		}
	}
	told("/srv/link")
	s.Relaxed = true
	told("/srv/link")
	s.Params = map[string]string{"data": "/srv/link", "all": "/srv"} // the longest value counts
	told("{data}")
	s.Paths, s.Params["data"] = run.Paths{}, "/mnt/secret"
	told("{data}")
	whole := []string{"fs:read:/mnt/secret", "fs:read:/opt/own"}
	if held, err := Show(s); err != nil || !slices.Equal(held.Effective, whole) {
		t.Errorf("control: %+v %v", held, err)
	}
	if _, err := Explain(s, Query{Text: "/etc/passwd/x"}); err == nil {
		t.Error("control: who operates is not told that the path leads through a file")
	}
	s.Params = nil
	for path, allowed := range map[string]bool{"/mnt/secret/x": true, "/mnt/secrets": false} {
		if e, err := Explain(s.Without(places.Of(homeOfTests)), Query{Text: path}); err != nil || e.Allow != allowed {
			t.Errorf("control: where every path is told, %s: %+v %v", path, e, err)
		}
	}
}

// values are those of placeholders.
func (s *Subject) values() []string { return slices.Sorted(maps.Values(s.Params)) }
