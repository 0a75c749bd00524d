package main

import (
	"context"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/auditlog"
)

// explanation is why the next launch of c, or the run that q names, would be
// answered as it is.
func (a *app) explanation(ctx context.Context, s *ask.Subject, q ask.Query) (e *ask.Explanation, err error) {
	if q.Run == "" {
		return ask.Explain(s, q)
	}
	err = a.withStore(ctx, auditlog.Filter{Run: q.Run}, func(ctx context.Context, log *kb.Store, f kb.Filter) error {
		q.Run = f.Run
		e, err = ask.ExplainRun(ctx, log, s, q)
		return err
	})
	return e, err
}
