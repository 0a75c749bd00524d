package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"sync"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/audit"
	"runloop.dev/rlp/internal/config"
	"runloop.dev/rlp/internal/home"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/launcher"
)

// A store is the knowledge base of one invocation, opened at its first use: a
// run that asks nothing of it opens no database.
type store struct {
	ctx context.Context
	opt kb.Options
	mu  sync.Mutex
	kb  *kb.Store
}

func newStore(ctx context.Context, h home.Home, cfg config.Config) *store {
	return &store{ctx: ctx, opt: kb.Options{Home: h.Dir(), Tenant: h.Tenant(), Domains: cfg.KB.Domains}}
}

func (s *store) open() (*kb.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kb != nil {
		return s.kb, nil
	}
	opened, err := kb.Open(s.ctx, s.opt)
	if err != nil {
		return nil, err
	}
	s.kb = opened
	return opened, nil
}

// ingestBudget is how long a run that ends may take to bring a large backlog
// of journals into the log.
const ingestBudget = 2 * time.Second

// Close gives the store up, and takes in what lies in journals when it is open
// anyway or when there is much of it.
func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kb != nil {
		err := s.kb.Close()
		s.kb = nil
		return err
	}
	few, err := fewJournals(s.opt)
	if err != nil || few {
		return err
	}
	_, err = kb.IngestBacklog(s.ctx, s.opt, ingestBudget)
	return err
}

// maxJournals is how many journals may lie there before a run that ends takes
// them in.
const maxJournals = 512

// fewJournals counts names alone: it is asked at the end of every launch.
func fewJournals(opt kb.Options) (bool, error) {
	path, err := kb.JournalDir(opt.Home, opt.Tenant)
	if err != nil {
		return false, err
	}
	dir, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("counting journals: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxJournals + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("counting journals: %w", err)
	}
	return len(names) <= maxJournals, nil
}

// as is the knowledge base as one run writes it.
func (s *store) as(id launcher.Identity) hostcalls.KB {
	return &runKB{store: s, origin: kb.Origin{Agent: id.Agent, Run: id.RunID, Source: "agent"}}
}

// runKB is a kb.View behind the interface that the host calls want.
type runKB struct {
	store  *store
	origin kb.Origin
	view   *kb.View
}

func (r *runKB) open() (*kb.View, error) {
	if r.view != nil {
		return r.view, nil
	}
	s, err := r.store.open()
	if err != nil {
		return nil, err
	}
	r.view = s.View(r.origin)
	return r.view, nil
}

func (r *runKB) Get(ctx context.Context, domain, key string) ([]byte, error) {
	v, err := r.open()
	if err != nil {
		return nil, err
	}
	value, err := v.Get(ctx, domain, key)
	return value.Bytes, asFail(err)
}

func (r *runKB) Put(ctx context.Context, domain, key string, value []byte) (uint64, error) {
	v, err := r.open()
	if err != nil {
		return 0, err
	}
	rev, err := v.Put(ctx, domain, key, value)
	return rev, asFail(err)
}

func (r *runKB) CAS(ctx context.Context, domain, key string, value []byte, revision uint64) (uint64, error) {
	v, err := r.open()
	if err != nil {
		return 0, err
	}
	rev, err := v.CAS(ctx, domain, key, value, revision)
	return rev, asFail(err)
}

func (r *runKB) Delete(ctx context.Context, domain, key string) error {
	v, err := r.open()
	if err != nil {
		return err
	}
	return asFail(v.Delete(ctx, domain, key))
}

func (r *runKB) List(ctx context.Context, domain, prefix string) ([]hostcalls.KBEntry, error) {
	v, err := r.open()
	if err != nil {
		return nil, err
	}
	var list []hostcalls.KBEntry
	for e, err := range v.List(ctx, domain, prefix) {
		if err != nil {
			return nil, asFail(err)
		}
		list = append(list, hostcalls.KBEntry{Key: e.Key, Revision: e.Revision, Size: e.Size})
	}
	return list, nil
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

// journalClock is the clock that records are stamped by.
func journalClock() *journal.Clock { return journal.NewClock(time.Now) }

// mostDecisions is how many decisions a run may record: more than the usual
// only when the operator allows it more calls.
func mostDecisions(layers []*caps.Layer) uint32 {
	most := int64(journal.MaxDecisions)
	for _, l := range layers {
		if n, set := l.Limits.Get(caps.HostcallsMax); set {
			most = max(most, n)
		}
	}
	return uint32(min(most, math.MaxUint32/2))
}

// journalOpener opens the journal of a run; each decision goes to the log too.
func journalOpener(h home.Home, clock *journal.Clock, log *runLog, most uint32) func(audit.Head) (launcher.Journal, error) {
	return func(head audit.Head) (launcher.Journal, error) {
		dir, err := kb.JournalDir(h.Dir(), h.Tenant())
		if err != nil {
			return nil, err
		}
		j, err := journal.Create(journal.Options{Dir: dir, Head: head, Clock: clock, Observe: log.observe, MaxDecisions: most})
		if err != nil {
			return nil, fmt.Errorf("creating the journal: %w", err)
		}
		return j, nil
	}
}
