package run

import (
	"fmt"
	"maps"
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
)

// Defaults that hold when no layer says anything.
const (
	DefaultWallMS      = 300_000
	DefaultMemoryBytes = 256 << 20
	DefaultStdioBytes  = 1 << 20
)

// A Plan is what a launch would enforce: what the bundle asks for, what each
// layer took away, and what is left. Lint, diff, explain and --dry-run print
// the very Plan that [Launch] enforces.
type Plan struct {
	Base      caps.Set
	Effective caps.Set
	Changes   []caps.Change
	Limits    caps.Limits
	// NoTools are what layers deny of tools that there are not: nothing is taken
	// away by it.
	NoTools []NoTool
}

// Policy is what a plan is made of.
type Policy struct {
	// Base is what the bundle asks for: policy.caps and [requires] together.
	Base       []caps.Entry
	BaseLimits caps.Limits
	// Routes are those of the base. What is left of base and layers says which are
	// open: [caps.Set.Route].
	Routes []caps.Route
	// Layers narrow, in the order in which they are named in explanations.
	Layers []*caps.Layer
	// Asked is how many of the last Layers are the words of somebody who is not
	// the operator: what they say of a limit lowers it, and lifts no default.
	Asked int
	// Within is what the run that launches this one holds and has left; nil:
	// nobody launches it but the operator. Its paths are those of a set already,
	// and are never resolved again: the launching run may have moved a link since.
	Within *caps.Layer
	// Tools are the scopes of the tools that there are beside the host calls:
	// "tools:ID" for those of the bundle, "mcp:NAME/" for each server. Nil: they
	// are not known, and whatever such a scope names is taken to be there.
	Tools []string
	// Endless is a run that has no wall time unless somebody gives it one.
	Endless bool
	// Confined is a run of a program, whose memory is its control group's: as much as
	// a lane gives unless somebody says less.
	Confined bool
	// Present says that the bundle holds a policy.caps.
	Present bool
}

// recorded is what the record of a run says of all that narrowed it: the limits
// of the base stand there as a layer's, by its name.
func (p Policy) recorded() []*caps.Layer {
	if p.BaseLimits == (caps.Limits{}) {
		return p.all()
	}
	return append([]*caps.Layer{{Name: "base", Limits: p.BaseLimits}}, p.all()...)
}

// NewPlan intersects the base with every layer. It is pure: the same policy
// gives the same plan.
func NewPlan(p Policy) (Plan, error) {
	base, err := caps.Base(p.Base, p.BaseLimits)
	if err != nil {
		return Plan{}, fmt.Errorf("planning: %w", err)
	}
	plan := Plan{Base: base, Effective: base}
	all := make([][]caps.Change, 0, len(p.Layers)) // joined once, for there may be many
	for _, l := range p.all() {
		narrowed, changes, err := plan.Effective.Narrow(l)
		if err != nil {
			return Plan{}, fmt.Errorf("planning: applying %s: %w", l.Name, err)
		}
		plan.Effective = narrowed
		all = append(all, changes)
	}
	plan.Changes = slices.DeleteFunc(slices.Concat(all...), func(c caps.Change) bool {
		return c.Grant.Family == caps.Tool && c.Kind == caps.Revoked && !p.isTool(c.Grant.Scope)
	})
	plan.NoTools = p.noTools()
	plan.Limits = withDefaults(plan.Effective.Limits(), p)
	if p.Within == nil && !setByLayer(p.Operators(), caps.MaxDepth) { // no bundle has more runs below it than the default
		if most, set := plan.Limits.Get(caps.MaxDepth); set {
			plan.Limits = plan.Limits.With(caps.MaxDepth, min(most, hostcalls.DefaultDepth))
		}
	}
	return plan, nil
}

// CallerLayer is the name of what whoever asks for a launch takes away by it.
const CallerLayer = "caller"

// Operators are the layers that the operator wrote: what they say of a limit
// takes the place of its default. What an agent asks for that launches another
// one is none of them, and neither is what others ask of a service.
func (p *Policy) Operators() []*caps.Layer {
	if p.Within == nil {
		return p.Layers[:len(p.Layers)-p.Asked]
	}
	return slices.DeleteFunc(slices.Clone(p.Layers), func(l *caps.Layer) bool { return l.Name == CallerLayer })
}

// all is every layer, that of the launching run last.
func (p *Policy) all() []*caps.Layer {
	if p.Within == nil {
		return p.Layers
	}
	return append(p.Layers[:len(p.Layers):len(p.Layers)], p.Within)
}

// Beyond lists what p leaves and q, which leaves no more, does not, each in the
// words of a policy.
func (p Plan) Beyond(q Plan) []string {
	var list []string
	is, may := p.Limits.Map(), q.Limits.Map()
	for _, name := range slices.Sorted(maps.Keys(may)) {
		if n, bound := is[name]; !bound {
			list = append(list, fmt.Sprintf("[limits] %s, now %d", name, may[name]))
		} else if n > may[name] {
			list = append(list, fmt.Sprintf("[limits] %s = %d, now %d", name, n, may[name]))
		}
	}
	grants := slices.DeleteFunc(p.Effective.Strings(), func(s string) bool {
		return slices.Contains(q.Effective.Strings(),
			s)
	})
	list = append(list, grants...)
	if len(list) == 0 && p.Effective.Digest() != q.Effective.Digest() {
		list = []string{"[leases] or [constraints]"}
	}
	return list
}

// Ignored are the changes that a layer asked for and that are not in the base.
func (p Plan) Ignored() []caps.Change {
	var list []caps.Change
	for _, c := range p.Changes {
		if c.Kind == caps.Ignored {
			list = append(list, c)
		}
	}
	return list
}

// withDefaults holds the defaults. A bundle may stay below one; only a layer,
// which is the operator's, may go above it.
func withDefaults(l caps.Limits, p Policy) caps.Limits {
	layers := p.Operators()
	for _, d := range []struct {
		limit caps.Limit
		value int64
	}{
		{caps.WallTimeMS, DefaultWallMS},
		{caps.MemoryBytes, DefaultMemoryBytes},
		{caps.StdoutMaxBytes, DefaultStdioBytes},
		{caps.StderrMaxBytes, DefaultStdioBytes},
	} {
		without := p.Endless && d.limit == caps.WallTimeMS || p.Confined && d.limit == caps.MemoryBytes
		if !setByLayer(layers, d.limit) && !without {
			l = l.Min(caps.Limits{}.With(d.limit, d.value))
		}
	}
	return l
}

func setByLayer(layers []*caps.Layer, k caps.Limit) bool {
	for _, l := range layers {
		if _, set := l.Limits.Get(k); set {
			return true
		}
	}
	return false
}

// holds reports whether anything of a family is left.
func holds(s caps.Set, f caps.Family) bool {
	return slices.ContainsFunc(s.Grants(), func(g caps.Grant) bool { return g.Family == f })
}
