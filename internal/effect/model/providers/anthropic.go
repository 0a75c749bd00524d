package providers

import (
	"context"
	"encoding/json"
	"errors"

	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/effect/model"
)

// The body of POST /v1/messages.
type anthropicRequest struct {
	Model         string           `json:"model"`
	MaxTokens     int64            `json:"max_tokens"`
	Stream        bool             `json:"stream"`
	System        []anthropicBlock `json:"system,omitempty"`
	Messages      []anthropicTurn  `json:"messages"`
	Temperature   *float64         `json:"temperature,omitempty"`
	TopP          *float64         `json:"top_p,omitempty"`
	StopSequences []string         `json:"stop_sequences,omitempty"`
	Tools         []anthropicTool  `json:"tools,omitempty"`
	ToolChoice    *anthropicChoice `json:"tool_choice,omitempty"`
	OutputConfig  *anthropicOutput `json:"output_config,omitempty"`
}

type anthropicTurn struct {
	Role    string           `json:"role"`
	Content []anthropicBlock `json:"content"`
}

// A block is text, a call of a tool (tool_use) or its result (tool_result).
type anthropicBlock struct {
	Type      string           `json:"type"`
	Text      string           `json:"text,omitempty"`
	ID        string           `json:"id,omitempty"`
	Name      string           `json:"name,omitempty"`
	Input     json.RawMessage  `json:"input,omitempty"`
	ToolUseID string           `json:"tool_use_id,omitempty"`
	Content   []anthropicBlock `json:"content,omitempty"`
}

type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
	Strict      bool            `json:"strict,omitempty"`
}

type anthropicChoice struct {
	Type string `json:"type"` // auto, any, none or tool
	Name string `json:"name,omitempty"`
}

type anthropicOutput struct {
	Format anthropicFormat `json:"format"`
}

type anthropicFormat struct {
	Type   string          `json:"type"` // json_schema
	Schema json.RawMessage `json:"schema"`
}

// One event of the answer: the fields of each type that matter here.
type anthropicEvent struct {
	Type    string   `json:"type"`
	Message struct { // message_start
		Usage anthropicUsage `json:"usage"`
	} `json:"message"`
	ContentBlock struct { // content_block_start
		Type string `json:"type"`
		Text string `json:"text"`
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"content_block"`
	Delta struct { // content_block_delta, message_delta
		Text        string `json:"text"`
		Thinking    string `json:"thinking"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage anthropicUsage `json:"usage"` // message_delta
}

type anthropicUsage struct {
	Input      *int64 `json:"input_tokens"`
	CacheMade  int64  `json:"cache_creation_input_tokens"`
	CacheReads int64  `json:"cache_read_input_tokens"`
	Output     *int64 `json:"output_tokens"`
}

// in is all that the model read; -1 when nobody says.
func (u *anthropicUsage) in() int64 {
	if u.Input == nil {
		return count(nil)
	}
	sum := *u.Input + u.CacheMade + u.CacheReads
	return count(&sum)
}

var errWithin = errors.New("an error in the middle of an answer")

func (p *Providers) anthropicStream(t model.Target, r *model.CompleteRequest) (func(context.Context, *progress) error,
	error,
) {
	body, err := anthropicBody(t, r)
	if err != nil {
		return nil, err
	}
	base := t.BaseURL
	if base == "" {
		base = "https://api.anthropic.com"
	}
	q, err := newQuestion(base, "/v1/messages", body)
	if err != nil {
		return nil, err
	}
	q.header.Set("Anthropic-Version", "2023-06-01")
	if key := t.Key.Reveal(); key != "" {
		q.header.Set("X-Api-Key", key)
	}
	return func(ctx context.Context, got *progress) error { return p.stream(ctx, q, got.anthropicEvent) }, nil
}

// anthropicBody refuses what the protocol has no word for: a control that was
// asked for is not dropped.
func anthropicBody(t model.Target, r *model.CompleteRequest) (*anthropicRequest, error) {
	b := &anthropicRequest{
		Model: t.Model, MaxTokens: r.MaxTokens, Stream: true, StopSequences: r.Stop, Temperature: r.Temperature, TopP: r.TopP,
		ToolChoice: anthropicChoiceOf(r.ToolChoice),
	}
	if b.MaxTokens == 0 {
		b.MaxTokens = model.DefaultMaxTokens
	}
	switch {
	case r.Seed != nil:
		return nil, unsupported("seed is not known to a provider of kind anthropic")
	case r.Temperature != nil && *r.Temperature > 1:
		return nil, unsupported("temperature is at most 1 for a provider of kind anthropic")
	}
	if f := r.ResponseFormat; f != nil && f.Type == "json_schema" {
		b.OutputConfig = &anthropicOutput{anthropicFormat{f.Type, f.Schema}}
	} else if f != nil && f.Type != "text" {
		return nil, unsupported("response_format %s is not known to a provider of kind anthropic; json_schema is", f.Type)
	}
	for i, m := range r.Messages {
		for j, c := range m.ToolCalls {
			if text := c.Function.Arguments; text != "" && !isObject(text) {
				return nil, unsupported("messages[%d].tool_calls[%d].function.arguments must be a JSON object for a provider of "+
					"kind anthropic", i, j)
			}
		}
	}
	b.System, b.Messages = anthropicMessages(r.Messages)
	if len(b.Messages) == 0 {
		return nil, unsupported("messages must hold one that is not the system's")
	}
	for _, tool := range r.Tools {
		schema := tool.Parameters
		if schema == nil {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		b.Tools = append(b.Tools, anthropicTool{tool.Name, tool.Description, schema, tool.Strict})
	}
	return b, nil
}

func isObject(text string) bool {
	_, err := strictjson.Members([]byte(text))
	return err == nil
}

func anthropicChoiceOf(c *model.ToolChoice) *anthropicChoice {
	switch {
	case c == nil:
		return nil
	case c.Name != "":
		return &anthropicChoice{Type: "tool", Name: c.Name}
	case c.Mode == "required":
		return &anthropicChoice{Type: "any"}
	case c.Mode == "none":
		return &anthropicChoice{Type: "none"}
	}
	return &anthropicChoice{Type: "auto"}
}

// anthropicMessages puts what the system says apart, and makes turns of the
// rest: messages of one side in a row are one.
func anthropicMessages(list []model.Message) (system []anthropicBlock, turns []anthropicTurn) {
	for _, m := range list {
		if m.Role == "system" || m.Role == "developer" {
			if m.Content != "" {
				system = append(system, anthropicText(m.Content))
			}
			continue
		}
		role := "user"
		if m.Role == "assistant" {
			role = "assistant"
		}
		blocks := anthropicBlocks(m)
		if n := len(turns); n > 0 && turns[n-1].Role == role {
			turns[n-1].Content = append(turns[n-1].Content, blocks...)
		} else {
			turns = append(turns, anthropicTurn{role, blocks})
		}
	}
	return system, turns
}

func anthropicText(text string) anthropicBlock { return anthropicBlock{Type: "text", Text: text} }

func anthropicBlocks(m model.Message) []anthropicBlock {
	if m.Role == "tool" {
		result := anthropicBlock{Type: "tool_result", ToolUseID: m.ToolCallID}
		if m.Content != "" { // no text may be empty
			result.Content = []anthropicBlock{anthropicText(m.Content)}
		}
		return []anthropicBlock{result}
	}
	var blocks []anthropicBlock
	if m.Content != "" || len(m.ToolCalls) == 0 {
		blocks = append(blocks, anthropicText(m.Content))
	}
	for _, c := range m.ToolCalls {
		input := json.RawMessage(c.Function.Arguments)
		if len(input) == 0 {
			input = json.RawMessage("{}")
		}
		blocks = append(blocks, anthropicBlock{Type: "tool_use", ID: c.ID, Name: c.Function.Name, Input: input})
	}
	return blocks
}

// anthropicEvent takes one event of a stream. Blocks come one after the other:
// what is added is the last one's.
func (g *progress) anthropicEvent(text []byte) error {
	var event anthropicEvent
	if err := strictjson.Unmarshal(text, &event, ofProvider); err != nil {
		return err
	}
	switch event.Type {
	case "error":
		return errWithin
	case "message_start":
		g.began = true
		g.metered.In = event.Message.Usage.in()
	case "content_block_start":
		b := event.ContentBlock
		if b.Type == "tool_use" {
			if len(g.calls) == model.MaxTools {
				return errChunk
			}
			g.calls = append(g.calls, &calling{id: b.ID, name: b.Name})
			return g.wrote(b.Name)
		}
		g.say(b.Text)
		return g.wrote(b.Text)
	case "content_block_delta":
		d := event.Delta
		g.say(d.Text)
		if n := len(g.calls); n > 0 {
			g.call(n-1, d.PartialJSON)
		}
		return g.wrote(d.Text, d.PartialJSON, d.Thinking)
	case "message_delta":
		g.metered.In = max(g.metered.In, event.Usage.in()) // all of the message, once more
		if event.Usage.Output != nil {
			g.metered.Out = count(event.Usage.Output)
		}
		g.reason = anthropicReason(event.Delta.StopReason)
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
