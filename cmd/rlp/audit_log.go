//go:build !slim

package main

import (
	"context"
	"errors"
	"fmt"

	"runloop.dev/rlp/internal/config"
	"runloop.dev/rlp/internal/home"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
)

// An openedLog is the log of a tenant, with what the journals hold taken in.
type openedLog struct {
	*kb.Store
	home   home.Home
	config config.Config
	// intake is why what the journals hold is not all in the log, where the log
	// itself is the reason: whoever verifies it finds out more.
	intake error
}

// withLog opens the log for a command that judges it. What is damaged is no
// reason not to look.
func (a *app) withLog(ctx context.Context, ask func(context.Context, *openedLog) error) (err error) {
	h, cfg, err := a.settings()
	if err != nil {
		return err
	}
	s, err := kb.Open(ctx, storeOptions(h, cfg))
	if errors.Is(err, kb.ErrDamaged) {
		return &statusError{launcher.StatusFinding, err}
	}
	if err != nil {
		return &statusError{launcher.StatusUnavailable, err}
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	l := &openedLog{Store: s, home: h, config: cfg}
	taken, err := s.Ingest(ctx)
	if err != nil && !errors.Is(err, kb.ErrDamaged) {
		return err
	}
	l.intake = err
	for _, d := range taken.Damaged {
		fmt.Fprintf(a.stderr, "rlp: taking in journals: %s\n", printable(d))
	}
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
