package service

import (
	"fmt"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/places"
)

// record takes in a record of root or of a delegate of it.
func (s *Service) record(root *Run, rec *audit.Record) {
	r := root
	if rec.Head.RunID != root.id {
		r = s.delegate(root, rec)
	}
	r.mu.Lock()
	switch {
	case rec.Denied():
		r.state.Denied++
	case rec.Allowed():
		r.state.Allowed++
	}
	r.mu.Unlock()
	r.trail.add(rec)
	if s.opt.Watch != nil {
		s.opt.Watch.Record(rec)
	}
	if r != root && audit.Ends(rec.Kind()) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.endDelegate(root, r, rec.Event)
	}
}

// delegate is the run, launched by root or by a delegate of it, of a record. It is
// known from its first record on.
func (s *Service) delegate(root *Run, rec *audit.Record) *Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &rec.Head
	if r := s.runs[h.RunID]; r != nil && r.root == root {
		return r
	}
	at := Time{rec.Time}
	r := &Run{
		id: h.RunID, tenant: root.tenant, caller: root.caller, root: root, trail: newTrail(),
		done: make(chan struct{}), unread: s.unread,
	}
	root.mu.Lock()
	r.state = State{
		RunID: h.RunID, TraceID: h.TraceID, Tenant: root.tenant, Agent: h.Agent, Caller: root.caller.Name,
		who: root.caller.who(), Door: root.state.Door,
		State: Running, QueuedAt: at, StartedAt: at, ParentRun: h.ParentRun,
	}
	if root.kids == nil {
		root.kids = map[string]*Run{}
	}
	root.kids[r.id] = r
	root.mu.Unlock()
	s.runs[r.id] = r
	s.events.tell("run.started", r)
	return r
}

// endDelegate notes how a delegate of root ended; e is its last record, nil if
// that is only in the log. The caller holds the lock of the service.
func (s *Service) endDelegate(root, r *Run, e *audit.Event) {
	root.mu.Lock()
	_, under := root.kids[r.id]
	delete(root.kids, r.id)
	root.mu.Unlock()
	if !under {
		return
	}
	r.mu.Lock()
	st := &r.state
	st.State, st.EndedAt = Done, s.now()
	st.WallMS = max(0, st.EndedAt.Sub(st.StartedAt.Time).Milliseconds())
	if e != nil {
		st.Outcome, st.ExitCode, st.Message = launcher.Outcome(e.Outcome), e.ExitCode, e.Message
		st.forThem = places.Ended(e.Outcome, e.Message)
		if e.Kind == audit.KindPolicyRejected {
			st.State = Refused
		}
	}
	r.err = fmt.Errorf("run %s was launched by run %s, whose report names it: %w", r.id, root.id, ErrNotFound)
	r.mu.Unlock()
	s.close(r)
	s.keep(r)
}

// delegates are those of r that have not ended.
func (r *Run) delegates() []*Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*Run
	for _, k := range r.kids {
		list = append(list, k)
	}
	return list
}
