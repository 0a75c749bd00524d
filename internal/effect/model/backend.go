package model

import (
	"context"
	"time"
)

// A Target is whom a call goes to: a provider, the model's name there, and the
// key. It lives as long as the call.
type Target struct {
	Kind    string // "openai" or "anthropic"
	BaseURL string
	Model   string
	Key     Key
	Timeout time.Duration
}

// A Completion is what a provider answered.
type Completion struct {
	Text         string     `json:"text"`
	ToolCalls    []ToolCall `json:"tool_calls,omitempty"`
	FinishReason string     `json:"finish_reason"` // stop, length, tool_calls or content_filter
	Metered      Metered    `json:"metered"`
}

// Vectors are what a provider answered to an [EmbedRequest], one for each input.
type Vectors struct {
	Vectors [][]float32
	Metered Metered
}

// A Backend asks providers. A call ends with its context; an error is a
// [*Failure]. The methods may be called at the same time.
type Backend interface {
	Complete(ctx context.Context, t Target, r *CompleteRequest) (Completion, error)
	Embed(ctx context.Context, t Target, r *EmbedRequest) (Vectors, error)
}
