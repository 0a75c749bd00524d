package service

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"time"

	"runloop.dev/rlp/internal/base/ident"
)

// mostWaitingBytes bounds the requests that wait, whatever their number.
const mostWaitingBytes = 256 << 20

// share is the part of the queue that is left to callers who have little waiting:
// one in so many places.
const share = 8

// Submit takes a request of c: it runs when its turn comes, whatever becomes of
// ctx, which is that of the checks alone. A key makes it safe to ask again: the
// same caller's same key is the same run for as long as the run is kept, 24 hours
// at most, and with another request it is [ErrConflict].
//
// Nothing is queued that [Host.Check] refuses. A queue that is full is a
// [BusyError], and so is one that has only the places left which are for others
// than c, who has many runs waiting.
func (s *Service) Submit(ctx context.Context, c *Caller, q *Request, idempotency string) (*Run, error) {
	if !c.Can(Launch) || !c.Until.IsZero() && !s.opt.Now().Before(c.Until) {
		return nil, fmt.Errorf("launching agents: %w", ErrForbidden)
	}
	k, err := keyOf(c, q, idempotency)
	if err != nil {
		return nil, err
	}
	if r, err := s.before(k); r != nil || err != nil {
		return r, err
	}
	if err := s.opt.Host.Check(ctx, c, q); err != nil {
		return nil, err
	}
	r, err := s.made(ctx, c, q)
	if err != nil {
		return nil, err
	}
	return s.admit(r, k)
}

// made is a run of a request that nobody has yet.
func (s *Service) made(ctx context.Context, c *Caller, q *Request) (*Run, error) {
	id, err := ident.NewRun()
	if err != nil {
		return nil, &UnavailableError{Why: err}
	}
	own := *q
	if own.TraceID == "" {
		own.TraceID = newTrace()
	}
	r := &Run{
		id: id.String(), tenant: c.Tenant, caller: c, size: sizeOf(q), request: &own, done: make(chan struct{}),
		trail: newTrail(), unread: s.unread,
	}
	named := WithNames(context.Background(), append(NamesOf(ctx), slog.String("run_id", r.id))...)
	r.ctx, r.cancel = context.WithCancelCause(named)
	if q.Turns {
		r.inputs = newInputs(s.opt.TurnIdle, func() { r.cancel(idled(s.opt.TurnIdle)) })
	}
	r.state = State{
		RunID: r.id, TraceID: own.TraceID, Tenant: c.Tenant, Agent: q.Agent, Caller: c.Name, who: c.who(), Door: q.Door,
		State: Queued, QueuedAt: s.now(),
		ParentSpan: q.ParentSpan,
	}
	return r, nil
}

// newTrace names a trace.
func newTrace() string {
	var p [16]byte
	rand.Read(p[:]) //nolint:errcheck // it never fails
	return hex.EncodeToString(p[:])
}

// sizeOf is about how much memory a request takes.
func sizeOf(q *Request) int64 {
	n := 1024 + len(q.Bundle) + len(q.Input) + len(q.InputBytes) + len(q.Grant) + len(q.Override)
	for _, list := range [][]string{q.Args, q.Profiles, q.Allow, q.Deny} {
		for _, v := range list {
			n += len(v)
		}
	}
	return int64(n)
}

// admit gives r a worker, or a place in the queue.
func (s *Service) admit(r *Run, k *key) (*Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if earlier, err := s.beforeLocked(k); earlier != nil || err != nil { // it came twice at once
		return earlier, err
	}
	if s.load.Draining {
		return nil, ErrDraining
	}
	if r.inputs != nil {
		if err := s.mayTurn(r); err != nil {
			return nil, err
		}
	}
	now := s.load.Running < s.opt.Workers && !s.unread.full(r.caller)
	if !now && !s.room(r) {
		return nil, s.busy(r)
	}
	if r.inputs != nil {
		s.turning.begin(r)
	}
	s.runs[r.id] = r
	s.watchOver(r)
	s.keyed.remember(r, k, s.opt.Now())
	s.events.tell("run.queued", r)
	if now {
		s.load.Running++
		go s.work(r)
		return r, nil
	}
	s.waiting.push(r)
	return r, nil
}

// busyEvery is how often the log says that there is too much to do.
const busyEvery = time.Second

// busy turns r away. The caller holds the lock.
func (s *Service) busy(r *Run) error {
	s.load.Busy++
	n := s.waiting.len()
	if now := s.opt.Now(); now.Sub(s.saidBusy) >= busyEvery {
		s.saidBusy = now
		s.opt.Log.LogAttrs(context.Background(), slog.LevelWarn, "busy",
			slog.String("tenant", r.tenant), slog.String("caller", r.caller.Name), slog.Int("waiting", n),
			slog.Uint64("turned_away", s.load.Busy))
	}
	if s.unread.full(r.caller) {
		return s.unread.busy()
	}
	wait, all, own := s.pace.wait(n, s.opt.Workers), s.load.Queue, s.waiting.of(r.tenant, r.caller.who())
	why := fmt.Sprintf("%d requests of this caller wait for a worker, and no more of one may while the queue is nearly "+
		"full: an eighth of [serve] queue = %d in config.toml", own, all)
	switch {
	case n >= all:
		why = fmt.Sprintf("%d requests wait for a worker, as many as may: [serve] queue in config.toml", n)
	case s.waiting.bytes+r.size > mostWaitingBytes:
		why = fmt.Sprintf("the requests that wait for a worker hold %d MiB, as much as they may", mostWaitingBytes>>20)
	}
	return &BusyError{RetryAfter: wait, Why: fmt.Sprintf("%s; ask again in %s", why, wait)}
}

// room reports whether r may wait.
func (s *Service) room(r *Run) bool {
	n, all := s.waiting.len(), s.load.Queue
	kept := all / share
	switch {
	case n >= all, n > 0 && s.waiting.bytes+r.size > mostWaitingBytes:
		return false
	case n < all-kept:
		return true
	}
	return s.waiting.of(r.tenant, r.caller.who()) < kept
}
