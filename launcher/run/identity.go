package run

import (
	"fmt"

	"runloop.dev/rlp/internal/base/ident"
)

// plan is the plan of the launch. A launch that does not say for whom it is, and
// which one it is, has none: its records could be anybody's.
func (s *Spec) plan() (Plan, error) {
	if _, err := ident.ParseTenant(s.Tenant); err != nil {
		return Plan{}, fmt.Errorf("launching: %w", err)
	}
	if _, err := ident.ParseRun(s.RunID); err != nil {
		return Plan{}, fmt.Errorf("launching: %w", err)
	}
	return NewPlan(s.Policy)
}
