package auditlog

import (
	"context"
	"fmt"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
)

// ExplainRecorded says why the run that q names was answered as it is, from its records
// alone, where its bundle is not at hand.
func ExplainRecorded(ctx context.Context, r *compose.Reader, q ask.Query) (e *ask.Explanation, err error) {
	err = With(ctx, r, Filter{Run: q.Run}, q.Now, func(ctx context.Context, log *kb.Store, f kb.Filter) error {
		q.Run = f.Run
		for rec, err := range log.Audit(ctx, f) {
			if err != nil {
				return err
			}
			s, err := r.SubjectOf(&rec)
			if err != nil {
				return err
			}
			e, err = ask.ExplainRun(ctx, log, s, q)
			return err
		}
		return compose.InputErr(fmt.Errorf("the audit log has no run %s; rlp runs lists them", q.Run))
	})
	return e, err
}

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
