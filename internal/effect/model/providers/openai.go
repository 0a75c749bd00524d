package providers

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"

	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/effect/model"
)

// openaiHost is where max_tokens is called max_completion_tokens; others that
// speak the protocol know the old name.
const openaiHost = "api.openai.com"

// The body of POST /chat/completions. Messages and functions have the names that
// guests give them.
type openaiRequest struct {
	Model               string          `json:"model"`
	Messages            []openaiMessage `json:"messages"`
	MaxTokens           int64           `json:"max_tokens,omitempty"`
	MaxCompletionTokens int64           `json:"max_completion_tokens,omitempty"`
	Temperature         *float64        `json:"temperature,omitempty"`
	TopP                *float64        `json:"top_p,omitempty"`
	Seed                *int64          `json:"seed,omitempty"`
	Stop                []string        `json:"stop,omitempty"`
	Tools               []openaiTool    `json:"tools,omitempty"`
	ToolChoice          any             `json:"tool_choice,omitempty"` // a word, or an openaiTool
	ResponseFormat      *openaiFormat   `json:"response_format,omitempty"`
	Stream              bool            `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// An assistant's message that is calls alone has no content.
type openaiMessage struct {
	model.Message
	Content *string `json:"content,omitempty"`
}

type openaiTool struct {
	Type     string     `json:"type"` // function
	Function model.Tool `json:"function"`
}

type openaiFormat struct {
	Type       string        `json:"type"`
	JSONSchema *openaiSchema `json:"json_schema,omitempty"`
}

type openaiSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"`
	Strict      bool            `json:"strict,omitempty"`
}

// One piece of the answer.
type openaiChunk struct {
	Choices []struct {
		Index int `json:"index"`
		Delta struct {
			Content   string       `json:"content"`
			Refusal   string       `json:"refusal"`
			ToolCalls []openaiCall `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *openaiUsage    `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type openaiCall struct {
	Index    int            `json:"index"`
	ID       string         `json:"id"`
	Function model.Function `json:"function"`
}

type openaiUsage struct {
	Prompt     *int64 `json:"prompt_tokens"`
	Completion *int64 `json:"completion_tokens"`
}

var errChunk = errors.New("a piece of an answer that makes no sense")

func openaiQuestion(t model.Target, place string, body any) (*question, error) {
	base := t.BaseURL
	if base == "" {
		base = "https://" + openaiHost + "/v1"
	}
	q, err := newQuestion(base, place, body)
	if key := t.Key.Reveal(); err == nil && key != "" {
		q.header.Set("Authorization", "Bearer "+key)
	}
	return q, err
}

func (p *Providers) openaiStream(t model.Target, r *model.CompleteRequest) (func(context.Context, *progress) error,
	error,
) {
	q, err := openaiQuestion(t, "/chat/completions", openaiBody(t, r))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, got *progress) error {
		err := p.stream(ctx, q, got.openaiChunk)
		got.ended = got.reason != ""
		return err
	}, nil
}

func openaiBody(t model.Target, r *model.CompleteRequest) *openaiRequest {
	b := &openaiRequest{Model: t.Model, Temperature: r.Temperature, TopP: r.TopP, Seed: r.Seed, Stop: r.Stop, Stream: true}
	b.StreamOptions.IncludeUsage = true
	if u, err := url.Parse(t.BaseURL); t.BaseURL == "" || err == nil && u.Hostname() == openaiHost {
		b.MaxCompletionTokens = r.MaxTokens
	} else {
		b.MaxTokens = r.MaxTokens
	}
	for _, m := range r.Messages {
		o := openaiMessage{Message: m, Content: &m.Content}
		if m.Content == "" && len(m.ToolCalls) > 0 {
			o.Content = nil
		}
		b.Messages = append(b.Messages, o)
	}
	for _, tool := range r.Tools {
		b.Tools = append(b.Tools, openaiTool{"function", tool})
	}
	if c := r.ToolChoice; c != nil && c.Name != "" {
		b.ToolChoice = openaiTool{"function", model.Tool{Name: c.Name}}
	} else if c != nil {
		b.ToolChoice = c.Mode
	}
	if f := r.ResponseFormat; f != nil {
		if b.ResponseFormat = (&openaiFormat{Type: f.Type}); f.Type == "json_schema" {
			b.ResponseFormat.JSONSchema = &openaiSchema{f.Name, f.Description, f.Schema, f.Strict}
		}
	}
	return b
}

func (g *progress) openaiChunk(text []byte) error {
	var chunk openaiChunk
	if err := strictjson.Unmarshal(text, &chunk, ofProvider); err != nil {
		return err
	}
	if len(chunk.Error) > 0 && string(chunk.Error) != "null" {
		return errWithin
	}
	g.began = true
	if u := chunk.Usage; u != nil {
		g.metered = model.Metered{In: count(u.Prompt), Out: count(u.Completion)}
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			return errChunk // one was asked for
		}
		d := choice.Delta
		if err := g.wrote(d.Content, d.Refusal); err != nil {
			return err
		}
		g.say(d.Content)
		g.say(d.Refusal)
		for _, call := range d.ToolCalls {
			if err := g.openaiToolCall(call); err != nil {
				return err
			}
		}
		switch {
		case d.Refusal != "":
			g.reason = "content_filter"
		case choice.FinishReason != "" && g.reason == "":
			g.reason = g.openaiReason(choice.FinishReason)
		}
	}
	return nil
}

// openaiReason is a reason in the words that every model's answer has. Some
// servers stop where they call a tool.
func (g *progress) openaiReason(s string) string {
	switch {
	case s == "length" || s == "content_filter":
		return s
	case len(g.calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

// openaiToolCall adds a piece of a tool call to those that began. Some servers
// give every whole call the index 0: another id is another call.
func (g *progress) openaiToolCall(d openaiCall) error {
	at := d.Index
	if at >= 0 && at < len(g.calls) && d.ID != "" && d.ID != g.calls[at].id {
		at = len(g.calls)
	}
	switch {
	case at < 0 || at > len(g.calls) || at >= model.MaxTools:
		return errChunk
	case at == len(g.calls):
		g.calls = append(g.calls, &calling{id: d.ID})
	}
	g.calls[at].name += d.Function.Name
	g.call(at, d.Function.Arguments)
	return g.wrote(d.Function.Name, d.Function.Arguments)
}
