package ask

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/analysis"
	"runloop.dev/rlp/launcher/places"
	"runloop.dev/rlp/launcher/run"
)

// An Override is the operator's own override of an agent.
type Override struct {
	Agent  string `json:"agent"`
	Path   string `json:"path"`
	Text   string `json:"text"`
	Digest string `json:"digest"` // SHA-256 of the text; "none": there is no override
	Change *Draft `json:"change,omitempty"`
}

// Without is o for somebody who is not told where the home is: a text that names it
// is not told either.
func (o *Override) Without(n *places.Names) *Override {
	told := *o
	told.Path, told.Text = n.File(o.Path), withheld(n, o.Text)
	return &told
}

// withheld is the text of a policy, which is told as it is or not at all.
func withheld(n *places.Names, text string) string {
	if n.Holds(text) {
		return "# it names places of this host, which only those who operate it are told\n"
	}
	return text
}

// A Draft is what would be, or is, in the place of an override.
type Draft struct {
	Digest   string   `json:"digest"`
	Narrower bool     `json:"narrower"` // it leaves nothing that is not left now
	Taken    []string `json:"taken"`
	Given    []string `json:"given_back"`
	Wider    []string `json:"wider"` // why it is not narrower: what any agent could have by it, not this one alone
	Left     []string `json:"left"`
	Unset    []string `json:"params_unset"` // what they stand for is in none of the lists
	Limits   []string `json:"limits"`
	Notes    []string `json:"notes"`
	Saved    bool     `json:"saved"`
	Previous string   `json:"previous,omitempty"` // where what was there before is kept

	refused []string // why no agent could be launched under it
}

// A Trial is a text in the place of an override.
type Trial struct {
	Text   []byte // nil: none is tried
	Save   bool   // it takes that place
	Narrow bool   // unless it gives anything back
	Was    string // unless what is there has not this digest; "": whatever is there
}

// MayReplace refuses what is not to be saved in the place of o.
func (t *Trial) MayReplace(o *Override) error {
	if t.Was != "" && t.Was != o.Digest {
		return inputf("%s is not the one any more that was edited; look at it again, and edit that", o.Path)
	}
	if t.Narrow && !o.Change.Narrower {
		return inputf("it gives back what is taken away now, and --narrow forbids that: %s", strings.Join(o.Change.Wider,
			"; "))
	}
	if list := o.Change.refused; len(list) > 0 {
		return inputf("no launch is possible under it: %s", strings.Join(list, "; "))
	}
	return nil
}

// NoOverride is the digest of an override that there is not.
const NoOverride = "none"

// Digest is that of the text of an override; nil: there is none.
func Digest(text []byte) string {
	if text == nil {
		return NoOverride
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Compare says what text in the place of the override of now would change: then is
// the agent under it.
func Compare(now, then *Subject, text []byte) (*Draft, error) {
	old, made := now.override(), then.override()
	before, err := plan(now.Policy)
	if err != nil {
		return nil, err
	}
	after, err := plan(then.Policy)
	if err != nil {
		return nil, err
	}
	both := then.Policy
	if old != nil {
		both.Layers = append(slices.Clip(both.Layers), old)
	}
	shared, err := plan(both)
	if err != nil {
		return nil, err
	}
	d := &Draft{
		Digest: Digest(text), Left: orEmpty(after.Effective.Strings()), Unset: then.unset(), Limits: []string{},
		Notes: []string{},
	}
	d.Taken = without(before.Effective.Strings(), shared.Effective.Strings())
	d.Given = without(after.Effective.Strings(), shared.Effective.Strings())
	was, is := before.Limits.Map(), after.Limits.Map()
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if was[name] != is[name] {
			d.Limits = append(d.Limits, fmt.Sprintf("%s: %d, now %d", name, is[name], was[name]))
		}
	}
	for _, f := range then.Findings {
		d.Notes = append(d.Notes, f.String())
	}
	for _, name := range d.Unset {
		d.Notes = append(d.Notes, fmt.Sprintf("{%s} has no value under it: a request that gives none is refused; write %s = "+
			`"PATH" under [params], or give --param %s=PATH to rlp launch`, name, name, name))
	}
	d.Notes = append(d.Notes, then.starving(before, after)...)
	d.refused = then.refusals(before, after)
	for _, r := range d.refused {
		d.Notes = append(d.Notes, "no launch is possible under it: "+r)
	}
	d.Wider, err = wider(now, then, old, made)
	d.Wider, d.Narrower = orEmpty(d.Wider), len(d.Wider) == 0
	return d, err
}

// starving says of what after takes whole that a service refuses requests for it, which
// a launch does not, unless it does so already.
func (s *Subject) starving(before, after run.Plan) (notes []string) {
	imports, err := guest.Imports(s.Bundle.Wasm)
	if err != nil {
		return nil // which each launch says
	}
	var calls []string
	for _, im := range imports {
		calls = append(calls, im.Name)
	}
	if len(run.Starved(calls, before)) > 0 {
		return nil
	}
	for _, v := range run.Starved(calls, after) {
		notes = append(notes, "rlp serve refuses requests under it, and rlp launch runs with each such call denied: "+v.Message)
	}
	return notes
}

// refusals are the paths of the override of s for which every launch is refused: that
// are not written as they are meant, or not there. A path that was held before and is
// not there refused the launch already.
func (s *Subject) refusals(before, after run.Plan) (list []string) {
	if s.Relaxed {
		return nil
	}
	for _, f := range s.Findings {
		if f.Code == policy.CodePathDotDot && f.Path == s.Override {
			list = append(list, f.String())
		}
	}
	for _, r := range s.Paths.Redirected() {
		if r.Pos.File == s.Override {
			list = append(list, r.String())
		}
	}
	held := before.Effective.Grants()
	for _, g := range after.Effective.Grants() {
		pos, missing := s.Paths.Missing[g.Scope]
		same := func(h caps.Grant) bool { return h.Family == g.Family && h.Scope == g.Scope }
		if g.Family != caps.FS || !missing || pos.File != s.Override && slices.ContainsFunc(held, same) {
			continue
		}
		list = append(list, fmt.Sprintf("%s: %s is granted and not there; make it, or take it out", pos, g.Scope))
	}
	return list
}

// wider lists what made leaves and old does not, whatever it is that an agent
// asks for, in the words of an override.
func wider(now, then *Subject, old, made *caps.Layer) ([]string, error) {
	everything := run.Policy{Base: analysis.Everything(now.Domains)}
	held := func(layers ...*caps.Layer) (run.Plan, error) {
		p := everything
		for _, l := range layers {
			if l != nil {
				p.Layers = append(p.Layers, l)
			}
		}
		p, _, err := run.Canonical(p, run.Resolvers{Files: jail.Canonical, Programs: now.Programs})
		if err != nil {
			return run.Plan{}, hostErr(err)
		}
		return plan(p)
	}
	alone, err := held(made)
	if err != nil {
		return nil, err
	}
	both, err := held(made, old)
	if err != nil {
		return nil, err
	}
	return append(widerParams(now, then), alone.Beyond(both)...), nil
}

// widerParams are the placeholders that stand for something else, or for nothing
// on one side: of what they stand for nothing can be compared.
func widerParams(now, then *Subject) (list []string) {
	was, is := now.unset(), then.unset()
	for _, name := range append(without(is, was), without(was, is)...) {
		list = append(list, fmt.Sprintf("[params] %s, which has a value in one of the two alone", name))
	}
	for _, name := range slices.Sorted(maps.Keys(then.Params)) {
		before, ok := now.Params[name]
		if value := then.Params[name]; ok && value != before && value != WithoutLinks(before) {
			list = append(list, fmt.Sprintf("[params] %s = %q, now %q", name, then.Params[name], before))
		}
	}
	return list
}

// override is the layer of the operator's override of s; nil: there is none.
func (s *Subject) override() *caps.Layer {
	for _, l := range s.Policy.Layers {
		if l.Name == "override:"+filepath.Base(s.Override) {
			return l
		}
	}
	return nil
}

func without(list, others []string) []string {
	return orEmpty(slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(others, s) }))
}
