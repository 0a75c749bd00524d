package service

import (
	"log/slog"
	"time"

	"runloop.dev/rlp/launcher"
)

// lookEvery is how often it is asked whether the callers of runs are still
// somebody, as it is asked for those who follow something.
const lookEvery = time.Second

// A watch is over the runs whose callers may come to be nobody.
type watch struct {
	runs  int
	timer *time.Timer // nil: nobody was there yet
}

// watchOver counts r in. The caller holds the lock.
func (s *Service) watchOver(r *Run) {
	if !r.caller.lapses() {
		return
	}
	s.watch.runs++
	switch {
	case s.watch.timer == nil:
		s.watch.timer = time.AfterFunc(lookEvery, s.look)
	case s.watch.runs == 1:
		s.watch.timer.Reset(lookEvery)
	}
}

// watchedOver counts r out. The caller holds the lock.
func (s *Service) watchedOver(r *Run) {
	if !r.caller.lapses() {
		return
	}
	s.watch.runs--
	if s.watch.runs == 0 {
		s.watch.timer.Stop()
	}
}

// look ends the runs of callers who are nobody any more.
func (s *Service) look() {
	for _, r := range s.underWay() {
		if why := r.caller.Over(s.opt.Now()); why != nil {
			s.stop(r, s.lapsed(r, why))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watch.runs > 0 {
		s.watch.timer.Reset(lookEvery)
	}
}

// lapsed is why a run is ended, or does not begin, whose caller is nobody any more.
func (s *Service) lapsed(r *Run, why error) error {
	st := r.State()
	s.warn(r, &st, "the caller of a run is nobody any more", slog.String("caller", st.Caller),
		slog.String("why", why.Error()))
	return &launcher.Ending{Why: "who asked for the run may not any more: " + why.Error()}
}
