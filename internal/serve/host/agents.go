package host

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
)

// A knownAgent is what was learnt of an installed one, for as long as its files
// are the same.
type knownAgent struct {
	folder, manifest compose.FileState
	bundle           *bundles.Bundle // without its files
	problem          error
}

// Agents implements [service.Host].
func (h *Host) Agents(ctx context.Context, who *service.Caller) ([]service.Agent, error) {
	return h.SomeAgents(ctx, who, service.AgentQuery{})
}

// SomeAgents implements [console.Host]: of those that are not asked for nothing
// is opened.
func (h *Host) SomeAgents(ctx context.Context, who *service.Caller, q service.AgentQuery) ([]service.Agent, error) {
	if err := h.there(); err != nil {
		return nil, h.unavailable(ctx, who, err)
	}
	a := h.as(who.Tenant, unsaid)
	at, err := a.Home()
	if err != nil {
		return nil, h.unavailable(ctx, who, err)
	}
	names, err := bundles.Installed(at.Agents())
	if err != nil {
		return nil, h.unavailable(ctx, who, err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return q.Name != "" && name != q.Name || name <= q.After })
	slices.Sort(names)
	if q.Limit > 0 {
		names = names[:min(len(names), q.Limit)]
	}
	list := make([]service.Agent, 0, len(names))
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		list = append(list, h.agent(a, at, who, name))
	}
	return list, nil
}

// agent describes an installed agent as it would be launched for a caller.
func (h *Host) agent(a *compose.Runner, at home.Home, who *service.Caller, name string) service.Agent {
	path := filepath.Join(at.Agents(), name)
	k := h.know(path)
	d := service.Agent{Name: name, Families: []string{}}
	if k.bundle == nil {
		d.Problem = h.problem(who, name, k.problem)
		return d
	}
	m := k.bundle.Manifest
	d.Version, d.Description, d.Digest, d.InputSchema = m.Version, m.Description, k.bundle.Digest,
		compose.InputSchema(m)
	for name, p := range m.Params {
		d.Params = append(d.Params, service.Param{Name: name, Kind: p.Kind, Description: p.Description})
	}
	slices.SortFunc(d.Params, func(a, b service.Param) int { return strings.Compare(a.Name, b.Name) })
	d.Signature = "unsigned"
	if k.bundle.Signed {
		d.Signature = "unsigned: there is a signature, and this version verifies none"
	}
	if m.Agent.String() != name {
		d.Problem = fmt.Sprintf("what is installed here calls itself %s; run rlp agent install again", m.Agent)
		return d
	}
	plan, err := h.planFor(a, who, path, k.bundle)
	if err != nil {
		d.Problem = h.problem(who, name, err)
		return d
	}
	d.ReadOnly = true
	for f := range caps.NumFamilies {
		if plan.Base.Any(f) {
			d.Families = append(d.Families, f.String())
		}
		if !plan.Effective.Any(f) {
			continue
		}
		meta := caps.MetadataOf(f)
		d.OpenWorld = d.OpenWorld || meta.NetworkFacing
		if effectsLeft(plan.Effective, f)&(caps.IOWrite|caps.Control) != 0 {
			d.ReadOnly = false
			d.Destructive = d.Destructive || meta.Destructive
		}
	}
	return d
}

// effectsLeft are the effects of what is left of a family.
func effectsLeft(s caps.Set, f caps.Family) (all caps.EffectSet) {
	for _, g := range s.Grants() {
		for m := caps.Mode(0); g.Family == f && m < 32; m++ {
			if g.Modes.Has(m) {
				all |= caps.EffectOf(f, m)
			}
		}
	}
	return all
}

// planFor is what a call of an agent as a tool would be left.
func (h *Host) planFor(a *compose.Runner, who *service.Caller, path string, b *bundles.Bundle) (launcher.Plan, error) {
	asks := compose.Origin{Surface: compose.FromMCP, Bundle: b, Layers: func(c *compose.Composition,
		_ *policy.Given,
	) ([]*caps.Layer, error) {
		return doorLayers(a.Reader, c, who, service.MCP)
	}}
	c, err := a.Complete(&compose.Composition{Path: path, Origin: asks}, compose.Flags{})
	if err != nil {
		return launcher.Plan{}, err
	}
	return launcher.NewPlan(c.Policy)
}

// know opens an installed agent, unless nothing of it has changed since it was
// opened before.
func (h *Host) know(path string) knownAgent {
	now := knownAgent{folder: compose.StateOf(path), manifest: compose.StateOf(filepath.Join(path, bundles.ManifestName))}
	h.mu.Lock()
	k, known := h.known[path]
	h.mu.Unlock()
	if known && k.folder == now.folder && k.manifest == now.manifest {
		return k
	}
	b, err := bundles.Open(path)
	if err != nil {
		now.problem = err
	} else {
		light := *b
		light.Wasm, light.Files = nil, nil
		now.bundle = &light
	}
	if at := h.now(); now.folder.Sure(at) && now.manifest.Sure(at) {
		h.mu.Lock()
		h.known[path] = now
		h.mu.Unlock()
	}
	return now
}
