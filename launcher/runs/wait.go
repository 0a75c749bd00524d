package runs

import (
	"context"
	"errors"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/auditlog"
	"runloop.dev/rlp/launcher/compose"
)

// waitAgain is how often the log is asked, too, whether a run has ended: its
// journal may have gone into it.
const waitAgain = 2 * time.Second

// Wait returns the run that text names once it has ended.
func Wait(ctx context.Context, r *compose.Reader, text string, now func() time.Time) (line Line, err error) {
	h, err := r.Home()
	if err != nil {
		return line, err
	}
	look := func(ctx context.Context, s *kb.Store, f kb.Filter) (err error) {
		line, err = One(ctx, s, f.Run, now())
		return err
	}
	for {
		if err := auditlog.With(ctx, r, auditlog.Filter{Run: text}, now(), look); err != nil || line.Ended() {
			return line, err
		}
		text = line.RunID
		soon, cancel := context.WithTimeout(ctx, waitAgain)
		err := ends(soon, kb.Options{Home: h.Dir(), Tenant: h.Tenant()}, text)
		cancel()
		if err = errors.Join(err, ctx.Err()); err != nil {
			return line, err
		}
	}
}

// ends reads records of a run until one of them ends it, or ctx is over.
func ends(ctx context.Context, o kb.Options, id string) error {
	for r, err := range kb.Tail(ctx, o, kb.Filter{Run: id}) {
		if err != nil || r.Event != nil && audit.Ends(r.Event.Kind) {
			return err
		}
	}
	return nil
}
