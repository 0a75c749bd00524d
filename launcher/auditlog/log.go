// Package auditlog asks the audit log of a tenant: [With] opens it for questions,
// [Verify] says whether it is what was recorded, a [Log] proves, publishes and prunes
// it, [CheckProofs] checks proofs without it, and an [Exporting] writes it for other
// programs.
//
// It prints nothing.
package auditlog

import (
	"context"
	"errors"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// A Log is the log of a tenant, with what the journals hold taken in.
type Log struct {
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

// runOf is the run that the beginning of an id means; it must be in the log.
func (l *Log) runOf(ctx context.Context, id string) (string, error) {
	id, err := ask.WholeRun(ctx, l.Store, id)
	if err == nil {
		err = Known(ctx, l.Store, id)
	}
	return id, err
}

// Open opens the log for a command that judges it. What is damaged is no
// reason not to look.
func Open(ctx context.Context, r *compose.Reader, ask func(context.Context, *Log) error) error {
	h, cfg, err := r.StoreSettings()
	if err != nil {
		return err
	}
	return judging(ctx, r, &Log{home: h, config: cfg}, compose.StoreOptions(h, cfg), ask)
}

// openToRead is [Open] for a command that may leave the log as it is: that of
// a home which cannot be written is copied.
func openToRead(
	ctx context.Context, r *compose.Reader, ask func(context.Context, *Log) error,
) (err error) {
	h, cfg, err := r.StoreSettings()
	if err != nil {
		return err
	}
	l, opt := &Log{home: h, config: cfg}, compose.StoreOptions(h, cfg)
	if readOnly(h) {
		dir, remove, err := copyLog(h)
		if err != nil {
			return &compose.Error{Status: run.StatusUnavailable, Err: err}
		}
		defer func() { err = errors.Join(err, remove()) }()
		l.copied, opt.Home = true, dir
		if !compose.SignedBefore(h) { // nothing was signed yet, and no key can be made
			opt.Seal, opt.SealMark = nil, nil
		}
	}
	return judging(ctx, r, l, opt, ask)
}

// judging opens the store of a log, takes journals in, and asks.
func judging(
	ctx context.Context, r *compose.Reader, l *Log, opt kb.Options, ask func(context.Context, *Log) error,
) (err error) {
	s, err := kb.Open(ctx, opt)
	if errors.Is(err, kb.ErrDamaged) {
		return &compose.Error{Status: run.StatusFinding, Err: err}
	}
	if err != nil {
		return &compose.Error{Status: run.StatusUnavailable, Err: err}
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	l.Store = s
	taken, err := s.Ingest(ctx)
	if err != nil && !errors.Is(err, kb.ErrDamaged) {
		return unavailable(err)
	}
	l.intake, l.damaged = err, taken.Damaged
	damagedJournals(r, taken.Damaged)
	backlog, err := kb.BacklogOf(opt.Home, opt.Tenant)
	if err != nil {
		return err
	}
	l.aside = backlog.Quarantined
	return ask(ctx, l)
}

// unavailable says of a store that it could not do now what it was asked for.
func unavailable(err error) error {
	if errors.Is(err, kb.ErrUnavailable) {
		return &compose.Error{Status: run.StatusUnavailable, Err: err}
	}
	return err
}
