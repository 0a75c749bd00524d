package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"runloop.dev/rlp/internal/base/printable"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/launcher/compose"
)

// Log implements [service.Host].
func (h *Host) Log(ctx context.Context, who *service.Caller) (service.Log, error) {
	log := service.TellLog(who, tenantLog{h, who.Tenant}, h.namesOf)
	if unused(h, who.Tenant) {
		return log, nil
	}
	if err := h.use(ctx, who.Tenant, func(*kb.Store) error { return nil }); err != nil {
		h.log.Error("unavailable", "tenant", who.Tenant, "message", printable.Line(compose.ProblemOf(err).Text()))
		return nil, &service.UnavailableError{Why: errors.New("the log cannot be opened now; the log of the service says why")}
	}
	return log, nil
}

// Open opens the log of the default tenant, so that what an earlier process left in
// journals is taken in.
func (h *Host) Open(ctx context.Context) error {
	return h.use(ctx, home.DefaultTenant, func(*kb.Store) error { return nil })
}

// first reports whether nobody asked it of that tenant.
func (h *Host) first(tenant string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.tenants[tenant]
	h.tenants[tenant] = true
	return !before
}

// use does something with the store of a tenant, which is open meanwhile.
func (h *Host) use(ctx context.Context, tenant string, do func(*kb.Store) error) error {
	h.count(tenant)
	at, cfg, err := h.as(tenant, unsaid).Settings()
	if err != nil {
		return &service.UnavailableError{Why: err}
	}
	stores := h.runner.Kept.Stores
	k, err := stores.Take(at, cfg)
	if err == nil && k == nil {
		err = errors.New("the store is about to be opened under other settings; ask again")
	}
	if err != nil {
		return &service.UnavailableError{Why: fmt.Errorf("opening the log: %w", err)}
	}
	defer stores.GiveBack(k)
	if h.first(tenant) {
		if runs, err := journal.Names(at.Journal()); err == nil && len(runs) > 0 { // what an earlier process left
			stores.TakeIn(at, cfg, len(runs))
		}
	}
	return do(k.KB)
}

// LogSize is how many records the log of the default tenant has.
func (h *Host) LogSize() (records uint64, ok bool) {
	return h.number(func(ctx context.Context, log *kb.Store) (uint64, error) {
		head, err := log.Head(ctx)
		return head.Size, err
	})
}

// LogUnsealed is how many of them no signed checkpoint covers.
func (h *Host) LogUnsealed() (records uint64, ok bool) { return h.number(unsealed) }

// number is what is measured of the log of the default tenant.
func (h *Host) number(of func(context.Context, *kb.Store) (uint64, error)) (n uint64, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := h.use(ctx, home.DefaultTenant, func(log *kb.Store) (err error) {
		n, err = of(ctx, log)
		return err
	})
	return n, err == nil
}

// unsealed is how many records of a log are behind its newest checkpoint. That is
// near the end as a rule: it is looked for there, and then each time twice as far
// before it, so that what is read does not grow with the log.
func unsealed(ctx context.Context, log *kb.Store) (uint64, error) {
	head, err := log.Head(ctx)
	if err != nil {
		return 0, err
	}
	for back := uint64(1); ; back *= 2 {
		after := head.Size - min(back, head.Size)
		var newest uint64
		for c, err := range log.Checkpoints(ctx, after) {
			if err != nil {
				return 0, err
			}
			newest = c.Head.Size
		}
		if newest > 0 || after == 0 {
			return head.Size - min(newest, head.Size), nil // a run may have ended meanwhile
		}
	}
}

// backlog is how many journals of that tenant are not taken in.
func (h *Host) Backlog() (journals int64, ok bool) {
	at, err := h.as(home.DefaultTenant, unsaid).Home()
	if err != nil {
		return 0, false
	}
	runs, err := journal.Names(at.Journal())
	return int64(len(runs)), err == nil
}

// lookEach is how often journals are looked for that other processes left.
const lookEach = time.Second

// TakeInForeign takes in, until ctx ends, what launches outside this process
// leave in the journals of the tenants that were asked for.
func (h *Host) TakeInForeign(ctx context.Context) {
	tick := time.NewTicker(lookEach)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, tenant := range h.journalled() {
			if at, cfg, err := h.as(tenant, unsaid).Settings(); err == nil {
				h.runner.Kept.Stores.TakeIn(at, cfg, 0)
			}
		}
	}
}

// journalled are the tenants that were asked for and have journals.
func (h *Host) journalled() (tenants []string) {
	if h.there() != nil {
		return nil
	}
	h.mu.Lock()
	known := slices.Collect(maps.Keys(h.tenants))
	h.mu.Unlock()
	for _, tenant := range known {
		if none, err := noJournals(home.At(h.home, tenant)); err == nil && !none {
			tenants = append(tenants, tenant)
		}
	}
	return tenants
}

// noJournals reports whether there is nothing to take in. The folder is never
// empty: a key stays there, and what a process writes of many journals at once.
func noJournals(at home.Home) (bool, error) {
	runs, err := journal.Names(at.Journal())
	return len(runs) == 0, err
}
