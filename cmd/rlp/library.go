package main

import (
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/guest"
	"runloop.dev/rlp/launcher/run"
)

// library gives a run the place where it shares what is compiled: that of the
// run which launches it, that of the process, or, where it may launch others
// again and again, one of its own. Any other run compiles for itself alone. It
// returns what gives the place up.
func (a *app) library(c *composition, spec *run.Spec) (done func() error) {
	done = func() error { return nil }
	switch {
	case c.by != nil:
		c.common.modules = c.by.from.common.modules
	case a.modules != nil:
		c.common.modules = a.modules
	case launches(spec):
		c.common.modules = guest.NewLibrary(0)
		done = c.common.modules.Close
	}
	spec.Library = c.common.modules
	return done
}

// launches reports whether the bundle of a run asks to launch any agent.
func launches(spec *run.Spec) bool {
	return slices.ContainsFunc(spec.Policy.Base, func(e caps.Entry) bool { return e.Grant.Family == caps.Agents })
}
