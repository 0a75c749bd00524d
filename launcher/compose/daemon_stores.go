package compose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"runloop.dev/rlp/internal/base/printable"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/journal"
)

// shelf is what a helper keeps open for the invocations that it does.
type shelf struct{ Stores *stores }

// NewKept begins to keep things for the launches that this process does, whose
// guests have so much memory together.
func NewKept(ctx context.Context, memory int64, problems io.Writer) *Kept {
	k := &Kept{
		Modules: guest.NewLibrary(0), Journals: &journal.Group{Resident: true},
		shelf: shelf{newStores(context.WithoutCancel(ctx), problems)},
	}
	k.Modules.Bound(memory)
	BoundHeap(memory)
	return k
}

// stores are the knowledge bases that a helper keeps open, one a tenant. A
// launch under other settings than one was opened with has it opened again, or
// goes to it as any other process would while somebody uses it.
type stores struct {
	problems io.Writer // of what is done behind the launches
	ctx      context.Context

	mu       sync.Mutex
	byTenant map[string]*KeptStore
	uses     uint64
	failed   map[string]failedStore // those that could not be opened lately
	waiting  map[string]int         // by tenant, journals that are not known to be in the log
	less     chan struct{}          // closed, and made anew, when they are fewer
	behind   sync.WaitGroup         // grows only with mu held and before over
	over     bool
	closing  chan struct{}
}

// mostWaiting is how many journals of a tenant may wait for the log before its
// launches wait too.
const mostWaiting = 512

// A failedStore is one that could not be opened, and when that was.
type failedStore struct {
	err error
	at  time.Time
}

// againAfter is how long after a store could not be opened it is tried again: who
// asks meanwhile would wait as long for the same answer.
const againAfter = 5 * time.Second

// takeInAfter is how long after a run its journal is taken in: the next launch
// is often not far behind, and several are taken in at the price of one.
const takeInAfter = 25 * time.Millisecond

// A KeptStore is one tenant's. It is open for as long as somebody uses it, and
// after that until others need its place.
type KeptStore struct {
	KB     *kb.Store
	Config config.Config

	turn sync.Mutex // held while it is opened or closed

	open   bool // what is below is guarded by stores.mu
	users  int
	last   uint64 // when it was taken, counted in uses of all
	taking bool   // journals are being taken in
	again  bool   // and once more after that
}

// mostOpen is how many stores stay open that nobody uses: each holds files and some
// megabytes, and whoever may name tenants could open any number.
const mostOpen = 32

func newStores(ctx context.Context, problems io.Writer) *stores {
	return &stores{
		ctx: ctx, problems: problems, byTenant: map[string]*KeptStore{}, failed: map[string]failedStore{},
		waiting: map[string]int{}, less: make(chan struct{}), closing: make(chan struct{}),
	}
}

// Take is the store of a tenant, open until it is given back. It is nil where it is
// in use under other settings.
func (s *stores) Take(h home.Home, cfg config.Config) (*KeptStore, error) {
	s.mu.Lock()
	k := s.byTenant[h.Tenant()]
	if k == nil {
		k = &KeptStore{}
		s.byTenant[h.Tenant()] = k
	}
	k.users++
	s.uses++
	k.last = s.uses
	spare := s.spare()
	s.mu.Unlock()
	for _, other := range spare {
		if err := s.closeUnused(other); err != nil {
			fmt.Fprintf(s.problems, "rlp: closing a store: %s\n", printable.Line(err.Error()))
		}
		s.GiveBack(other)
	}
	usable, err := s.ready(k, h, cfg)
	if !usable {
		s.GiveBack(k)
		return nil, err
	}
	return k, nil
}

// ready opens a store that its caller uses, unless it is. It is not usable where
// others use it under other settings, or where it cannot be opened.
func (s *stores) ready(k *KeptStore, h home.Home, cfg config.Config) (usable bool, err error) {
	k.turn.Lock()
	defer k.turn.Unlock()
	s.mu.Lock()
	open, alone := k.open, k.users == 1
	f, known := s.failed[h.Tenant()]
	s.mu.Unlock()
	switch {
	case open && sameStore(k.Config, cfg):
		return true, nil
	case open && !alone:
		return false, nil
	case open:
		if err := s.shut(k); err != nil {
			return false, err
		}
	case known && time.Since(f.at) < againAfter:
		return false, f.err
	}
	opened, err := kb.Open(s.ctx, StoreOptions(h, cfg))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed[h.Tenant()] = failedStore{err, time.Now()}
		return false, err
	}
	delete(s.failed, h.Tenant())
	k.KB, k.Config, k.open = opened, cfg, true
	return true, nil
}

// spare are the stores that are to be closed, those first that were used longest
// ago. Each counts as used, so that nobody else closes it. The caller holds mu.
func (s *stores) spare() (list []*KeptStore) {
	open := 0
	for _, k := range s.byTenant {
		if k.open {
			open++
		}
		if k.open && k.users == 0 {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b *KeptStore) int { return cmp.Compare(a.last, b.last) })
	list = list[:min(len(list), max(0, open-mostOpen))]
	for _, k := range list {
		k.users++
	}
	return list
}

// closeUnused closes a store that nobody but its caller uses.
func (s *stores) closeUnused(k *KeptStore) error {
	k.turn.Lock()
	defer k.turn.Unlock()
	s.mu.Lock()
	alone := k.users == 1 && k.open
	s.mu.Unlock()
	if !alone {
		return nil
	}
	return s.shut(k)
}

// shut closes a store. The caller holds its turn; who takes it meanwhile waits.
func (s *stores) shut(k *KeptStore) error {
	s.mu.Lock()
	k.open = false
	s.mu.Unlock()
	return k.KB.Close()
}

// GiveBack says that a store which was taken is used no more.
func (s *stores) GiveBack(k *KeptStore) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.users--; k.users > 0 || k.open {
		return
	}
	for tenant, known := range s.byTenant {
		if known == k {
			delete(s.byTenant, tenant)
		}
	}
}

// sameStore reports whether two settings open a store alike.
func sameStore(a, b config.Config) bool {
	return slices.Equal(a.KB.Domains, b.KB.Domains) && a.KB.Durability == b.KB.Durability &&
		a.Audit.CheckpointEvery == b.Audit.CheckpointEvery && a.KB.Encryption == b.KB.Encryption
}

// admit waits, before a launch, until few enough journals of its tenant wait for
// the log. Only the run that was asked for waits, and no delegate of it.
func (k *Kept) admit(ctx context.Context, c *Composition) {
	if k != nil && c.Origin.from == nil {
		k.Stores.wait(ctx, c.Home.Tenant())
	}
}

// ended has the journal of a run that is over taken into the log.
func (k *Kept) ended(c *Composition) {
	if k != nil && c.Origin.from == nil {
		k.Stores.TakeIn(c.Home, c.Config, 1)
	}
}

// wait waits until fewer journals of a tenant wait than may, or ctx ends.
func (s *stores) wait(ctx context.Context, tenant string) {
	for {
		s.mu.Lock()
		n, less := s.waiting[tenant], s.less
		s.mu.Unlock()
		if n < mostWaiting {
			return
		}
		select {
		case <-less:
		case <-ctx.Done():
			return
		}
	}
}

// Backlog is how many journals of all tenants wait.
func (s *stores) Backlog() (journals int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.waiting {
		journals += n
	}
	return journals
}

// WaitingOf is how many journals of one tenant wait.
func (s *stores) WaitingOf(tenant string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting[tenant]
}

// took says that so many journals of a tenant wait no more. The caller holds mu.
func (s *stores) took(tenant string, journals int) {
	s.waiting[tenant] = max(0, s.waiting[tenant]-journals)
	close(s.less)
	s.less = make(chan struct{})
}

// forget says that nobody here takes in journals of a tenant now.
func (s *stores) forget(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took(tenant, s.waiting[tenant])
}

// TakeIn takes in what the journals of a tenant hold, behind the launch that
// wrote the last of them: so many are new. After [stores.Close] it does nothing:
// what opens the log next takes them in.
func (s *stores) TakeIn(h home.Home, cfg config.Config, journals int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.waiting[h.Tenant()] += journals
	s.behind.Go(func() {
		select {
		case <-time.After(takeInAfter):
		case <-s.closing:
		}
		k, err := s.Take(h, cfg)
		if k == nil { // nothing can be done about them here
			s.forget(h.Tenant())
		}
		if err == nil && k != nil {
			err = s.ingest(k, h.Tenant())
			s.GiveBack(k)
		}
		if err != nil && s.ctx.Err() == nil {
			fmt.Fprintf(s.problems, "rlp: taking in journals: %s\n", printable.Line(err.Error()))
		}
	})
}

// ingest takes journals in, unless somebody is at it already, who then does it
// once more.
func (s *stores) ingest(k *KeptStore, tenant string) error {
	s.mu.Lock()
	if k.taking {
		k.again = true
		s.mu.Unlock()
		return nil
	}
	k.taking = true
	s.mu.Unlock()
	for {
		s.mu.Lock()
		there := s.waiting[tenant] // of those that come meanwhile nothing is known
		s.mu.Unlock()
		_, err := k.KB.Ingest(s.ctx)
		s.mu.Lock()
		s.took(tenant, there) // after an error, too: a log that fails keeps nobody from working
		if !k.again || err != nil {
			k.taking, k.again = false, false
			s.mu.Unlock()
			return err
		}
		k.again = false
		s.mu.Unlock()
	}
}

// Close waits for what is done behind the launches, and gives the stores up. It
// returns those that could not be closed.
func (s *stores) Close() error {
	s.mu.Lock()
	s.over = true
	close(s.closing)
	s.mu.Unlock()
	s.behind.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var failed []error
	for tenant, k := range s.byTenant {
		if !k.open {
			continue
		}
		if err := k.KB.Close(); err != nil {
			failed = append(failed, fmt.Errorf("closing the store of tenant %s: %w", tenant, err))
		}
	}
	return errors.Join(failed...)
}

// BoundHeap has garbage collected before the heap of this process is two thirds of
// what runs may have, which is half of what a control group allows: what the system
// ends a process for is not garbage then. GOMEMLIMIT says something else.
func BoundHeap(forRuns int64) {
	if forRuns > 0 && debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(forRuns / 3 * 2)
	}
}
