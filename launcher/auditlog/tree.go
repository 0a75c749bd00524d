package auditlog

import (
	"context"
	"iter"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
)

// Tree is what a filter finds of its run and of all runs below it.
func Tree(ctx context.Context, s *kb.Store, filter kb.Filter) iter.Seq2[audit.Record, error] {
	return func(yield func(audit.Record, error) bool) {
		runs, err := runsBelow(ctx, s, filter.Run)
		if err != nil {
			yield(audit.Record{}, err)
			return
		}
		limit := filter.Limit
		filter.Run, filter.Limit = "", 0
		var found []audit.Record // the last ones, where a limit is given
		for r, err := range s.Audit(ctx, filter) {
			switch {
			case err == nil && !runs[r.Head.RunID]:
			case err == nil && limit > 0:
				if found = append(found, r); len(found) > limit {
					found = found[1:]
				}
			case !yield(r, err):
				return
			}
		}
		for _, r := range found {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// runsBelow are a run and all that it launched. The journal of a run may enter
// the log before that of the run which launched it.
func runsBelow(ctx context.Context, s *kb.Store, run string) (map[string]bool, error) {
	launched := map[string][]string{}
	seen := ""
	for r, err := range s.Audit(ctx, kb.Filter{}) {
		if err != nil {
			return nil, err
		}
		if h := r.Head; h.RunID != seen {
			seen = h.RunID
			if h.ParentRun != "" {
				launched[h.ParentRun] = append(launched[h.ParentRun], h.RunID)
			}
		}
	}
	all := map[string]bool{}
	for next := []string{run}; len(next) > 0; next = next[1:] {
		if !all[next[0]] {
			all[next[0]] = true
			next = append(next, launched[next[0]]...)
		}
	}
	return all, nil
}
