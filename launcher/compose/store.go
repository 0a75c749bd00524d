package compose

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/run"
)

// A store is the knowledge base of one invocation, opened at its first use: a
// run that asks nothing of it opens no database.
type store struct {
	ctx  context.Context
	home home.Home
	opt  kb.Options
	mu   sync.Mutex
	kb   *kb.Store

	keep *stores    // of the helper that does this invocation; nil: none does
	kept *KeptStore // the one of them that kb is
	cfg  config.Config
}

func newStore(ctx context.Context, h home.Home, cfg config.Config) *store {
	return &store{ctx: ctx, home: h, opt: StoreOptions(h, cfg), cfg: cfg}
}

// StoreOptions are the options of every opening of a store: all processes mask
// alike, or the index would be made again by each.
func StoreOptions(h home.Home, cfg config.Config) kb.Options {
	key := &logKey{home: h}
	return kb.Options{
		Home: h.Dir(), Tenant: h.Tenant(), Domains: cfg.KB.Domains,
		Mask: NewMasks(h).Index, MaskVersion: MaskVersion,
		Signed: func() bool { return SignedBefore(h) },
		Seal:   key.seal, SealMark: key.sealMark, CheckpointEvery: int(cfg.Audit.CheckpointEvery),
	}
}

// open opens the store, or gives up with ctx: what a run waits for here ends
// with the run.
func (s *store) open(ctx context.Context) (*kb.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kb != nil {
		return s.kb, nil
	}
	if s.keep != nil {
		kept, err := s.keep.Take(s.home, s.cfg)
		if err != nil {
			return nil, err
		}
		if kept != nil {
			s.kept, s.kb = kept, kept.KB
			return s.kb, nil
		}
	}
	opened, err := kb.Open(ctx, s.opt)
	if err != nil {
		return nil, err
	}
	s.kb = opened
	return opened, nil
}

// ingestBudget is how long a run that ends may take to bring a large backlog
// of journals into the log.
const ingestBudget = 2 * time.Second

// lookEvery is how many launches there are for each that counts the journals:
// listing hundreds of names takes as long as running a small agent.
const lookEvery = 16

// Close gives the store up, and takes in what lies in journals when it is open
// anyway or when there is much of it.
func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept != nil {
		s.keep.GiveBack(s.kept)
		s.kept, s.kb = nil, nil
		return nil
	}
	if s.kb != nil {
		err := s.kb.Close()
		s.kb = nil
		return err
	}
	if s.keep != nil || rand.IntN(lookEvery) != 0 { // a helper takes them in behind the run
		return nil
	}
	few, err := FewJournals(s.home)
	if err != nil || few {
		return err
	}
	_, err = kb.IngestBacklog(s.ctx, s.opt, ingestBudget)
	return err
}

// as is the knowledge base as one run writes it.
func (s *store) as(id run.Identity) hostcalls.KB {
	return &runKB{store: s, origin: kb.Origin{Agent: id.Agent, Run: id.RunID, Source: "agent", Label: kb.Trusted}}
}

// runKB is a kb.View behind the interface that the host calls want. What a run
// writes is trusted until it has taken in something that is not.
type runKB struct {
	store  *store
	origin kb.Origin
	view   *kb.View
}

// writer is the view for a change. The label is that of the moment, and the
// source of what is not to be trusted is what the run has taken in.
func (r *runKB) writer(ctx context.Context, because string) (*kb.View, error) {
	if because == "" {
		return r.open(ctx)
	}
	s, err := r.store.open(ctx)
	if err != nil {
		return nil, err
	}
	from := r.origin
	from.Source, from.Label = because, kb.Untrusted
	return s.View(from), nil
}

func (r *runKB) open(ctx context.Context) (*kb.View, error) {
	if r.view != nil {
		return r.view, nil
	}
	s, err := r.store.open(ctx)
	if err != nil {
		return nil, err
	}
	r.view = s.View(r.origin)
	return r.view, nil
}

func (r *runKB) Get(ctx context.Context, domain, key string) (hostcalls.KBValue, error) {
	v, err := r.open(ctx)
	if err != nil {
		return hostcalls.KBValue{}, err
	}
	c, err := v.Content(ctx, domain, key)
	return hostcalls.KBValue(c), asFail(err)
}

func (r *runKB) Put(ctx context.Context, c hostcalls.KBChange) (uint64, error) {
	v, err := r.writer(ctx, c.Because)
	if err != nil {
		return 0, err
	}
	rev, err := v.Put(ctx, c.Domain, c.Key, c.Value)
	return rev, asFail(err)
}

func (r *runKB) CAS(ctx context.Context, c hostcalls.KBChange, revision uint64) (uint64, error) {
	v, err := r.writer(ctx, c.Because)
	if err != nil {
		return 0, err
	}
	rev, err := v.CAS(ctx, c.Domain, c.Key, c.Value, revision)
	return rev, asFail(err)
}

func (r *runKB) Delete(ctx context.Context, c hostcalls.KBChange) error {
	v, err := r.writer(ctx, c.Because)
	if err != nil {
		return err
	}
	return asFail(v.Delete(ctx, c.Domain, c.Key))
}

func (r *runKB) List(ctx context.Context, domain, prefix string) ([]hostcalls.KBEntry, error) {
	v, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	var list []hostcalls.KBEntry
	var held abi.Held
	defer func() { _ = held.Set(ctx, 0) }() // from then on it is an answer like others
	size := 0
	for e, err := range v.List(ctx, domain, prefix) {
		if err != nil {
			return nil, asFail(err)
		}
		size += len(e.Key) + 64 // and what stands beside it
		list = append(list, hostcalls.KBEntry{
			Key: e.Key, Revision: e.Revision, Size: e.Size,
			Trusted: e.Origin.Label == kb.Trusted,
		})
		if err := held.Set(ctx, size); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (r *runKB) Search(ctx context.Context, q hostcalls.KBQuery) ([]hostcalls.KBHit, error) {
	v, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	hits, err := v.Search(ctx, kb.Query(q))
	list := make([]hostcalls.KBHit, len(hits))
	for i, h := range hits {
		list[i] = hostcalls.KBHit(h)
	}
	return list, asFail(err)
}

// asFail gives what a guest may know of a store's refusal its error number.
func asFail(err error) error {
	switch {
	case errors.Is(err, kb.ErrConflict):
		return &hostcalls.Fail{Errno: hostcalls.Again, Hint: "the stored revision is another; read it again"}
	case errors.Is(err, kb.ErrDomain), errors.Is(err, kb.ErrInvalid):
		return &hostcalls.Fail{Errno: hostcalls.Inval, Hint: err.Error()}
	}
	return err
}
