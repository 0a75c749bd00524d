package ask

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/effect/jail"
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

func textOf(t *rapid.T, v any, err error) string {
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
		others := s.Without(HomeAt(homeOfTests))
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

// Where a link of the policy leads is not told, whatever it is asked by; nor is a
// path looked up that others ask about.
func TestAnswersForOthersFollowNoLink(t *testing.T) {
	fs := func(path string) caps.Entry {
		return caps.Entry{Grant: caps.Grant{Family: caps.FS, Modes: caps.Modes(caps.Read), Scope: path}}
	}
	s := &Subject{
		Bundle: &bundles.Bundle{Manifest: &bundles.Manifest{}}, Programs: jail.Canonical,
		Policy: run.Policy{Base: []caps.Entry{fs("/mnt/secret")}},
		Paths:  run.Paths{Aliases: []jail.Alias{{Written: "/srv/link", Canonical: "/mnt/secret"}}},
	}
	others := s.Without(HomeAt(homeOfTests))
	for path, allowed := range map[string]bool{"/srv/link/x": true, "/srv/linked": false, "/etc/passwd/x": false} {
		e, err := Explain(others, Query{Text: path})
		if err != nil || e.Allow != allowed {
			t.Fatalf("%s: %+v %v", path, e, err)
		}
		if p, err := json.Marshal(e); err != nil || strings.Contains(string(p), "/mnt") {
			t.Errorf("%s: told is %s %v", path, p, err)
		}
	}
	held, err := Show(others)
	if err != nil || !slices.Equal(held.Effective, []string{"fs:read:/srv/link"}) {
		t.Errorf("%+v %v", held, err)
	}
	s.Params = map[string]string{"data": "/srv/link"} // what the operator put there is not told either
	others = s.Without(HomeAt(homeOfTests))
	if held, err = Show(others); err != nil || !slices.Equal(held.Effective, []string{"fs:read:{data}"}) {
		t.Errorf("%+v %v", held, err)
	}
	if e, err := Explain(others, Query{Text: "/mnt/secret/x"}); err != nil || e.Scope != "{data}" {
		t.Errorf("the value of a placeholder: %+v %v", e, err)
	}
	if held, err := Show(s); err != nil || !slices.Equal(held.Effective, []string{"fs:read:/mnt/secret"}) {
		t.Errorf("control: %+v %v", held, err)
	}
	if _, err := Explain(s, Query{Text: "/etc/passwd/x"}); err == nil {
		t.Error("control: who operates is not told that the path leads through a file")
	}
}
