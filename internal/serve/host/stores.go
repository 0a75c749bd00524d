package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"runloop.dev/rlp/internal/base/printable"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/launcher/compose"
)

// Log implements [service.Host]. A store that was opened stays open, so that each
// question finds it ready.
func (h *Host) Log(ctx context.Context, who *service.Caller) (service.Log, error) {
	if unused(h, who.Tenant) {
		return service.TellLog(who, unusedLog{h, who.Tenant}), nil
	}
	log, err := h.Store(ctx, who.Tenant)
	if err != nil {
		h.log.Error("unavailable", "tenant", who.Tenant, "message", printable.Line(compose.ProblemOf(err).Text()))
		return nil, &service.UnavailableError{Why: errors.New("the log cannot be opened now; the log of the service says why")}
	}
	return service.TellLog(who, log), nil
}

// store is the store of a tenant, open.
func (h *Host) Store(ctx context.Context, tenant string) (*kb.Store, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.opened[tenant]; k != nil {
		return k.KB, nil
	}
	h.opened[tenant] = nil // counts for [Host.Ready] even if opening fails
	a := h.as(tenant, nil)
	at, cfg, err := a.Settings()
	if err != nil {
		return nil, &service.UnavailableError{Why: err}
	}
	k, err := h.runner.Kept.Stores.Take(at, cfg)
	if err == nil && k == nil {
		err = errors.New("the store is about to be opened under other settings; ask again")
	}
	if err != nil {
		return nil, &service.UnavailableError{Why: fmt.Errorf("opening the log: %w", err)}
	}
	if runs, err := journal.Names(at.Journal()); err == nil && len(runs) > 0 { // what an earlier process left
		h.runner.Kept.Stores.TakeIn(at, cfg, len(runs))
	}
	h.opened[tenant] = k
	return k.KB, nil
}

// logSize is how many records the log of the default tenant has.
func (h *Host) LogSize() (records uint64, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	log, err := h.Store(ctx, home.DefaultTenant)
	if err != nil {
		return 0, false
	}
	head, err := log.Head(ctx)
	return head.Size, err == nil
}

// logUnsealed is how many of them no signed checkpoint covers.
func (h *Host) LogUnsealed() (records uint64, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	log, err := h.Store(ctx, home.DefaultTenant)
	if err != nil {
		return 0, false
	}
	records, err = unsealed(ctx, log)
	return records, err == nil
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

// takeInForeign takes in, until ctx ends, what launches outside this process
// leave in the journals of the tenants whose logs are open.
func (h *Host) TakeInForeign(ctx context.Context) {
	tick := time.NewTicker(lookEach)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, t := range h.tenants() {
			if none, err := noJournals(t.home); err == nil && !none {
				h.runner.Kept.Stores.TakeIn(t.home, t.config, 0)
			}
		}
	}
}

// noJournals reports whether there is nothing to take in. The folder is never
// empty: a key stays there, and what a process writes of many journals at once.
func noJournals(at home.Home) (bool, error) {
	runs, err := journal.Names(at.Journal())
	return len(runs) == 0, err
}

type openTenant struct {
	home   home.Home
	config config.Config
}

func (h *Host) tenants() (list []openTenant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for tenant, k := range h.opened {
		if k == nil {
			continue
		}
		if at, err := h.as(tenant, nil).Home(); err == nil {
			list = append(list, openTenant{at, k.Config})
		}
	}
	return list
}
