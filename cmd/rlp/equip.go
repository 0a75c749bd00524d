package main

import (
	"context"
	"errors"
	"io"
	"time"

	"runloop.dev/rlp/internal/audit"
	"runloop.dev/rlp/internal/guest"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/launcher/run"
)

// common is what a run shares with those that it launches.
type common struct {
	clock       *journal.Clock
	keepAllowed bool
	record      func(*audit.Record) // of whoever asked a service; nil: nobody did
	modules     *guest.Library      // compiled; nil: each run has its own
	shared
}

// ready is the launch of c once nothing is left to ask of the operator, and
// what gives its lane up.
func (a *app) ready(ctx context.Context, c *composition) (*run.Spec, func() error, error) {
	if err := c.mustBeSet("launch"); err != nil {
		return nil, nil, err
	}
	spec, err := a.spec(c)
	if err != nil {
		return nil, nil, err
	}
	release, err := a.execFit(ctx, c, spec)
	return spec, release, err
}

// equip gives a run what only a real launch has: the journal, the log and the
// components are opened here and nowhere else, whoever launches. It returns what
// gives them up again.
func (a *app) equip(ctx context.Context, c *composition, spec *run.Spec) (*runLog, func() error, error) {
	var verbose io.Writer
	if a.verbose {
		verbose = a.stderr
	}
	log := openLog(c.home, c.config.Log, time.Now, verbose)
	c.logFindings(log, spec.Identity)
	spec.Log = log.Logger
	clock, stop := c.journalClock()
	release, err := a.components(ctx, c, spec)
	if err != nil {
		stop()
		return nil, nil, errors.Join(err, log.Close())
	}
	spec.Durability, _ = audit.ParseDurability(c.config.KB.Durability) // config takes no other word
	opt := journal.Options{Clock: clock, MaxDecisions: mostDecisions(c.policy.Operators()), Synced: spec.Durability != audit.PerRun}
	if a.kept != nil {
		opt.Group = a.kept.journals
	}
	observe := c.observer(log)
	opt.Events = c.common.record != nil // somebody shows the run while it goes on
	spec.OpenJournal = journalOpener(c.home, opt, observe)
	spec.KeepAllowed = c.config.Security.Caps.AuditOnAllow || c.common.keepAllowed
	spec.KeepDenied = c.config.Security.Caps.AuditOnDeny
	a.sayDamage(ctx, c, spec)
	closeLibrary := a.library(c, spec)
	return log, func() error { defer stop(); return errors.Join(release(), closeLibrary()) }, nil
}

// journalClock is the clock that the records of a run are stamped by: that of
// the run which launches it, or its own.
func (c *composition) journalClock() (clock *journal.Clock, stop func()) {
	if c.by != nil {
		c.common.clock = c.by.from.common.clock
		return c.common.clock, func() {}
	}
	c.common.clock = journalClock()
	return c.common.clock, c.common.clock.Stop
}
