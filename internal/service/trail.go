package service

import (
	"sync"

	"runloop.dev/rlp/internal/audit"
)

// A trail is what is known in memory of one run's records.
type trail struct {
	mu              sync.Mutex
	allowed, denied int64
	over            bool
	wake            chan struct{}
}

func newTrail() *trail { return &trail{} }

func (t *trail) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	if t.wake != nil {
		close(t.wake)
		t.wake = nil
	}
}

// foreign is a run of another process that is followed.
type foreign struct{}

// record takes in a record of r or of a delegate of it.
func (s *Service) record(r *Run, rec *audit.Record) {
	if s.opt.Watch != nil {
		s.opt.Watch.Record(rec)
	}
	if rec.Head.RunID != r.id || rec.Decision == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if rec.Decision.Deny {
		r.state.Denied++
	} else {
		r.state.Allowed++
	}
}

func (r *Run) delegates() []*Run { return nil }

func (s *Service) endKid(*Run, *audit.Record) {}
