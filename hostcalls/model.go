package hostcalls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/model"
)

const (
	completeName = "model_complete"
	embedName    = "model_embed"
)

var (
	completeCall  = modelCall(model.ParseComplete, (*Host).complete)
	embedCall     = modelCall(model.ParseEmbed, (*Host).embed)
	modelComplete = define(completeName, 1, caps.Model, completeCall)
	modelEmbed    = define(embedName, 1, caps.Model, embedCall)
)

// A modelReq is a request, and the text that it was read from.
type modelReq[R model.Request] struct {
	ask  R
	text string
}

// modelCall makes one of the two calls: they differ in what is read, asked and
// answered, and in nothing that is decided.
func modelCall[R model.Request](parse func(string) (R, error), ask func(*Host, context.Context, R) (any, error),
) gated[modelReq[R]] {
	return gated[modelReq[R]]{
		decode: func(in []string) (modelReq[R], error) {
			r, err := parse(in[0])
			if err == nil && r.Name() != "" && !caps.IsName(caps.Model, r.Name()) {
				err = &model.FieldError{Path: "model", Problem: `is not the name of a model, such as "openai:gpt-4o"`}
			}
			return modelReq[R]{r, in[0]}, err
		},
		resolve: func(h *Host, r *modelReq[R]) (caps.Code, string) { return h.prepare(r.ask) },
		touches: func(r modelReq[R]) (caps.Request, string) {
			return caps.Request{Family: caps.Model, Name: r.ask.Name()}, r.ask.Name()
		},
		payload: func(r modelReq[R]) [][]byte { return [][]byte{bytesOf(r.text)} },
		budget:  func(h *Host, _ modelReq[R]) (caps.Code, bool) { return caps.Unavailable, h.cfg.Model == nil },
		done:    true,
		do: func(ctx context.Context, h *Host, _ gate.Permit, r modelReq[R]) ([]byte, error) {
			answer, err := ask(h, ctx, r.ask)
			if err != nil {
				return nil, h.modelError(r.ask.Name(), err)
			}
			return json.Marshal(answer)
		},
	}
}

// prepare gives r the name that is judged: the operator's default where the
// guest named none. What a limit does not leave is refused here.
func (h *Host) prepare(r model.Request) (caps.Code, string) {
	if h.cfg.Model == nil {
		if r.Name() == "" {
			r.Use(model.Echo)
		}
		return 0, ""
	}
	if code, why := h.boundAnswer(r); why != "" {
		return code, why
	}
	h.boundModel()
	refusal := h.cfg.Model.Prepare(r)
	if refusal == nil {
		return 0, ""
	}
	return refusalCode(refusal.Reason), refusal.Hint
}

// boundModel makes the limits of the run those of its models, where it has any.
func (h *Host) boundModel() {
	if h.cfg.Model != nil {
		h.cfg.Model.Bound(model.Limits{
			Tokens:          h.limit(caps.ModelTokens),
			TokensPerMinute: h.limit(caps.ModelTokensPerMinute),
			MicroUSD:        h.limit(caps.ModelUSD),
		})
	}
}

// limit is a limit of the run, and the largest number where there is none.
func (h *Host) limit(l caps.Limit) int64 {
	if v, set := h.cfg.Limits.Get(l); set {
		return v
	}
	return math.MaxInt64
}

func refusalCode(r model.Reason) caps.Code {
	switch r {
	case model.OverRate:
		return caps.RateLimited
	case model.OverBudget:
		return caps.BudgetExhausted
	}
	return caps.Unavailable
}

func (h *Host) complete(ctx context.Context, r *model.CompleteRequest) (any, error) {
	got, err := h.cfg.Model.Complete(ctx, r)
	if err != nil {
		return nil, err
	}
	return without(h, got), nil
}

// without is an answer without the values of secrets of h.
func without(h *Host, got *model.Answer) *model.Answer {
	a := *got // what is remembered for the next call is not changed
	a.Text = h.scrubText(a.Text)
	a.ToolCalls = make([]model.ToolCall, len(got.ToolCalls))
	for i, c := range got.ToolCalls {
		c.ID, c.Function.Name, c.Function.Arguments = h.scrubText(c.ID), h.scrubText(c.Function.Name),
			h.scrubText(c.Function.Arguments)
		a.ToolCalls[i] = c
	}
	return &a
}

func (h *Host) embed(ctx context.Context, r *model.EmbedRequest) (any, error) {
	return h.cfg.Model.Embed(ctx, r)
}

// A modelFailure is a call that did not go well: the guest may read why in the
// provider's words, records show its kind alone.
type modelFailure struct {
	error
	fail *Fail
}

func (f *modelFailure) Unwrap() []error { return []error{f.fail, f.error} }

func (h *Host) modelError(name string, err error) error {
	var refusal *model.Refusal
	if errors.As(err, &refusal) {
		errno := Notsup
		if refusal.Reason != model.NoProvider {
			errno = Dquot
		}
		h.cfg.warn(fmt.Errorf("%s: %w", name, errors.Join(refusal, refusal.Cause)))
		return &modelFailure{err, &Fail{Errno: errno, Hint: refusal.Hint, Reason: refusalCode(refusal.Reason)}}
	}
	var f *model.Failure
	if !errors.As(err, &f) {
		return err
	}
	errno, hint := failureWords(f)
	if f.Kind == model.Refused {
		h.cfg.warn(fmt.Errorf("%s: the provider does not take the operator's key (status %d)", name, f.Status))
	}
	if f.Detail != "" {
		hint += ": " + h.scrubText(f.Detail)
	}
	fail := &Fail{Errno: errno, Hint: hint}
	switch f.Kind {
	case model.RateLimited:
		fail.Reason = caps.RateLimited
	case model.Refused, model.Unavailable:
		fail.Reason = caps.Unavailable
	}
	return &modelFailure{err, fail}
}

// failureWords are the number and the sentence for each kind of failure.
func failureWords(f *model.Failure) (Errno, string) {
	switch f.Kind {
	case model.Invalid:
		return Inval, "the provider does not take this request"
	case model.Refused:
		return Notsup, "the provider does not take the operator's key"
	case model.NotFound:
		return Noent, "the provider has no such model"
	case model.RateLimited:
		return Dquot, "the provider's own limit is reached; ask again later"
	case model.TooLarge:
		return TooBig, "the request or its answer is too large"
	case model.TimedOut, model.Cancelled:
		return TimedOut, "no answer in time; timeout_ms gives it longer"
	case model.Broken:
		return IO, "the answer broke off"
	}
	return IO, "the provider is not available"
}
