package service

import (
	"context"
	"errors"
	"iter"
	"time"

	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
)

// A Record is one of a run's, as the log has it or will have it.
type Record struct {
	RunSeq uint64
	// Line is the exported line, without a line end. Its seq is 0 if the record had
	// not entered the log when it was read; all else is what the log will say. It
	// is shared and not to be changed.
	Line []byte
	Kind string
	Rec  *audit.Record
}

const (
	// askFirst and askEvery are when the log is asked about a run of another
	// process of which nothing is heard: it may have been killed.
	askFirst = 200 * time.Millisecond
	askEvery = 2 * time.Second
	// askMissing is when it is asked again for records that it should have, so
	// often at most.
	askMissing  = 100 * time.Millisecond
	mostMissing = 50
)

// PageOfReader is how many bytes of stored records are in memory for one who reads
// them as slowly as they like.
const PageOfReader = 32 << 10

var errMissing = errors.New("the log lacks records which the run has made")

// Records follows a run that c may see, of this process or of another, from behind
// its record numbered after: every kept record once and in order, without a gap,
// up to the one that ends it or until ctx ends. A follower that is slow reads
// the log, and no run waits for it. A run of which there is no record yet is
// waited for if it is the service's; otherwise it is [ErrNotFound].
func (s *Service) Records(ctx context.Context, c *Caller, runID string, after uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		f := &follower{service: s, ctx: ctx, caller: c, run: runID, at: after, yield: yield}
		if err := f.all(); err != nil && ctx.Err() == nil {
			yield(Record{}, err)
		}
	}
}

// A follower is where somebody is in the records of a run.
type follower struct {
	service *Service
	ctx     context.Context
	caller  *Caller
	log     Log
	run     string
	at      uint64 // number of the last record that was yielded
	yield   func(Record, error) bool
	over    bool // nobody wants more, or there is no more
	any     bool // the log has something of the run
}

// all yields what there is, and then what comes.
func (f *follower) all() error {
	s, c := f.service, f.caller
	notFound := &NoRunError{f.run}
	if _, err := ident.ParseRun(f.run); err != nil {
		return notFound
	}
	r := s.find(f.run)
	if r == nil && !c.Can(Read) && !c.Can(Operate) || r != nil && !r.seen(c) {
		return notFound
	}
	var err error
	if f.log, err = s.opt.Host.Log(f.ctx, c); err != nil {
		return err
	}
	if r != nil {
		defer r.trail.follow()()
		return f.live(r.trail, false)
	}
	if err := f.stored(); err != nil || f.over {
		return err
	}
	if !f.any && !f.exists() {
		return notFound
	}
	t, leave := s.abroad(f.log, c, f.run, f.at)
	defer leave()
	defer t.follow()()
	return f.live(t, true)
}

// live yields what a trail has, and what the log has where the trail lacks it.
func (f *follower) live(t *trail, abroad bool) error {
	ask, missing := askFirst, 0
	for !f.over {
		next := t.after(f.at)
		switch {
		case len(next.entries) > 0:
			missing = 0
			for _, e := range next.entries {
				if !f.give(e.record()) {
					return nil
				}
			}
		case next.missed:
			was := f.at
			if err := f.stored(); err != nil || f.over {
				return err
			}
			if f.at > was {
				missing = 0
			} else if missing++; missing > mostMissing || next.over {
				return errMissing
			} else if !f.rest(askMissing, nil) {
				return nil
			}
		case next.over:
			return f.stored()
		case !abroad:
			if !f.rest(0, next.wake) {
				return nil
			}
		default:
			if !f.rest(ask, next.wake) {
				return nil
			}
			if n := t.after(f.at); len(n.entries) > 0 {
				continue
			}
			ask = askEvery
			if _, can := f.log.(Tailer); !can {
				ask = askFirst
			}
			if err := f.stored(); err != nil {
				return err
			}
		}
	}
	return nil
}

// give yields a record; false: there is nothing more to do.
func (f *follower) give(r Record, err error) bool {
	if r.Rec != nil {
		if told := tellRecord(f.log, r.Rec); told != r.Rec && err == nil {
			r.Rec = told
			r.Line, err = told.AppendJSON(nil)
		}
	}
	if !f.yield(r, err) || err != nil || f.ctx.Err() != nil {
		f.over = true
		return false
	}
	f.at = r.RunSeq
	f.over = audit.Ends(r.Kind)
	return !f.over
}

// stored yields what the log has behind the last record.
func (f *follower) stored() error {
	for rec, err := range f.log.Audit(f.ctx, kb.Filter{Run: f.run, AfterOfRun: f.at, Page: PageOfReader}) {
		if err != nil {
			return err
		}
		f.any = true
		if rec.RunSeq <= f.at {
			continue
		}
		line, err := rec.AppendJSON(nil)
		if !f.give(Record{rec.RunSeq, line, rec.Kind(), &rec}, err) {
			return nil
		}
	}
	return nil
}

// exists reports whether the log has anything of the run.
func (f *follower) exists() bool {
	for range f.log.Audit(f.ctx, kb.Filter{Run: f.run, Limit: 1}) {
		return true
	}
	return false
}

// rest waits for wake or, if it is not 0, for d; false: for nothing more.
func (f *follower) rest(d time.Duration, wake <-chan struct{}) bool {
	var timer <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-f.ctx.Done():
		return false
	case <-wake:
	case <-timer:
	}
	return true
}
