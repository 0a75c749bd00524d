package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// fake is a backend that answers as it is told.
type fake struct {
	answer  Completion
	vectors Vectors
	err     error
	targets []Target
	asked   []CompleteRequest
}

func (f *fake) Complete(_ context.Context, t Target, r *CompleteRequest) (Completion, error) {
	f.targets, f.asked = append(f.targets, t), append(f.asked, *r)
	return f.answer, f.err
}

func (f *fake) Embed(_ context.Context, t Target, _ *EmbedRequest) (Vectors, error) {
	f.targets = append(f.targets, t)
	return f.vectors, f.err
}

const secretValue = "sk-very-secret"

func broker(f *fake, change func(c *Config)) *Broker {
	cfg := Config{
		Default: "openai:gpt", Backend: f,
		Providers: []Provider{
			{ID: "openai", Kind: "openai", SecretID: "runloop/openai/key"},
			{ID: "ollama", Kind: "openai", BaseURL: "http://127.0.0.1:11434/v1", Models: []string{"llama3:8b", "qwen*"}},
			{ID: "claude", Kind: "anthropic", Models: []string{"claude-*"}},
			{ID: "here", Kind: "local"},
		},
		Key: func(_ context.Context, id string) (string, error) {
			if id != "runloop/openai/key" {
				return "", fmt.Errorf("no secret %s", id)
			}
			return secretValue, nil
		},
		Now: func() time.Time { return time.Unix(1000, 0) },
	}
	if change != nil {
		change(&cfg)
	}
	return New(cfg)
}

func asks(model, text string) *CompleteRequest {
	return &CompleteRequest{Model: model, Messages: []Message{{Role: "user", Content: text}}}
}

// The name that is judged is the one that is used, and asking for it by that
// name is the same.
func TestNames(t *testing.T) {
	b := broker(&fake{}, nil)
	for asked, want := range map[string]string{
		"": "openai:gpt", "openai:o3": "openai:o3", "llama3:8b": "ollama:llama3:8b", "qwen3:0.6b": "ollama:qwen3:0.6b",
		"ollama:qwen3": "ollama:qwen3", "claude-x": "claude:claude-x", "local:echo": "local:echo", "here:echo": "here:echo",
	} {
		r := asks(asked, "x")
		if refusal := b.Prepare(r); refusal != nil || r.Model != want {
			t.Errorf("%q: %q, %v, want %q", asked, r.Model, refusal, want)
		}
		if again := asks(r.Model, "x"); b.Prepare(again) != nil || again.Model != want {
			t.Errorf("%q becomes %q", r.Model, again.Model)
		}
	}
	for asked, says := range map[string]string{
		"gpt":           `models = ["gpt"]`,
		"ollama:gpt":    `its models would need "gpt"`,
		"mistral:large": `id = "mistral"`,
		"local:other":   "local:echo",
		"claude:gpt":    `"gpt"`,
	} {
		r := asks(asked, "x")
		refusal := b.Prepare(r)
		if refusal == nil || refusal.Reason != NoProvider || !strings.Contains(refusal.Hint, says) || r.Model != asked {
			t.Errorf("%q: %v (%s)", asked, refusal, r.Model)
		}
		if _, err := b.Complete(t.Context(), r); !errors.As(err, &refusal) {
			t.Errorf("%q was asked: %v", asked, err)
		}
	}
}

// A key is fetched for the call, given to the one who needs it, and printed by
// nothing.
func TestKeys(t *testing.T) {
	f := &fake{answer: Completion{Text: "hi", FinishReason: "stop", Metered: Metered{1, 1}}}
	b := broker(f, nil)
	for _, name := range []string{"openai:gpt", "ollama:qwen"} {
		if _, err := b.Complete(t.Context(), asks(name, "x")); err != nil {
			t.Fatal(err)
		}
	}
	if f.targets[0].Key.Reveal() != secretValue || f.targets[1].Key.Reveal() != "" {
		t.Errorf("%v", f.targets)
	}
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "key", f.targets[0].Key, "target", f.targets[0])
	asJSON, err := json.Marshal(f.targets[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{logged.String(), string(asJSON), fmt.Sprintf("%v %+v %#v %s", f.targets[0], f.targets[0],
		f.targets[0], f.targets[0].Key)} {
		if strings.Contains(text, secretValue) {
			t.Errorf("printed: %s", text)
		}
	}
	b = broker(f, func(c *Config) { c.Providers[0].SecretID = "runloop/other/key" })
	_, err = b.Complete(t.Context(), asks("", "x"))
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Reason != NoProvider || !strings.Contains(refusal.Hint,
		"rlp secrets put runloop/other/key") || len(f.targets) != 2 {
		t.Errorf("%v", err)
	}
	if refusal.Cause == nil || strings.Contains(refusal.Hint, refusal.Cause.Error()) {
		t.Errorf("the operator hears %v, the guest %s", refusal.Cause, refusal.Hint)
	}
}

// A budget holds before the call: what does not fit is not asked, what is asked
// may not take more, and what a failure cost is counted.
//
//rlp:holds R86
func TestBudgetHoldsBeforeTheCall(t *testing.T) {
	const text = "twelve bytes"
	in := asks("", text).bound()
	for _, c := range []struct {
		name string
		err  error
		want int64
	}{
		{"answered", nil, 8},
		{"refused", &Failure{Kind: Refused, Charge: ChargeNothing}, 0},
		{"broken", &Failure{Kind: Broken, Charge: ChargeMeasured, Metered: Metered{5, 1}, Received: 7}, 12},
		{"broken without a word", &Failure{Kind: Broken, Charge: ChargeMeasured, Metered: Unmetered(), Received: 7}, in + 7},
		{"gone", &Failure{Kind: Unavailable, Charge: ChargeReserved}, in + 20},
		{"odd", errors.New("odd"), in + 20},
	} {
		f := &fake{answer: Completion{Text: "a b", Metered: Metered{5, 3}}, err: c.err}
		b := broker(f, nil)
		b.Bound(Limits{in + 20, math.MaxInt64, math.MaxInt64})
		r := asks("", text)
		_, _ = b.Complete(t.Context(), r)
		if len(f.asked) != 1 || f.asked[0].MaxTokens != 20 || r.MaxTokens != 0 {
			t.Fatalf("%s: %+v", c.name, f.asked)
		}
		if b.ledger.tokens != c.want {
			t.Errorf("%s cost %d, not %d", c.name, b.ledger.tokens, c.want)
		}
	}
	f := &fake{}
	b := broker(f, nil)
	b.Bound(Limits{in, math.MaxInt64, math.MaxInt64})
	var refusal *Refusal
	if _, err := b.Complete(t.Context(), asks("", text)); !errors.As(err, &refusal) || refusal.Reason != OverBudget ||
		!strings.Contains(refusal.Hint, "model_tokens") || len(f.asked) != 0 {
		t.Errorf("a call without room for an answer: %v", err)
	}
	b.Bound(Unlimited())
	if b.Prepare(asks("", text)) == nil {
		t.Error("a bound was raised")
	}
}

func TestUSD(t *testing.T) {
	f := &fake{answer: Completion{Text: "a", Metered: Metered{1000, 100}}}
	b := broker(f, func(c *Config) { c.Prices = map[string]Price{"openai:gpt": {2.5, 10}} })
	b.Bound(Limits{math.MaxInt64, math.MaxInt64, 10_000})
	a, err := b.Complete(t.Context(), asks("", "x"))
	if err != nil || a.Usage != (Usage{1000, 100, 0.0035}) || a.Model != "openai:gpt" {
		t.Errorf("%+v, %v", a, err)
	}
	for range 2 {
		if _, err := b.Complete(t.Context(), asks("", "x")); err != nil {
			t.Error(err)
		}
	}
	var refusal *Refusal
	if _, err = b.Complete(t.Context(), asks("", "x")); !errors.As(err, &refusal) || refusal.Reason != OverBudget ||
		!strings.Contains(refusal.Hint, "model_usd") {
		t.Errorf("%v", err)
	}
	asked := len(f.asked)
	refusal = b.Prepare(asks("ollama:qwen", "x"))
	if refusal == nil || refusal.Reason != OverBudget || !strings.Contains(refusal.Hint, `[model.prices."ollama:qwen"]`) ||
		len(f.asked) != asked {
		t.Errorf("a model without a price under a limit in dollars: %v", refusal)
	}
	if refusal := b.Prepare(asks(Echo, "x")); refusal != nil {
		t.Errorf("the echo is free: %v", refusal)
	}
}

// Where nobody says what a call cost, it cost what it can have cost.
func TestUsageAbsent(t *testing.T) {
	f := &fake{answer: Completion{Text: "four", Metered: Unmetered()}}
	b := broker(f, nil)
	a, err := b.Complete(t.Context(), asks("", "x"))
	if err != nil || a.Usage.TokensIn != asks("", "x").bound() || a.Usage.TokensOut != 4 {
		t.Errorf("%+v, %v", a, err)
	}
}

// A request that always gets the same answer is asked once, and costs once.
func TestCache(t *testing.T) {
	zero, warm := 0.0, 0.7
	f := &fake{answer: Completion{Text: "hi", Metered: Metered{3, 2}}, vectors: Vectors{
		Vectors: [][]float32{{1}},
		Metered: Metered{In: 4},
	}}
	b := broker(f, func(c *Config) {
		c.Cache, c.Prices = true, map[string]Price{"*": {1, 1}}
	})
	cold := func() *CompleteRequest {
		r := asks("", "x")
		r.Temperature = &zero
		return r
	}
	first, err := b.Complete(t.Context(), cold())
	if err != nil || first.Cached || first.Usage.USD == 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	spent := b.ledger.tokens
	b.Bound(Limits{spent, spent, 0})
	if refusal := b.Prepare(cold()); refusal != nil {
		t.Errorf("what costs nothing is refused: %v", refusal)
	}
	again, err := b.Complete(t.Context(), cold())
	want := *first
	want.Cached, want.Usage.USD = true, 0
	if err != nil || !reflect.DeepEqual(*again, want) || len(f.asked) != 1 || b.ledger.tokens != spent {
		t.Errorf("%+v, %v, asked %d times", again, err, len(f.asked))
	}
	b = broker(f, func(c *Config) { c.Cache = true })
	changed := []func(r *CompleteRequest){
		func(r *CompleteRequest) { r.Temperature = nil },
		func(r *CompleteRequest) { r.Temperature = &warm },
	}
	for i, change := range changed {
		for range 2 {
			r := cold()
			change(r)
			if a, err := b.Complete(t.Context(), r); err != nil || a.Cached {
				t.Errorf("%d: %+v, %v", i, a, err)
			}
		}
	}
	for _, r := range []*CompleteRequest{
		cold(),
		{Model: "ollama:qwen", Messages: cold().Messages, Temperature: &zero},
		{Messages: cold().Messages, Temperature: &zero, MaxTokens: 5},
	} {
		if a, err := b.Complete(t.Context(), r); err != nil || a.Cached {
			t.Errorf("another request got its answer: %+v, %v", a, err)
		}
	}
	for i := range 2 {
		if e, err := b.Embed(t.Context(), &EmbedRequest{Input: []string{"x"}}); err != nil || e.Cached != (i == 1) {
			t.Errorf("%+v, %v", e, err)
		}
	}
	off := broker(f, nil)
	for range 2 {
		if a, err := off.Complete(t.Context(), cold()); err != nil || a.Cached {
			t.Errorf("nobody asked for a cache: %+v, %v", a, err)
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	var c cache
	for i := range 3 * cacheEntries {
		c.put(digest{byte(i), byte(i >> 8)}, i, 1<<20)
	}
	if len(c.entries) != len(c.order) || c.bytes > cacheBytes || len(c.entries) == 0 {
		t.Errorf("%d entries, %d bytes", len(c.entries), c.bytes)
	}
	if _, ok := c.get(digest{}); ok {
		t.Error("the oldest is still there")
	}
	last := 3*cacheEntries - 1
	if v, ok := c.get(digest{byte(last), byte(last >> 8)}); !ok || v != last {
		t.Error("the newest is not there")
	}
	c.put(digest{1}, "huge", cacheBytes)
	if _, ok := c.get(digest{1}); ok {
		t.Error("one answer took all the room")
	}
}

// The echo needs nobody, and says the same to the same.
func TestEcho(t *testing.T) {
	b := New(Config{Default: Echo, Now: func() time.Time { return time.Unix(1, 0) }})
	r, err := ParseComplete(`{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"one  two three"}],"max_tokens":2}`)
	if err != nil {
		t.Fatal(err)
	}
	a, err := b.Complete(t.Context(), r)
	want := &Answer{
		Text: "one  two", ToolCalls: []ToolCall{}, Usage: Usage{TokensIn: 5, TokensOut: 2}, Model: Echo,
		FinishReason: "length",
	}
	if err != nil || !reflect.DeepEqual(a, want) {
		t.Errorf("%+v, %v", a, err)
	}
	r.MaxTokens, r.Stop = 0, []string{"three"}
	if a, err := b.Complete(t.Context(), r); err != nil || a.Text != "one  two " || a.FinishReason != "stop" {
		t.Errorf("%+v, %v", a, err)
	}
	r.Tools, r.ToolChoice = []Tool{{Name: "a"}, {Name: "b"}}, &ToolChoice{Mode: "required"}
	if a, err := b.Complete(t.Context(), r); err != nil || len(a.ToolCalls) != 1 || a.ToolCalls[0].Function.Name != "a" ||
		a.FinishReason != "tool_calls" {
		t.Errorf("%+v, %v", a, err)
	}
	e, err := b.Embed(t.Context(), &EmbedRequest{Input: []string{"a cat sat", "the cat sat", "quarterly revenue", "  "}})
	if err != nil || len(e.Vectors) != 4 || len(e.Vectors[0]) != echoDimensions || e.Usage.TokensIn != 8 {
		t.Fatalf("%+v, %v", e, err)
	}
	if dot(e.Vectors[0], e.Vectors[1]) <= dot(e.Vectors[0], e.Vectors[2]) {
		t.Error("texts with common words are not nearer")
	}
	for _, v := range e.Vectors {
		if math.Abs(dot(v, v)-1) > 1e-5 {
			t.Errorf("length %v", dot(v, v))
		}
	}
	if _, err := b.Embed(t.Context(), &EmbedRequest{Input: []string{"a", "b"}, Dimensions: MaxFloats}); err == nil {
		t.Error("vectors without end")
	}
}

// The run's limits hold for the echo too: it is how they are tried out.
//
//rlp:holds R78 R86
func TestEchoIsLimited(t *testing.T) {
	now := time.Unix(1000, 0)
	b := New(Config{Default: Echo, Now: func() time.Time { return now }})
	b.Bound(Limits{20, 8, math.MaxInt64})
	four := func() error {
		r := asks("", "one two")
		r.MaxTokens = 2
		_, err := b.Complete(t.Context(), r)
		return err
	}
	if errors.Join(four(), four()) != nil {
		t.Fatal("control: what fits is refused")
	}
	var refusal *Refusal
	if !errors.As(four(), &refusal) || refusal.Reason != OverRate {
		t.Errorf("%v", refusal)
	}
	for range 3 {
		now = now.Add(2 * time.Minute)
		if err := four(); err != nil {
			t.Errorf("after the minute: %v", err)
		}
	}
	now = now.Add(2 * time.Minute)
	if !errors.As(four(), &refusal) || refusal.Reason != OverBudget {
		t.Errorf("%v", refusal)
	}
}

func dot(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// cut is a name's provider and model.
func cut(name string) (id, model string, ok bool) { return strings.Cut(name, ":") }
