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
