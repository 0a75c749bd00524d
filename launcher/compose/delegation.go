package compose

import (
	"fmt"
	"slices"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/launcher/run"
)

// bind adds what being launched by another agent takes away by itself:
// the profile that [delegation.bindings] gives the agent, or the floor where
// capability_default = "deny" and nothing is bound. Every hop is one: that the
// launching run was bound to more changes nothing. A binding that cannot be
// resolved leaves the floor.
func (a *Reader) bind(c *Composition) {
	if c.Origin.from == nil {
		return
	}
	if name, bound := c.Config.Delegation.Bindings[c.Bundle.Manifest.Agent.String()]; bound {
		p, err := a.bound(c, name)
		if err == nil {
			c.Policy.Layers = append(c.Policy.Layers, p.Layer)
			return
		}
		c.Origin.warnf("[delegation.bindings] %s = %q is not used, and the floor %s holds: %v",
			c.Bundle.Manifest.Agent, name, policy.Delegate, err)
	} else if c.Config.Delegation.CapabilityDefault != "deny" {
		return
	}
	floor, warning := policy.Floor(policy.Delegate, c.Home.Profile(policy.Delegate), a.Options(c.Home, c.Config))
	if warning != "" {
		c.Origin.warnf("%s", warning)
	}
	c.Policy.Layers = append(c.Policy.Layers, floor)
}

// within meets c with what the launching run holds. A program is called by no
// name that the launching run could not call it by.
func (c *Composition) within() {
	if c.Origin.from == nil {
		return
	}
	c.Policy.Within = c.Origin.parent.Layer()
	if c.programs != nil {
		for _, list := range c.Origin.from.programs {
			c.programs = append(c.programs, slices.Clone(list))
		}
	}
}

// bound is the profile that a binding names, if it is one that can be used.
func (a *Reader) bound(c *Composition, name string) (*policy.Profile, error) {
	p, findings, err := policy.LoadProfile(name, c.Home.Profile(name), a.Options(c.Home, c.Config))
	if err == nil {
		err = policy.AsError(findings)
	}
	if err == nil && p == nil {
		err = fmt.Errorf("there is no profile %q", name)
	}
	return p, err
}

// requested are the flags that a request of another run stands for.
func requested(p *run.Parent) Flags {
	f := Flags{Allow: p.Allow, Deny: p.Deny}
	for key, n := range p.Limits {
		f.Limits = append(f.Limits, fmt.Sprintf("%s=%d", key, n))
	}
	return f
}
