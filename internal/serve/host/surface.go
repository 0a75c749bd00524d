package host

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
)

// surfaceVersion is that of the document of GET /capabilities.
const surfaceVersion = "1"

// Surface implements [service.Host]: what a bundle that asks for everything
// would be left by all that narrows every request of the caller.
func (h *Host) Surface(ctx context.Context, who *service.Caller, d service.Door) (*service.Surface, error) {
	a := h.as(who.Tenant, unsaid)
	c, err := outline(a.Reader, who, d)
	if err != nil {
		return nil, h.unavailable(ctx, who, err)
	}
	plan, err := launcher.NewPlan(c.Policy)
	if err != nil {
		return nil, h.unavailable(ctx, who, err)
	}
	s := &service.Surface{
		SchemaVersion: surfaceVersion, Grant: DoorGrant(c.Config, d), Limits: plan.Limits.Map(),
		Layers: []string{},
	}
	for _, l := range c.Policy.Layers {
		s.Layers = append(s.Layers, l.Name)
	}
	terms := plan.Effective.Constraints().Map()
	for f := range caps.NumFamilies {
		s.Families = append(s.Families, surfaceOf(plan, f, terms))
	}
	if exec := &s.Families[caps.Exec]; exec.Available {
		has, err := h.lane.tried(ctx, a, c, h.now)
		if err != nil {
			return nil, h.unavailable(ctx, who, err)
		}
		if !has { // a run that holds it ends with 78
			exec.Available, exec.TakenBy, exec.Verbs, exec.Constraints = false, "lane", []string{}, nil
		}
	}
	tellSurface(h.places(), who, c, s)
	return s, nil
}

// outline is the composition of a bundle that asks for everything, under what
// narrows every request: what an agent's own override takes is not in it.
func outline(a *compose.Reader, who *service.Caller, d service.Door) (*compose.Composition, error) {
	c := &compose.Composition{}
	if err := a.Settle(c); err != nil {
		return nil, err
	}
	for f := range caps.NumFamilies {
		scope := "*"
		if f == caps.FS {
			scope = "/"
		}
		c.Policy.Base = append(c.Policy.Base, caps.Entry{Grant: caps.Grant{Family: f, Modes: caps.AllModes(f), Scope: scope}})
	}
	protected, err := a.Protected(c, nil)
	if err != nil {
		return nil, err
	}
	c.Policy.Layers = []*caps.Layer{protected, {Name: "config", Limits: c.Config.Limits}}
	every, err := a.OverrideLayer(c, c.Home.Override("_default"), true, nil)
	if err != nil {
		return nil, err
	}
	if every != nil {
		c.Policy.Layers = append(c.Policy.Layers, every)
	}
	profiles, err := a.ProfileLayers(c, nil)
	if err != nil {
		return nil, err
	}
	door, err := doorLayers(a, c, who, d)
	c.Policy.Layers = slices.Concat(c.Policy.Layers, profiles, door)
	return c, err
}

// surfaceOf is one family of a surface.
func surfaceOf(plan launcher.Plan, f caps.Family, terms map[string]int64) service.SurfaceFamily {
	meta := caps.MetadataOf(f)
	d := service.SurfaceFamily{
		Name: f.String(), Category: meta.Category, Tier: meta.Tier.String(),
		Destructive: meta.Destructive, NetworkFacing: meta.NetworkFacing, SandboxSafe: meta.SandboxSafe,
		Effects: []string{}, EffectDefault: caps.EffectOf(f, 0).Words()[0], Verbs: []string{},
	}
	left := plan.Effective.Any(f)
	if left {
		d.Effects = orNoWords(effectsLeft(plan.Effective, f).Words())
	} else {
		d.TakenBy = takerOf(plan, f)
	}
	for _, t := range caps.Tools() {
		if t.Family != f || !left {
			continue
		}
		e := plan.Effective.Explain(caps.Request{Family: caps.Tool, Name: t.Scope()})
		if e.Allow {
			d.Verbs = append(d.Verbs, t.Name)
		} else if i := slices.IndexFunc(e.Votes, func(v caps.Vote) bool { return !v.Allow }); i >= 0 && d.TakenBy == "" {
			d.TakenBy = e.Votes[i].Layer
		}
	}
	if d.Available = len(d.Verbs) > 0; d.Available {
		d.TakenBy = ""
		d.Constraints = constraintsOf(plan, f, terms)
	}
	return d
}

// takerOf is the layer that took the last of a family.
func takerOf(plan launcher.Plan, f caps.Family) string {
	for _, c := range slices.Backward(plan.Changes) {
		if c.Grant.Family == f && c.Kind == caps.Revoked {
			return c.Layer
		}
	}
	return ""
}

// constraintsOf says what of a family is left, where that is not all of it, and
// on which terms.
func constraintsOf(plan launcher.Plan, f caps.Family, terms map[string]int64) map[string]any {
	of := func(grants []caps.Grant) []string {
		return launcher.GrantStrings(slices.DeleteFunc(slices.Clone(grants), func(g caps.Grant) bool {
			return g.Family != f
		}))
	}
	out := map[string]any{}
	if allowed := of(plan.Effective.Grants()); !slices.Equal(allowed, of(plan.Base.Grants())) {
		out["allow"] = allowed
	}
	if except := of(plan.Effective.Except()); len(except) > 0 {
		out["except"] = except
	}
	for key, n := range terms {
		if rest, is := strings.CutPrefix(key, f.String()+"."); is {
			out[rest] = n
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func orNoWords(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// decided refuses to begin where a request could not: what its grant starts from
// is judged before the first one comes.
func (h *Host) Decided() error {
	for _, d := range []service.Door{service.HTTP, service.MCP} {
		who := &service.Caller{Tenant: h.runner.Tenant}
		c, err := outline(h.as(who.Tenant, nil).Reader, who, d)
		if err == nil {
			_, err = launcher.NewPlan(c.Policy)
		}
		if err != nil {
			return fmt.Errorf("refusing to serve: %w", err)
		}
	}
	return nil
}
