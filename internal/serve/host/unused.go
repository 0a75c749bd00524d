package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"iter"
	"os"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/compose"
)

// unused reports whether a tenant has no folder. Who only reads makes none: the name
// may be mistyped, in the head of an operator's request. Of a home that is gone nothing
// is known.
func unused(h *Host, tenant string) bool {
	_, err := os.Lstat(home.At(h.home, tenant).Root())
	return tenant != home.DefaultTenant && errors.Is(err, fs.ErrNotExist) && h.there() == nil
}

// A tenantLog is the log of a tenant, whose store is open while it is asked: empty,
// and not opened, for as long as the tenant is unused.
type tenantLog struct {
	h      *Host
	tenant string
}

// Audit implements [service.Log].
func (l tenantLog) Audit(ctx context.Context, f kb.Filter) iter.Seq2[audit.Record, error] {
	return each(ctx, l, func(s *kb.Store) iter.Seq2[audit.Record, error] { return s.Audit(ctx, f) })
}

// Lines implements [service.Log].
func (l tenantLog) Lines(ctx context.Context, f kb.Filter) iter.Seq2[[]byte, error] {
	return each(ctx, l, func(s *kb.Store) iter.Seq2[[]byte, error] { return s.Lines(ctx, f) })
}

// Runs implements [service.Log].
func (l tenantLog) Runs(ctx context.Context, q kb.RunQuery) iter.Seq2[kb.RunSummary, error] {
	return each(ctx, l, func(s *kb.Store) iter.Seq2[kb.RunSummary, error] { return s.Runs(ctx, q) })
}

// Tail implements [service.Tailer]. Following journals needs no store.
func (l tenantLog) Tail(ctx context.Context, f kb.Filter) iter.Seq2[audit.Record, error] {
	at, cfg, err := l.h.as(l.tenant, unsaid).Settings()
	if err != nil {
		return func(yield func(audit.Record, error) bool) { yield(audit.Record{}, err) }
	}
	return kb.Tail(ctx, compose.StoreOptions(at, cfg), f)
}

// Head implements [service.Log].
func (l tenantLog) Head(ctx context.Context) (kb.Head, error) {
	head := kb.Head{Root: sha256.Sum256(nil)}
	if unused(l.h, l.tenant) {
		return head, nil
	}
	err := l.h.use(ctx, l.tenant, func(s *kb.Store) (err error) {
		head, err = s.Head(ctx)
		return err
	})
	return head, err
}

// each is what the store of a log has, if there is one by now.
func each[T any](ctx context.Context, l tenantLog, of func(*kb.Store) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if unused(l.h, l.tenant) {
			return
		}
		err := l.h.use(ctx, l.tenant, func(s *kb.Store) error {
			of(s)(yield)
			return nil
		})
		if err != nil {
			var none T
			yield(none, err)
		}
	}
}
