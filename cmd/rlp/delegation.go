package main

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
func (a *app) bind(c *composition) {
	if c.origin.from == nil {
		return
	}
	if name, bound := c.config.Delegation.Bindings[c.bundle.Manifest.Agent.String()]; bound {
		p, err := a.bound(c, name)
		if err == nil {
			c.policy.Layers = append(c.policy.Layers, p.Layer)
			return
		}
		c.origin.warnf("[delegation.bindings] %s = %q is not used, and the floor %s holds: %v",
			c.bundle.Manifest.Agent, name, policy.Delegate, err)
	} else if c.config.Delegation.CapabilityDefault != "deny" {
		return
	}
	floor, warning := policy.Floor(policy.Delegate, c.home.Profile(policy.Delegate), a.options(c.home, c.config))
	if warning != "" {
		c.origin.warnf("%s", warning)
	}
	c.policy.Layers = append(c.policy.Layers, floor)
}

// within meets c with what the launching run holds. A program is called by no
// name that the launching run could not call it by.
func (c *composition) within() {
	if c.origin.from == nil {
		return
	}
	c.policy.Within = c.origin.parent.Layer()
	if c.programs != nil {
		for _, list := range c.origin.from.programs {
			c.programs = append(c.programs, slices.Clone(list))
		}
	}
}

// bound is the profile that a binding names, if it is one that can be used.
func (a *app) bound(c *composition, name string) (*policy.Profile, error) {
	p, findings, err := policy.LoadProfile(name, c.home.Profile(name), a.options(c.home, c.config))
	if err == nil {
		err = policy.AsError(findings)
	}
	if err == nil && p == nil {
		err = fmt.Errorf("there is no profile %q", name)
	}
	return p, err
}

// requested are the flags that a request of another run stands for.
func requested(p *run.Parent) policyFlags {
	f := policyFlags{allow: p.Allow, deny: p.Deny}
	for key, n := range p.Limits {
		f.limits = append(f.limits, fmt.Sprintf("%s=%d", key, n))
	}
	return f
}
