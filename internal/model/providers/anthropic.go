package providers

import (
	"context"
	"encoding/json"

	anthropic "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"runloop.dev/rlp/internal/model"
)

func (p *Providers) anthropicOptions(t model.Target) []option.RequestOption {
	base := t.BaseURL
	if base == "" {
		base = "https://api.anthropic.com"
	}
	opts := []option.RequestOption{
		option.WithBaseURL(base), option.WithHTTPClient(p.client), option.WithMaxRetries(0),
	}
	if key := t.Key.Reveal(); key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	return opts
}

func (p *Providers) anthropicStream(t model.Target, r *model.CompleteRequest) (func(context.Context, *progress) error, error) {
	params, err := anthropicParams(t, r)
	if err != nil {
		return nil, err
	}
	service := anthropic.NewMessageService(p.anthropicOptions(t)...)
	return func(ctx context.Context, got *progress) error {
		stream := service.NewStreaming(ctx, params)
		defer stream.Close()
		for stream.Next() {
			if err := got.anthropicEvent(stream.Current()); err != nil {
				return err
			}
		}
		return stream.Err()
	}, nil
}

// anthropicParams refuses what the protocol has no word for: a control that was
// asked for is not dropped.
func anthropicParams(t model.Target, r *model.CompleteRequest) (anthropic.MessageNewParams, error) {
	p := anthropic.MessageNewParams{
		Model: t.Model, MaxTokens: r.MaxTokens, StopSequences: r.Stop,
		Temperature: anthropicOpt(r.Temperature), TopP: anthropicOpt(r.TopP),
	}
	if p.MaxTokens == 0 {
		p.MaxTokens = model.DefaultMaxTokens
	}
	switch {
	case r.Seed != nil:
		return p, unsupported("seed is not known to a provider of kind anthropic")
	case r.Temperature != nil && *r.Temperature > 1:
		return p, unsupported("temperature is at most 1 for a provider of kind anthropic")
	}
	if f := r.ResponseFormat; f != nil && f.Type == "json_schema" {
		p.OutputConfig.Format = param.Override[anthropic.JSONOutputFormatParam](raw(map[string]any{"type": "json_schema", "schema": f.Schema}))
	} else if f != nil && f.Type != "text" {
		return p, unsupported("response_format %s is not known to a provider of kind anthropic; json_schema is", f.Type)
	}
	for i, m := range r.Messages {
		for j, c := range m.ToolCalls {
			if text := c.Function.Arguments; text != "" && !isObject(text) {
				return p, unsupported("messages[%d].tool_calls[%d].function.arguments must be a JSON object for a provider of kind anthropic", i, j)
			}
		}
	}
	p.System, p.Messages = anthropicMessages(r.Messages)
	if len(p.Messages) == 0 {
		return p, unsupported("messages must hold one that is not the system's")
	}
	for _, tool := range r.Tools {
		p.Tools = append(p.Tools, anthropicTool(tool))
	}
	p.ToolChoice = anthropicChoice(r.ToolChoice)
	return p, nil
}

func isObject(text string) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &o) == nil && o != nil
}

func anthropicOpt(v *float64) param.Opt[float64] {
	if v == nil {
		return param.Opt[float64]{}
	}
	return param.NewOpt(*v)
}

func anthropicTool(t model.Tool) anthropic.ToolUnionParam {
	schema := t.Parameters
	if schema == nil {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	tool := anthropic.ToolParam{Name: t.Name, InputSchema: param.Override[anthropic.ToolInputSchemaParam](schema)}
	if t.Description != "" {
		tool.Description = param.NewOpt(t.Description)
	}
	if t.Strict {
		tool.Strict = param.NewOpt(true)
	}
	return anthropic.ToolUnionParam{OfTool: &tool}
}

func anthropicChoice(c *model.ToolChoice) anthropic.ToolChoiceUnionParam {
	var u anthropic.ToolChoiceUnionParam
	switch {
	case c == nil:
	case c.Name != "":
		u.OfTool = &anthropic.ToolChoiceToolParam{Name: c.Name}
	case c.Mode == "required":
		u.OfAny = &anthropic.ToolChoiceAnyParam{}
	case c.Mode == "none":
		none := anthropic.NewToolChoiceNoneParam()
		u.OfNone = &none
	default:
		u.OfAuto = &anthropic.ToolChoiceAutoParam{}
	}
	return u
}

// anthropicMessages puts what the system says apart, and makes turns of the
// rest: messages of one side in a row are one.
func anthropicMessages(list []model.Message) (system []anthropic.TextBlockParam, turns []anthropic.MessageParam) {
	for _, m := range list {
		if m.Role == "system" || m.Role == "developer" {
			if m.Content != "" {
				system = append(system, anthropic.TextBlockParam{Text: m.Content})
			}
			continue
		}
		role := anthropic.MessageParamRoleUser
		if m.Role == "assistant" {
			role = anthropic.MessageParamRoleAssistant
		}
		blocks := anthropicBlocks(m)
		if n := len(turns); n > 0 && turns[n-1].Role == role {
			turns[n-1].Content = append(turns[n-1].Content, blocks...)
		} else {
			turns = append(turns, anthropic.MessageParam{Role: role, Content: blocks})
		}
	}
	return system, turns
}

func anthropicBlocks(m model.Message) []anthropic.ContentBlockParamUnion {
	if m.Role == "tool" {
		return []anthropic.ContentBlockParamUnion{anthropic.NewToolResultBlock(m.ToolCallID, m.Content, false)}
	}
	var blocks []anthropic.ContentBlockParamUnion
	if m.Content != "" || len(m.ToolCalls) == 0 {
		blocks = append(blocks, anthropic.NewTextBlock(m.Content))
	}
	for _, c := range m.ToolCalls {
		input := json.RawMessage(c.Function.Arguments)
		if len(input) == 0 {
			input = json.RawMessage("{}")
		}
		blocks = append(blocks, anthropic.NewToolUseBlock(c.ID, input, c.Function.Name))
	}
	return blocks
}

// anthropicEvent takes one event of a stream. Blocks come one after the other:
// what is added is the last one's.
func (g *progress) anthropicEvent(event anthropic.MessageStreamEventUnion) error {
	switch event.Type {
	case "message_start":
		g.began = true
		if u := event.Message.Usage; u.JSON.InputTokens.Valid() {
			g.metered.In = tokens(u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens)
		}
	case "content_block_start":
		if b := event.ContentBlock; b.Type == "tool_use" {
			if len(g.calls) == model.MaxTools {
				return errChunk
			}
			g.calls = append(g.calls, &calling{id: b.ID, name: b.Name})
			return g.wrote(b.Name)
		}
		g.text.WriteString(event.ContentBlock.Text)
		return g.wrote(event.ContentBlock.Text)
	case "content_block_delta":
		d := event.Delta
		g.text.WriteString(d.Text)
		if n := len(g.calls); d.PartialJSON != "" && n > 0 {
			g.calls[n-1].arguments.WriteString(d.PartialJSON)
		}
		return g.wrote(d.Text, d.PartialJSON, d.Thinking)
	case "message_delta":
		if u := event.Usage; u.JSON.InputTokens.Valid() { // all of the message, once more
			g.metered.In = max(g.metered.In, u.InputTokens+u.CacheCreationInputTokens+u.CacheReadInputTokens)
		}
		if event.Usage.JSON.OutputTokens.Valid() {
			g.metered.Out = tokens(event.Usage.OutputTokens)
		}
		g.reason = anthropicReason(string(event.Delta.StopReason))
	case "message_stop":
		g.ended = g.reason != ""
	}
	return nil
}

// anthropicReason is a reason in the words that every model's answer has.
func anthropicReason(s string) string {
	switch s {
	case "max_tokens", "model_context_window_exceeded":
		return "length"
	case "tool_use":
		return "tool_calls"
	case "refusal":
		return "content_filter"
	}
	return "stop"
}

func anthropicDetail(e *anthropic.Error) string {
	var body struct {
		Error struct{ Type, Message string }
	}
	if json.Unmarshal([]byte(e.RawJSON()), &body) != nil {
		return ""
	}
	return join(body.Error.Type, body.Error.Message)
}
