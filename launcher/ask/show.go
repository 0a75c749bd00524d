package ask

import (
	"fmt"
	"slices"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/launcher/run"
)

// A Holding is what an agent asks for, what narrows it, and what it is left.
// Fields that are empty where nothing may be told of them say so.
type Holding struct {
	Agent       string           `json:"agent"`
	Base        []string         `json:"base"`
	Digest      string           `json:"bundle_digest"`
	Constraints map[string]int64 `json:"constraints"`
	Effective   []string         `json:"effective"`
	Except      []string         `json:"except,omitzero"` // nil: it is not told
	Hidden      []string         `json:"hidden_tools"`
	Layers      []Narrowing      `json:"layers"`
	Leases      []string         `json:"leases"`
	Limits      map[string]int64 `json:"limits"`
	Lower       []run.LowerLimit `json:"limits_lower"` // what the bundle asks more of than it gets
	Unset       []string         `json:"params_unset"`
	Redirected  []Redirect       `json:"redirected,omitzero"` // nil: it is not told
	Routes      []Route          `json:"routes"`
	Tools       []run.Attachment `json:"tools"`
	Version     string           `json:"version"`
	Plan        run.Plan         `json:"-"`
}

// A Narrowing is what one layer took away.
type Narrowing struct {
	Name    string           `json:"name"`
	Changes []run.Change     `json:"changes"`
	Limits  map[string]int64 `json:"limits"`
}

// Show says what a launch of s that were made now would hold.
func Show(s *Subject) (*Holding, error) {
	d, err := Hold(s.told(s.Policy))
	if err != nil {
		return nil, err
	}
	d.Agent, d.Version, d.Digest = s.Agent(), s.Bundle.Manifest.Version, s.Bundle.Digest
	d.Unset, d.Tools, d.Redirected = s.unset(), run.Attachments(d.Plan.Effective, s.Tools), redirects(s.Paths)
	if s.names != nil {
		d.without(s)
	}
	return d, nil
}

// Hold says what a launch under p would hold, of whatever agent.
func Hold(p run.Policy) (*Holding, error) {
	plan, err := plan(p)
	if err != nil {
		return nil, err
	}
	left := plan.Effective
	d := &Holding{
		Plan: plan, Base: orEmpty(plan.Base.Strings()), Effective: orEmpty(left.Strings()),
		Except: run.GrantStrings(left.Except()),
		Limits: plan.Limits.Map(), Lower: p.LowerLimits(plan.Limits), Hidden: hiddenTools(left),
		Constraints: left.Constraints().Map(), Leases: leasesIn(left, nil),
		Routes: routesIn(left, p.Routes), Layers: []Narrowing{},
	}
	changes := run.Flatten(plan.Changes)
	for _, l := range p.Layers {
		n := Narrowing{Name: l.Name, Changes: []run.Change{}, Limits: l.Limits.Map()}
		for _, ch := range changes {
			if ch.Layer == l.Name {
				n.Changes = append(n.Changes, ch)
			}
		}
		d.Layers = append(d.Layers, n)
	}
	return d, nil
}

// without takes out of d what is not told of s.
func (d *Holding) without(s *Subject) {
	d.Except, d.Redirected = nil, nil
	d.Leases = leasesIn(d.Plan.Effective, s)
	d.Base, d.Effective = s.names.Capabilities(d.Base), s.names.Capabilities(d.Effective)
	for i := range d.Tools {
		t := &d.Tools[i]
		t.Capability, t.Needs, t.Layer = s.names.Capability(t.Capability), s.names.Capabilities(t.Needs), s.layerName(t.Layer)
	}
	for _, l := range d.Layers {
		for i := range l.Changes {
			l.Changes[i].Capability = s.names.Capability(l.Changes[i].Capability)
		}
	}
}

func (s *Subject) unset() []string {
	names := []string{}
	for _, p := range s.Unset {
		names = append(names, p.Name)
	}
	return names
}

// A Diff is what each layer took away, or named in vain.
type Diff struct {
	Agent   string       `json:"agent"`
	Bounded []string     `json:"bounded"` // conditions and leases of what is kept
	Changes []run.Change `json:"changes"`
	Kept    []string     `json:"kept"`
}

// DiffOf is what a plan took away of what an agent asks for.
func DiffOf(agent string, plan run.Plan) *Diff {
	return &Diff{
		Agent: agent, Kept: orEmpty(plan.Effective.Strings()), Changes: run.Flatten(plan.Changes),
		Bounded: append(Conditions(plan.Effective.Constraints()), leasesIn(plan.Effective, nil)...),
	}
}

// A Redirect is a path of the policy that a link leads elsewhere.
type Redirect struct {
	Written string   `json:"written"`
	Path    string   `json:"path"`
	Link    string   `json:"link,omitempty"` // the first on the way; none of the root folder's own
	Layer   string   `json:"layer"`
	Source  caps.Pos `json:"source"`
}

// redirects are those of some families; of none: of all.
func redirects(paths run.Paths, of ...caps.Family) []Redirect {
	list := []Redirect{}
	for _, r := range paths.Redirects {
		if len(of) == 0 || slices.Contains(of, r.Family) {
			list = append(list, Redirect{r.Written, r.Path, r.Link, r.Layer, r.Pos})
		}
	}
	return list
}

// hiddenTools are the host calls that s leaves nobody, whatever is granted.
func hiddenTools(s caps.Set) []string {
	list := []string{}
	for _, tool := range caps.Tools() {
		if !s.Check(caps.Request{Family: caps.Tool, Name: tool.Scope()}).Allow {
			list = append(list, tool.Scope())
		}
	}
	return list
}

// leasesIn are the leases of a set in words, each with the layer that bounds by it,
// as they may be told of s; nil: as they are.
func leasesIn(set caps.Set, s *Subject) []string {
	list := []string{}
	for _, l := range set.HeldLeases() {
		list = append(list, s.lease(l)+" by "+set.LayerName(l.Layer))
	}
	return list
}

// lease is a lease in words, as they may be told of s; nil: as it is.
func (s *Subject) lease(l caps.Held) string {
	if s != nil {
		l.Grant.Scope = s.names.Path(l.Grant.Scope)
	}
	return LeaseText(l.Lease)
}

// LeaseText says what is leased, and until when or how often.
func LeaseText(l caps.Lease) string {
	text := l.Grant.String()
	if l.Expires != caps.Forever {
		text += " until " + time.UnixMilli(l.Expires).UTC().Format(time.RFC3339)
	}
	if l.MaxUses != caps.Unbounded {
		text += fmt.Sprintf(" at most %d times", l.MaxUses)
	}
	return text
}

// Conditions are constraints as they are written, in the order of their table.
func Conditions(x caps.Constraints) []string {
	lines := []string{}
	for c := range caps.NumConstraints {
		if v, ok := x.Get(c); ok {
			table, key := c.Key()
			lines = append(lines, fmt.Sprintf("%s.%s = %d", table, key, v))
		}
	}
	return lines
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
