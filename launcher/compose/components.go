package compose

import (
	"context"

	"runloop.dev/rlp/internal/effect/model"
	"runloop.dev/rlp/launcher/run"
)

// A part makes one component of a run and returns what gives it up again; nil
// when there is nothing to give up. It opens nothing that the run may not need.
type part func(a *Runner, c *Composition, spec *run.Spec) (release func() error, err error)

// parts are the components in the order in which they are made: those that
// others ask for come first.
var parts = []part{maskPart, secretsPart, netPart, modelPart, execPart, mcpPart, agentsPart}

// shared is what of its components a run shares with those that it launches: one
// process opens the knowledge base once, and what models cost is one account.
type shared struct {
	store  *store
	broker *model.Broker
}

// components put together what does the families' work for one run. The run that
// was asked for keeps the store, for those that it launches too.
func (a *Runner) components(ctx context.Context, c *Composition, spec *run.Spec, e *equipment) error {
	if c.Origin.from != nil {
		c.common.store = c.Origin.from.common.store
	} else {
		c.common.store = newStore(ctx, c.Home, c.Config)
		if a.Kept != nil {
			c.common.store.keep = a.Kept.Stores
		}
		e.stores = append(e.stores, c.common.store.Close, a.publishing(ctx, c, spec))
	}
	spec.Components.KB = c.common.store.as(spec.Identity)
	for _, make := range parts {
		release, err := make(a, c, spec)
		if release != nil {
			e.others = append(e.others, release)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
