package main

import (
	"context"
	"errors"
	"fmt"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
)

// An openedLog is the log of a tenant, with what the journals hold taken in.
type openedLog struct {
	*kb.Store
	home   home.Home
	config config.Config
	// damaged says what is wrong with which journal, and aside are the paths of
	// those that were put aside.
	damaged, aside []string
	copied         bool // the home cannot be written, and this is a copy of its log
	// intake is why what the journals hold is not all in the log, where the log
	// itself is the reason: whoever verifies it finds out more.
	intake error
}

// withLog opens the log for a command that judges it. What is damaged is no
// reason not to look.
func (a *app) withLog(ctx context.Context, ask func(context.Context, *openedLog) error) error {
	h, cfg, err := a.settings()
	if err != nil {
		return err
	}
	return a.judging(ctx, &openedLog{home: h, config: cfg}, compose.StoreOptions(h, cfg), ask)
}

// withLogToRead is withLog for a command that may leave the log as it is: that of
// a home which cannot be written is copied.
func (a *app) withLogToRead(ctx context.Context, ask func(context.Context, *openedLog) error) (err error) {
	h, cfg, err := a.settings()
	if err != nil {
		return err
	}
	l, opt := &openedLog{home: h, config: cfg}, compose.StoreOptions(h, cfg)
	if readOnly(h) {
		dir, remove, err := copyLog(h)
		if err != nil {
			return &statusError{Status: launcher.StatusUnavailable, Err: err}
		}
		defer func() { err = errors.Join(err, remove()) }()
		l.copied, opt.Home = true, dir
		if !compose.SignedBefore(h) { // nothing was signed yet, and no key can be made
			opt.Seal, opt.SealMark = nil, nil
		}
	}
	return a.judging(ctx, l, opt, ask)
}

// judging opens the store of a log, takes journals in, and asks.
func (a *app) judging(ctx context.Context, l *openedLog, opt kb.Options, ask func(context.Context,
	*openedLog) error,
) (err error) {
	s, err := kb.Open(ctx, opt)
	if errors.Is(err, kb.ErrDamaged) {
		return &statusError{Status: launcher.StatusFinding, Err: err}
	}
	if err != nil {
		return &statusError{Status: launcher.StatusUnavailable, Err: err}
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	l.Store = s
	taken, err := s.Ingest(ctx)
	if err != nil && !errors.Is(err, kb.ErrDamaged) {
		return err
	}
	l.intake, l.damaged = err, taken.Damaged
	for _, d := range taken.Damaged {
		fmt.Fprintf(a.stderr, "rlp: taking in journals: %s\n", printable(d))
	}
	backlog, err := kb.BacklogOf(opt.Home, opt.Tenant)
	if err != nil {
		return err
	}
	l.aside = backlog.Quarantined
	return ask(ctx, l)
}

// runOf is the run that the beginning of an id means; it must be in the log.
func (l *openedLog) runOf(ctx context.Context, id string) (string, error) {
	run, err := wholeRun(ctx, l.Store, id)
	if err == nil {
		err = known(ctx, l.Store, run)
	}
	return run, err
}
