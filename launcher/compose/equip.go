package compose

import (
	"context"
	"errors"
	"time"

	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/record/runlog"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/launcher/run"
)

// common is what a run shares with those that it launches.
type common struct {
	clock       *journal.Clock
	keepAllowed bool
	modules     *guest.Library // compiled; nil: each run has its own
	shared
}

// equip gives a run what only a real launch has: the journal, the log and the
// components are opened here and nowhere else, whoever launches.
func (a *Runner) equip(ctx context.Context, c *Composition, spec *run.Spec, j *Job) (*equipment, error) {
	e := &equipment{log: runlog.Open(c.Home, c.Config.Log, time.Now, a.Verbose), who: spec.Identity, warn: c.Origin.warnf}
	c.logFindings(e.log, spec.Identity)
	spec.Log = e.log.Logger
	clock := c.journalClock(e)
	if err := a.components(ctx, c, spec, e); err != nil {
		return nil, errors.Join(err, e.abandon())
	}
	spec.Durability, _ = audit.ParseDurability(c.Config.KB.Durability) // config takes no other word
	opt := journal.Options{
		Clock: clock, MaxDecisions: mostDecisions(c.Policy.Operators()),
		Synced: spec.Durability != audit.PerRun,
	}
	if a.Kept != nil {
		opt.Group = a.Kept.Journals
	}
	record := c.Origin.observer()
	opt.Events = record != nil // somebody shows the run while it goes on
	spec.OpenJournal = journalOpener(c.Home, opt, e.log.And(record))
	c.common.keepAllowed = j.KeepAllowed
	spec.KeepAllowed = c.Config.Security.Caps.AuditOnAllow || j.KeepAllowed
	spec.KeepDenied = c.Config.Security.Caps.AuditOnDeny
	a.sayDamage(ctx, c, spec)
	a.library(c, spec, e)
	return e, nil
}

// journalClock is the clock that the records of a run are stamped by: that of
// the run which launches it, or its own.
func (c *Composition) journalClock(e *equipment) *journal.Clock {
	if c.Origin.from != nil {
		c.common.clock = c.Origin.from.common.clock
		return c.common.clock
	}
	c.common.clock = journalClock()
	e.stores = append(e.stores, func() error { c.common.clock.Stop(); return nil })
	return c.common.clock
}

// logFindings puts what was found in bundle and policy into the log, and so on
// stderr with -v.
func (c *Composition) logFindings(log *runlog.Log, id run.Identity) {
	for _, f := range c.Findings {
		log.Warn("finding", "run_id", id.RunID, "tenant", id.Tenant, "agent", id.Agent, "code", string(f.Code), "message",
			f.String())
	}
	for _, f := range c.Bundle.Findings {
		log.Warn("finding", "run_id", id.RunID, "tenant", id.Tenant, "agent", id.Agent, "code", f.Code, "message", f.String())
	}
}
