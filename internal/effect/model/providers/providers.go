// Package providers asks models by the protocols of those who offer them: openai
// for all that speak that protocol (OpenAI, Ollama, vLLM, ...), anthropic for its
// own.
//
// An answer that began is never asked for again, and neither is one that may
// have begun: what was paid once is not paid twice. Nothing is taken from the
// environment, no proxy is used, TLS is verified, and a redirect to another
// host is an error. A key is in one header of one request and in no error.
package providers

import (
	"context"
	"net/http"
	"time"

	"runloop.dev/rlp/internal/effect/model"
)

// Options change how providers are asked; the zero value is what runs use.
type Options struct {
	// Transport is for tests; nil is [NewTransport].
	Transport http.RoundTripper
	// Backoff is the wait before the first repetition, doubled for each one
	// after it; 0 is half a second.
	Backoff time.Duration
}

// Providers is a [model.Backend] in this process.
type Providers struct {
	client  *http.Client
	backoff time.Duration
}

// New makes a backend. It opens no connection before the first call.
func New(opt Options) *Providers {
	if opt.Transport == nil {
		opt.Transport = NewTransport()
	}
	if opt.Backoff == 0 {
		opt.Backoff = 500 * time.Millisecond
	}
	return &Providers{client: newClient(opt.Transport), backoff: opt.Backoff}
}

// Complete asks for a completion. The error is a [*model.Failure].
func (p *Providers) Complete(ctx context.Context, t model.Target, r *model.CompleteRequest) (model.Completion, error) {
	var stream func(ctx context.Context, got *progress) error
	var err error
	switch t.Kind {
	case "openai":
		stream, err = p.openaiStream(t, r)
	case "anthropic":
		stream, err = p.anthropicStream(t, r)
	default:
		err = unsupported("a provider of kind %q completes nothing", t.Kind)
	}
	if err != nil {
		return model.Completion{}, err
	}
	got, err := p.attempts(ctx, t, func(ctx context.Context, got *progress) error {
		got.emit = r.Emit // an answer that began is not asked for again, so that parts come once
		return stream(ctx, got)
	})
	if err != nil {
		return model.Completion{}, err
	}
	return got.completion(), nil
}

// Embed asks for vectors. The error is a [*model.Failure].
func (p *Providers) Embed(ctx context.Context, t model.Target, r *model.EmbedRequest) (model.Vectors, error) {
	if t.Kind != "openai" {
		return model.Vectors{}, unsupported("a provider of kind %q makes no vectors", t.Kind)
	}
	q, err := openaiQuestion(t, "/embeddings", &embedRequest{t.Model, r.Input, "float", r.Dimensions})
	if err != nil {
		return model.Vectors{}, err
	}
	var v model.Vectors
	_, err = p.attempts(ctx, t, func(ctx context.Context, got *progress) error {
		vectors, err := p.openaiEmbed(ctx, q, len(r.Input))
		v, got.ended = vectors, err == nil
		return err
	})
	return v, err
}
