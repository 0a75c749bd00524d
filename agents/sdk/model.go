package sdk

import (
	"encoding/json"
	"unsafe"
)

// A Message is one part of a conversation with a model.
type Message struct {
	Role       string     `json:"role"` // "system", "developer", "user", "assistant" or "tool"
	Content    string     `json:"content"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`   // the assistant's, as they were answered
	ToolCallID string     `json:"tool_call_id,omitempty"` // which call a tool's message answers
}

// A ToolCall is what a model wants done: put it into the conversation with what
// came of it in a message of role "tool".
type ToolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"` // "function"
	Function FunctionCall `json:"function"`
}

// A FunctionCall names a tool; Arguments is a JSON document.
type FunctionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// A CompletionRequest asks a model for text. The zero value of a field leaves
// it to the operator's configuration.
type CompletionRequest struct {
	Model       string    `json:"model,omitempty"` // such as "local:echo"
	Messages    []Message `json:"messages"`
	MaxTokens   int       `json:"max_tokens,omitempty"`
	Temperature *float64  `json:"temperature,omitempty"`
	TopP        *float64  `json:"top_p,omitempty"`
	Stop        []string  `json:"stop,omitempty"`
	Seed        *int64    `json:"seed,omitempty"`
	// [{"type":"function","function":{"name","description","parameters"}}]
	Tools json.RawMessage `json:"tools,omitempty"`
	// "auto", "none", "required", or {"type":"function","function":{"name"}}
	ToolChoice json.RawMessage `json:"tool_choice,omitempty"`
	// {"type":"json_schema","json_schema":{"name","schema"}}
	ResponseFormat json.RawMessage `json:"response_format,omitempty"`
	TimeoutMS      int64           `json:"timeout_ms,omitempty"`
}

// A Completion is what a model answered.
type Completion struct {
	Text         string     `json:"text"`
	ToolCalls    []ToolCall `json:"tool_calls"`
	Usage        Usage      `json:"usage"`
	Model        string     `json:"model"`         // the one that answered, with its provider
	FinishReason string     `json:"finish_reason"` // "stop", "length", "tool_calls" or "content_filter"
	Cached       bool       `json:"cached"`        // the answer to an earlier request, for nothing
}

// Usage is what a call to a model cost.
type Usage struct {
	TokensIn  int64   `json:"tokens_in"`
	TokensOut int64   `json:"tokens_out"`
	USD       float64 `json:"usd"`
}

// Embeddings are one vector for each input text, in its order.
type Embeddings struct {
	Vectors [][]float32 `json:"vectors"`
	Usage   Usage       `json:"usage"`
	Model   string      `json:"model"`
	Cached  bool        `json:"cached"`
}

// ModelComplete asks a model. The capability is model:use:<model>.
func ModelComplete(req CompletionRequest) (Completion, error) {
	var c Completion
	err := callJSON("model_complete", modelComplete, req, &c)
	return c, err
}

// ModelEmbed turns texts into vectors. The capability is model:use:<model>.
func ModelEmbed(model string, input []string) (Embeddings, error) {
	var e Embeddings
	err := callJSON("model_embed", modelEmbed, struct {
		Model string   `json:"model,omitempty"`
		Input []string `json:"input"`
	}{model, input}, &e)
	return e, err
}

// callJSON makes a call whose request and response are one JSON value each.
func callJSON(op string, imported func(string, unsafe.Pointer, uint32) int64, req, resp any) error {
	text, err := json.Marshal(req)
	if err != nil {
		return err
	}
	response, err := call(op, nil, func(out unsafe.Pointer, room uint32) int64 {
		return imported(view(text), out, room)
	})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(response, resp); err != nil {
		return malformed(op, err.Error())
	}
	return nil
}
