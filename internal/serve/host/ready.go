package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/launcher/compose"
)

// mostTried is how many tenants are tried for one answer: the default one, and
// those that were tried longest ago. Of the others the answer is that of before.
const mostTried = 16

// tryTime is how long the logs have to answer together.
const tryTime = 30 * time.Second

// A readiness is what was found when it was tried whether runs can be recorded.
type readiness struct {
	turn  chan struct{} // has an element while somebody tries
	begun atomic.Uint64 // trials
	found []service.TenantState
	tried map[string]trialOfTenant // by tenant, for as long as this host is
}

type trialOfTenant struct {
	number uint64 // of the trial
	err    error
}

// Ready says of each tenant that was asked for, by readers of its log or by requests
// to launch, why no run of it could be recorded
// now. Any number of those who ask at once take two trials at most: who comes while
// one is under way shares the next.
func (h *Host) Ready(ctx context.Context) []service.TenantState {
	r := &h.ready
	before := r.begun.Load()
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return []service.TenantState{{Tenant: home.DefaultTenant, Reason: "trying the log takes too long"}}
	}
	defer func() { <-r.turn }()
	if r.begun.Load() > before {
		return slices.Clone(r.found)
	}
	number := r.begun.Add(1)
	ctx = context.WithoutCancel(ctx) // the answer is others' too
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	tenants := h.asked()
	for _, tenant := range tenants[:min(len(tenants), mostTried)] {
		r.tried[tenant] = trialOfTenant{number, h.canRecord(ctx, tenant)}
	}
	slices.Sort(tenants[1:])
	r.found = nil
	for _, tenant := range tenants {
		s := service.TenantState{Tenant: tenant, Waiting: h.runner.Kept.Stores.WaitingOf(tenant)}
		if err := r.tried[tenant].err; err != nil {
			s.Reason = compose.ProblemOf(err).Text()
		}
		r.found = append(r.found, s)
	}
	return slices.Clone(r.found)
}

// count makes a tenant one of those that [Host.Ready] tries.
func (h *Host) count(tenant string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.tenants[tenant]; !known {
		h.tenants[tenant] = false
	}
}

// asked are the tenants that were asked for: the default one in front, then
// those that were tried longest ago.
func (h *Host) asked() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := []string{}
	for tenant := range h.tenants {
		if tenant != home.DefaultTenant {
			list = append(list, tenant)
		}
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Compare(h.ready.tried[a].number, h.ready.tried[b].number) })
	return append([]string{home.DefaultTenant}, list...)
}

// canRecord says why no run of a tenant could be recorded now.
func (h *Host) canRecord(ctx context.Context, tenant string) error {
	if err := h.there(); err != nil {
		return err
	}
	err := h.use(ctx, tenant, func(log *kb.Store) error {
		_, err := log.Head(ctx)
		if err == nil {
			err = h.room(log)
		}
		if err != nil {
			return fmt.Errorf("the audit log: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	at, err := h.as(tenant, unsaid).Home()
	if err == nil {
		err = home.Make(at.Log())
	}
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(at.Log(), ".ready-*")
	if err != nil {
		return fmt.Errorf("nothing can be written into the home: %w", err)
	}
	_, err = f.WriteString("x")
	if err := errors.Join(err, f.Close(), os.Remove(f.Name())); err != nil {
		return err
	}
	return journal.Try(at.Journal())
}
