package auditlog

import (
	"context"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
)

// Explain says why the next launch of s, or the run that q names, would be answered
// as it is.
func Explain(ctx context.Context, r *compose.Reader, s *ask.Subject, q ask.Query) (e *ask.Explanation, err error) {
	if q.Run == "" {
		return ask.Explain(s, q)
	}
	err = With(ctx, r, Filter{Run: q.Run}, q.Now, func(ctx context.Context, log *kb.Store, f kb.Filter) error {
		q.Run = f.Run
		e, err = ask.ExplainRun(ctx, log, s, q)
		return err
	})
	return e, err
}
