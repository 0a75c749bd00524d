package service

import (
	"context"
	"fmt"
	"iter"
	"time"

	"runloop.dev/rlp/internal/audit"
	"runloop.dev/rlp/kb"
)

// A Record is one of a run's, as the log has it or will have it.
type Record struct {
	RunSeq uint64
	// Line is the exported line, without a line end. Its seq is 0 while the record
	// has not entered the log.
	Line []byte
	Kind string
	Rec  *audit.Record
}

// Records follows a run that c may see from behind its record numbered after:
// every kept record once and in order, up to the one that ends it.
func (s *Service) Records(ctx context.Context, c *Caller, runID string, after uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		r := s.find(runID)
		if r == nil && !c.Can(Read) || r != nil && !r.seen(c) {
			yield(Record{}, fmt.Errorf("run %s: %w", runID, ErrNotFound))
			return
		}
		log, err := s.opt.Host.Log(ctx, c.Tenant)
		if err != nil {
			yield(Record{}, err)
			return
		}
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		known := r != nil
		for {
			over := false
			if r != nil {
				select {
				case <-r.done:
					over = true
				default:
				}
			}
			for rec, err := range log.Audit(ctx, kb.Filter{Run: runID}) {
				if err != nil {
					yield(Record{}, err)
					return
				}
				known = true
				over = over || audit.Ends(rec.Kind())
				if rec.RunSeq <= after {
					continue
				}
				after = rec.RunSeq
				line, err := rec.AppendJSON(nil)
				if !yield(Record{rec.RunSeq, line, rec.Kind(), &rec}, err) || err != nil {
					return
				}
			}
			if !known {
				yield(Record{}, fmt.Errorf("run %s: %w", runID, ErrNotFound))
			}
			if over || !known {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}
}
