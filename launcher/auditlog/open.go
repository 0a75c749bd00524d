package auditlog

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	ctx context.Context, r *compose.Reader, f Filter, now time.Time, ask func(context.Context, *kb.Store, kb.Filter) error,
) (err error) {
	filter, err := f.At(now)
	if err != nil {
		return err
	}
	h, cfg, err := r.Settings()
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
		return err
	}
	damagedJournals(r, taken.Damaged)
	if filter.Run, err = WholeRun(ctx, s, filter.Run); err != nil {
		return err
	}
	return ask(ctx, s, filter)
}

// damagedJournals says at once what is wrong with journals.
func damagedJournals(r *compose.Reader, damaged []string) {
	for _, d := range damaged {
		r.Say("taking in journals: " + printable.Line(d))
	}
}

// WholeRun finds the run that the beginning of an id means.
func WholeRun(ctx context.Context, s *kb.Store, id string) (string, error) {
	const whole = 36
	if id == "" || len(id) >= whole {
		return id, nil
	}
	found := ""
	for r, err := range s.Glances(ctx, kb.Filter{}) {
		if err != nil {
			return "", err
		}
		if string(r.Run) != found && strings.HasPrefix(string(r.Run), id) {
			other := string(r.Run)
			if found != "" {
				return "", &ask.Error{Status: run.StatusUsage, Err: fmt.Errorf("more than one run begins with %s: %s, %s", id,
					found, other)}
			}
			found = other
		}
	}
	if found == "" {
		return "", &ask.Error{
			Status: run.StatusInput,
			Err:    fmt.Errorf("no run in the audit log begins with %s; rlp audit list shows all", id),
		}
	}
	return found, nil
}
