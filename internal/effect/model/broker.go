package model

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
)

// A Config is what a broker works with.
type Config struct {
	// Default is the model of a request that names none.
	Default   string
	Providers []Provider
	Prices    map[string]Price // by "provider:model", model, or the former's beginning and "*"
	// Cache keeps the answers to requests that always get the same one.
	Cache bool
	// Backend asks providers; it is not used for the echo.
	Backend Backend
	// Key fetches the value of a secret at the moment of a call.
	Key func(ctx context.Context, id string) (string, error)
	// Now is the clock of the limit by the minute.
	Now func() time.Time
	// Above is the broker of the run that launched this one: what is spent here
	// is spent there too. nil: nobody did.
	Above *Broker
}

// A Broker answers the calls of one run, or of one tenant.
type Broker struct {
	cfg    Config
	ledger *ledger
	mu     sync.Mutex // guards cache
	cache  cache
}

// New makes a broker that nothing bounds yet. It opens and starts nothing.
func New(cfg Config) *Broker {
	var up *ledger
	if cfg.Above != nil {
		up = cfg.Above.ledger
	}
	return &Broker{cfg: cfg, ledger: newLedger(up)}
}

// Bound lowers what all calls together may cost. It never raises it.
func (b *Broker) Bound(l Limits) { b.ledger.bound(l) }

// Prepare puts the name that is really used into r: the default for "", and
// the provider's id before a name that has none. It says why r would not be
// asked for now, nil if it would be. Nothing is reserved by it.
func (b *Broker) Prepare(r Request) *Refusal {
	rt := b.resolve(r.Name())
	r.Use(rt.name)
	if rt.provider == nil {
		return b.lost(rt.name)
	}
	if _, cached := b.remembered(rt, r); cached {
		return nil
	}
	return b.ledger.fits(b.cfg.Now(), b.wish(rt, r))
}

// Complete asks a model to go on with a conversation. The error is a
// [*Refusal], or a [*Failure] whose cost is settled.
func (b *Broker) Complete(ctx context.Context, r *CompleteRequest) (*Answer, error) {
	rt := b.resolve(r.Model)
	if rt.provider == nil {
		return nil, b.lost(rt.name)
	}
	if a, ok := b.remembered(rt, r); ok {
		hit := *a.(*Answer)
		hit.Cached, hit.Usage.USD = true, 0
		return &hit, nil
	}
	answer := &Answer{Model: rt.name, ToolCalls: []ToolCall{}}
	usage, err := b.ask(ctx, rt, r, func(ctx context.Context, backend Backend, t Target, out int64) (Metered, error) {
		bounded := *r
		bounded.MaxTokens = out
		c, err := backend.Complete(ctx, t, &bounded)
		if err != nil {
			return Metered{}, err
		}
		answer.Text, answer.FinishReason = c.Text, c.FinishReason
		answer.ToolCalls = append(answer.ToolCalls, c.ToolCalls...)
		return c.metered(out), nil
	})
	if err != nil {
		return nil, err
	}
	answer.Usage = usage
	b.remember(rt, r, answer, len(answer.Text)+1024)
	return answer, nil
}

// Embed asks a model for vectors. Errors are those of Complete.
func (b *Broker) Embed(ctx context.Context, r *EmbedRequest) (*Embeddings, error) {
	rt := b.resolve(r.Model)
	if rt.provider == nil {
		return nil, b.lost(rt.name)
	}
	if a, ok := b.remembered(rt, r); ok {
		hit := *a.(*Embeddings)
		hit.Cached, hit.Usage.USD = true, 0
		return &hit, nil
	}
	answer := &Embeddings{Model: rt.name}
	usage, err := b.ask(ctx, rt, r, func(ctx context.Context, backend Backend, t Target, _ int64) (Metered, error) {
		v, err := backend.Embed(ctx, t, r)
		answer.Vectors = v.Vectors
		return Metered{In: v.Metered.In}, err
	})
	if err != nil {
		return nil, err
	}
	answer.Usage = usage
	b.remember(rt, r, answer, 4*len(answer.Vectors)*len(answer.Vectors[0]))
	return answer, nil
}

// An asking makes one call to a backend; out is what its output may have.
type asking func(ctx context.Context, backend Backend, t Target, out int64) (Metered, error)

// ask reserves, asks, and settles, whatever comes of it.
func (b *Broker) ask(ctx context.Context, rt route, r Request, do asking) (Usage, error) {
	w := b.wish(rt, r)
	held, refusal := b.ledger.reserve(b.cfg.Now(), w)
	if refusal != nil {
		return Usage{}, refusal
	}
	spent := Metered{}
	defer func() {
		b.ledger.settle(held, plus(spent.In, spent.Out), w.price.cost(spent.In, spent.Out))
	}()
	target, err := b.target(ctx, rt, r)
	if err != nil {
		return Usage{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, target.Timeout)
	defer cancel()
	m, err := do(ctx, b.backend(rt), target, held.out)
	if err != nil {
		spent = charge(err, held)
		return Usage{}, err
	}
	if m.In < 0 {
		m.In = w.in
	}
	spent = m
	return Usage{TokensIn: m.In, TokensOut: m.Out, USD: usd(w.price.cost(m.In, m.Out))}, nil
}

func (c *Completion) metered(out int64) Metered {
	m := c.Metered
	if m.Out < 0 {
		m.Out = c.bytes()
		if out > 0 {
			m.Out = min(m.Out, out)
		}
	}
	return m
}

// charge is what a call that failed is taken to have cost.
func charge(err error, held hold) Metered {
	var f *Failure
	if !errors.As(err, &f) {
		return Metered{held.in, held.out}
	}
	switch f.Charge {
	case ChargeNothing:
		return Metered{}
	case ChargeMeasured:
		m := f.Metered
		if m.In < 0 {
			m.In = held.in
		}
		return Metered{m.In, max(m.Out, f.Received)}
	}
	return Metered{held.in, held.out}
}

func (b *Broker) wish(rt route, r Request) wish {
	w := wish{in: r.bound(), model: rt.name}
	r.wants(&w)
	w.price, w.priced = priceOf(b.cfg.Prices, rt.name, rt.model)
	if rt.isEcho {
		w.in, w.priced = echoBound(r), true // free, unless the operator says otherwise
	}
	return w
}

// echoBound is what the echo will count.
func echoBound(r Request) int64 {
	switch r := r.(type) {
	case *CompleteRequest:
		return r.words()
	case *EmbedRequest:
		return r.words()
	}
	return r.bound()
}

func (b *Broker) backend(rt route) Backend {
	if rt.isEcho {
		return echo{}
	}
	return b.cfg.Backend
}

// target is whom to ask. The key is fetched here, for this call.
func (b *Broker) target(ctx context.Context, rt route, r Request) (Target, error) {
	timeout := r.patience()
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	t := Target{Kind: rt.provider.Kind, BaseURL: rt.provider.BaseURL, Model: rt.model, Timeout: timeout}
	if rt.isEcho {
		return t, nil
	}
	if b.cfg.Backend == nil {
		return t, refusef(NoProvider, "this rlp speaks to no providers")
	}
	if rt.provider.SecretID == "" {
		return t, nil
	}
	value, err := b.cfg.Key(ctx, rt.provider.SecretID)
	if value = strings.TrimSpace(value); err != nil || value == "" {
		refusal := refusef(NoProvider, "the key of the provider %q is not there; it would need rlp secrets put %s",
			rt.provider.ID, rt.provider.SecretID)
		refusal.Cause = err // which may name more than a guest should know
		return t, refusal
	}
	t.Key = NewKey(value)
	return t, nil
}

// remembered is the answer that the same request got before.
func (b *Broker) remembered(rt route, r Request) (any, bool) {
	if !b.cfg.Cache || !repeatable(rt, r) {
		return nil, false
	}
	d, ok := digestOf(rt.name, r)
	if !ok {
		return nil, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cache.get(d)
}

func (b *Broker) remember(rt route, r Request, answer any, size int) {
	if !b.cfg.Cache || !repeatable(rt, r) {
		return
	}
	d, ok := digestOf(rt.name, r)
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cache.put(d, answer, size)
}
