package launcher

import (
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/launcher/run"
)

// What commands make plans with. It goes when no command does.
type (
	// A Plan is what a launch would enforce.
	Plan = run.Plan
	// Policy is what a plan is made of.
	Policy = run.Policy
	// Resolvers say what paths lead to.
	Resolvers = run.Resolvers
	// Paths are what was learnt of the paths of a policy.
	Paths = run.Paths
)

// NewPlan intersects the base with every layer.
func NewPlan(p Policy) (Plan, error) { return run.NewPlan(p) }

// GrantStrings are grants as capability strings.
func GrantStrings(grants []caps.Grant) []string { return run.GrantStrings(grants) }
