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
)

// unused reports whether a tenant has no folder. Who only reads makes none: the name
// may be mistyped, in the head of an operator's request. Of a home that is gone nothing
// is known.
func unused(h *Host, tenant string) bool {
	_, err := os.Lstat(home.At(h.home, tenant).Root())
	return tenant != home.DefaultTenant && errors.Is(err, fs.ErrNotExist) && h.there() == nil
}

// An unusedLog is that of a tenant without a folder: empty, until there is one.
type unusedLog struct {
	h      *Host
	tenant string
}

// store is the store of the tenant; nil: it is unused yet.
func (l unusedLog) store(ctx context.Context) (*kb.Store, error) {
	if unused(l.h, l.tenant) {
		return nil, nil
	}
	return l.h.Store(ctx, l.tenant)
}

// Audit implements [service.Log].
func (l unusedLog) Audit(ctx context.Context, f kb.Filter) iter.Seq2[audit.Record, error] {
	return once(ctx, l, func(s *kb.Store) iter.Seq2[audit.Record, error] { return s.Audit(ctx, f) })
}

// Lines implements [service.Log].
func (l unusedLog) Lines(ctx context.Context, f kb.Filter) iter.Seq2[[]byte, error] {
	return once(ctx, l, func(s *kb.Store) iter.Seq2[[]byte, error] { return s.Lines(ctx, f) })
}

// Runs implements [service.Log].
func (l unusedLog) Runs(ctx context.Context, q kb.RunQuery) iter.Seq2[kb.RunSummary, error] {
	return once(ctx, l, func(s *kb.Store) iter.Seq2[kb.RunSummary, error] { return s.Runs(ctx, q) })
}

// Head implements [service.Log].
func (l unusedLog) Head(ctx context.Context) (kb.Head, error) {
	s, err := l.store(ctx)
	if err != nil || s == nil {
		return kb.Head{Root: sha256.Sum256(nil)}, err
	}
	return s.Head(ctx)
}

// once is what the store of a log has, if there is one by now.
func once[T any](ctx context.Context, l unusedLog, of func(*kb.Store) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		s, err := l.store(ctx)
		switch {
		case err != nil:
			var none T
			yield(none, err)
		case s != nil:
			of(s)(yield)
		}
	}
}
