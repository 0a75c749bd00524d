package service

import (
	"context"
	"log/slog"
	"slices"
)

type callerKey struct{}

// WithCaller returns ctx with who asks.
func WithCaller(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf is who asks in ctx; nil, which may nothing, where nobody was proved
// to.
func CallerOf(ctx context.Context) *Caller {
	c, _ := ctx.Value(callerKey{}).(*Caller)
	return c
}

type cutKey struct{}

// WithCut returns ctx with what ends the sending of its answer soon, whoever reads it.
func WithCut(ctx context.Context, cut func()) context.Context {
	return context.WithValue(ctx, cutKey{}, cut)
}

// CutOf is what ends the sending of the answer of ctx; nil: nothing does.
func CutOf(ctx context.Context) func() {
	cut, _ := ctx.Value(cutKey{}).(func())
	return cut
}

type namesKey struct{}

// WithNames returns ctx with what lines of the log about it have beside those names
// that it has already, such as its request_id.
func WithNames(ctx context.Context, names ...slog.Attr) context.Context {
	return context.WithValue(ctx, namesKey{}, append(NamesOf(ctx), names...))
}

// NamesOf are the names that lines of the log about ctx have.
func NamesOf(ctx context.Context) []slog.Attr {
	names, _ := ctx.Value(namesKey{}).([]slog.Attr)
	return slices.Clip(names)
}
