package service

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
)

// An Event is a change in the life of a run.
type Event struct {
	ID    uint64 `json:"id"`   // grows, over restarts of the service too
	Name  string `json:"name"` // run.queued, run.started, run.compiled, run.running or run.ended
	State State  `json:"run"`
}

// keptEvents is how many events of a tenant are kept for those who follow.
const keptEvents = 2048

// A feed is the last events of one tenant. Who follows holds a number and no
// buffer: a slow one misses what it was too slow for.
type feed struct {
	events []Event
	wake   chan struct{} // closed at the next event; nil: nobody waits
}

func (f *feed) add(e Event) {
	if len(f.events) >= 2*keptEvents {
		f.events = append(make([]Event, 0, 2*keptEvents), f.events[len(f.events)-keptEvents:]...)
	}
	f.events = append(f.events, e)
	if f.wake != nil {
		close(f.wake)
		f.wake = nil
	}
}

// Feeds are the last events of each tenant.
type feeds struct {
	watch Watcher // nil: nobody

	mu   sync.Mutex
	last uint64 // number of an event
	of   map[string]*feed
}

// newFeeds has no event yet. Numbers go on above those that an earlier process gave out.
func newFeeds(now time.Time, watch Watcher) *feeds {
	return &feeds{watch: watch, last: uint64(max(now.UnixMilli(), 0)) << 12, of: map[string]*feed{}}
}

// tell notes what r came to. The caller holds the lock of the service, so that
// events come in the order of what they tell.
func (f *feeds) tell(name string, r *Run) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	e := Event{f.last, name, r.State()}
	f.tenant(r.tenant).add(e)
	if f.watch != nil {
		f.watch.Event(e)
	}
}

func (f *feeds) tenant(name string) *feed {
	if f.of[name] == nil {
		f.of[name] = &feed{}
	}
	return f.of[name]
}

// begin is the number from behind which a follower is told who knows after.
func (f *feeds) begin(after uint64) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case after == 0:
		return f.last
	case after > f.last:
		return 0
	}
	return after
}

// event takes in what the launcher tells of r.
func (s *Service) event(r *Run, name string, fields map[string]any) {
	if id, _ := fields["run_id"].(string); id != r.id {
		return
	}
	text := func(k string) string { v, _ := fields[k].(string); return v }
	switch name {
	case "run.started":
		r.mu.Lock()
		r.state.Agent, r.state.Version = text("agent"), text("version")
		r.mu.Unlock()
	case "run.compiled", "run.running":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events.tell(name, r)
	}
}

// Events follows the life of all runs that c may see, until ctx ends: from when it
// is called, or from behind the event numbered after. Of events that are no longer kept it
// begins with the oldest that is: each carries all that is known of its run. So it
// does behind a number that no event has yet: it is of a service before, by a clock
// that went back since.
func (s *Service) Events(ctx context.Context, c *Caller, after uint64) iter.Seq2[Event, error] {
	after = s.events.begin(after)
	return func(yield func(Event, error) bool) {
		if !c.Can(Read) && !c.Can(Launch) && !c.Can(Operate) {
			yield(Event{}, fmt.Errorf("following runs: %w", ErrForbidden))
			return
		}
		all := c.Can(Read) || c.Can(Operate)
		last := after
		for {
			batch, wake := s.events.after(c.Tenant, last)
			for _, e := range batch {
				last = e.ID
				e.State.told(c)
				if (all || e.State.who == c.who()) && !yield(e, nil) {
					return
				}
			}
			if len(batch) > 0 {
				continue
			}
			select {
			case <-ctx.Done():
				return
			case <-wake:
			}
		}
	}
}

// batchOf is how many events are copied for a follower at a time.
const batchOf = 64

// after are the next events of a tenant; if there are none yet, wake is closed
// when there are.
func (f *feeds) after(tenant string, number uint64) (batch []Event, wake <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tenant(tenant).after(number)
}

func (f *feed) after(number uint64) (batch []Event, wake <-chan struct{}) {
	at, _ := slices.BinarySearchFunc(f.events, number+1, func(e Event, id uint64) int {
		switch {
		case e.ID < id:
			return -1
		case e.ID > id:
			return 1
		}
		return 0
	})
	at = max(at, len(f.events)-keptEvents)
	if at < len(f.events) {
		return slices.Clone(f.events[at:min(at+batchOf, len(f.events))]), nil
	}
	if f.wake == nil {
		f.wake = make(chan struct{})
	}
	return nil, f.wake
}

// Run is the run of an id, under way or ended lately, and a delegate of one too.
// One that c may not know of is [ErrNotFound], and so are those that only the log
// has: see [Host.Log].
func (s *Service) Run(_ context.Context, c *Caller, id string) (*Run, error) {
	r := s.find(id)
	if r == nil || !r.seen(c) {
		return nil, &NoRunError{id}
	}
	return r, nil
}

func (s *Service) find(id string) *Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[id]
}

// Runs are what is known of the runs in memory that c may see, the newest first.
func (s *Service) Runs(_ context.Context, c *Caller) []State {
	s.mu.Lock()
	var all []*Run
	for _, r := range s.runs {
		if r.seen(c) {
			all = append(all, r)
		}
	}
	now := s.now()
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b *Run) int { return strings.Compare(b.id, a.id) })
	list := make([]State, len(all))
	for i, r := range all {
		list[i] = r.StateFor(c)
		list[i].soFar(now)
	}
	return list
}

// soFar fills in how long a run has taken until now.
func (st *State) soFar(now Time) {
	switch st.State {
	case Queued:
		st.QueueMS = max(0, now.Sub(st.QueuedAt.Time).Milliseconds())
	case Running:
		st.WallMS = max(0, now.Sub(st.StartedAt.Time).Milliseconds())
	}
}
