package auditlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"runloop.dev/rlp/internal/base/printable"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// Known refuses a run that is not in the log.
func Known(ctx context.Context, s *kb.Store, id string) error {
	for _, err := range s.Glances(ctx, kb.Filter{Run: id, Limit: 1}) {
		return err
	}
	return &ask.Error{Status: run.StatusInput, Err: fmt.Errorf("no run %s in the audit log; rlp audit list shows all", id)}
}

// With opens the store for one question.
func With(
	ctx context.Context, r *compose.Reader, f Filter, now time.Time, do func(context.Context, *kb.Store, kb.Filter) error,
) (err error) {
	filter, err := f.At(now)
	if err != nil {
		return err
	}
	h, cfg, err := r.StoreSettings()
	if err != nil {
		return err
	}
	s, err := kb.Open(ctx, compose.StoreOptions(h, cfg))
	if err != nil {
		return &compose.Error{Status: run.StatusUnavailable, Err: err}
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	taken, err := s.Ingest(ctx)
	if err != nil {
		return unavailable(err)
	}
	damagedJournals(r, taken.Damaged)
	if filter.Run, err = ask.WholeRun(ctx, s, filter.Run); err != nil {
		return err
	}
	return do(ctx, s, filter)
}

// damagedJournals says at once what is wrong with journals.
func damagedJournals(r *compose.Reader, damaged []string) {
	for _, d := range damaged {
		r.Say("taking in journals: " + printable.Line(d))
	}
}
