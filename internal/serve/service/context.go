package service

import "context"

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
