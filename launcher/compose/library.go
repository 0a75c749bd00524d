package compose

import (
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/launcher/run"
)

// library gives a run the place where it shares what is compiled: that of the
// run which launches it, that of the process, or, where it may launch others
// again and again, one of its own. Any other run compiles for itself alone.
func (a *Runner) library(c *Composition, spec *run.Spec, e *equipment) {
	switch {
	case c.Origin.from != nil:
		c.common.modules = c.Origin.from.common.modules
	case a.Kept != nil:
		c.common.modules = a.Kept.Modules
	case launches(spec):
		c.common.modules = guest.NewLibrary(0)
		e.others = append(e.others, c.common.modules.Close)
	}
	spec.Library = c.common.modules
}

// launches reports whether the bundle of a run asks to launch any agent.
func launches(spec *run.Spec) bool {
	return slices.ContainsFunc(spec.Policy.Base, func(e caps.Entry) bool { return e.Grant.Family == caps.Agents })
}
