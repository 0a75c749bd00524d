package service

import (
	"context"
	"fmt"
	"iter"

	"runloop.dev/rlp/internal/base/guard"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
)

// A Tailer is a [Log] that tells of records before they have entered it: see
// [kb.Store.Tail]. Without it, runs of other processes are followed by asking the
// log again and again.
type Tailer interface {
	Tail(ctx context.Context, f kb.Filter) iter.Seq2[audit.Record, error]
}

// A foreign is a run of another process that is followed here: one reader of its
// journal serves all who follow it.
type foreign struct {
	trail  *trail
	refs   int
	cancel context.CancelFunc
}

// abroad follows a run of another process from behind its record numbered after.
func (s *Service) abroad(log Log, c *Caller, run string, after uint64) (t *trail, leave func()) {
	name := fmt.Sprintf("%s\x00%s\x00%t", c.Tenant, run, c.Can(Operate)) // what is told of its records differs
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.foreign[name]
	if f == nil {
		ctx, cancel := context.WithCancel(context.Background())
		f = &foreign{trail: newTrail(), cancel: cancel}
		s.foreign[name] = f
		if tailer, can := log.(Tailer); can {
			records := tailer.Tail(ctx, kb.Filter{Run: run, AfterOfRun: after})
			guard.Go(func() error { f.read(ctx, records); return nil },
				func(err error) { s.broke("following a run of another process", err) })
		}
	}
	f.refs++
	return f.trail, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if f.refs--; f.refs == 0 {
			f.cancel()
			delete(s.foreign, name)
		}
	}
}

// read fills the trail. What goes wrong here the log is asked about.
func (f *foreign) read(ctx context.Context, records iter.Seq2[audit.Record, error]) {
	for rec, err := range records {
		if err != nil || ctx.Err() != nil {
			return
		}
		f.trail.add(&rec)
	}
}
