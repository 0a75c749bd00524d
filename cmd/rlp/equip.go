package main

import (
	"context"
	"errors"
	"time"

	"runloop.dev/rlp/internal/audit"
	"runloop.dev/rlp/internal/guest"
	"runloop.dev/rlp/internal/runlog"
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
func (a *app) equip(ctx context.Context, c *composition, spec *run.Spec, j *job) (*equipment, error) {
	e := &equipment{log: runlog.Open(c.home, c.config.Log, time.Now, a.watching()), who: spec.Identity, warn: c.origin.warnf}
	c.logFindings(e.log, spec.Identity)
	spec.Log = e.log.Logger
	clock := c.journalClock(e)
	if err := a.components(ctx, c, spec, e); err != nil {
		return nil, errors.Join(err, e.abandon())
	}
	spec.Durability, _ = audit.ParseDurability(c.config.KB.Durability) // config takes no other word
	opt := journal.Options{Clock: clock, MaxDecisions: mostDecisions(c.policy.Operators()), Synced: spec.Durability != audit.PerRun}
	if a.kept != nil {
		opt.Group = a.kept.journals
	}
	record := c.origin.observer()
	opt.Events = record != nil // somebody shows the run while it goes on
	spec.OpenJournal = journalOpener(c.home, opt, e.log.And(record))
	c.common.keepAllowed = j.keepAllowed
	spec.KeepAllowed = c.config.Security.Caps.AuditOnAllow || j.keepAllowed
	spec.KeepDenied = c.config.Security.Caps.AuditOnDeny
	a.sayDamage(ctx, c, spec)
	a.library(c, spec, e)
	return e, nil
}

// journalClock is the clock that the records of a run are stamped by: that of
// the run which launches it, or its own.
func (c *composition) journalClock(e *equipment) *journal.Clock {
	if c.origin.from != nil {
		c.common.clock = c.origin.from.common.clock
		return c.common.clock
	}
	c.common.clock = journalClock()
	e.stores = append(e.stores, func() error { c.common.clock.Stop(); return nil })
	return c.common.clock
}
