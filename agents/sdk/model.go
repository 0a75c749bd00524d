package sdk

import (
	"encoding/json"
	"unsafe"
)

// A Message is one part of a conversation with a model.
type Message struct {
	Role    string `json:"role"` // "system", "user", "assistant" or "tool"
	Content string `json:"content"`
}

// A CompletionRequest asks a model for text. The zero value of a field leaves
// it to the operator's configuration.
type CompletionRequest struct {
	Model       string          `json:"model,omitempty"` // such as "local:echo"
	Messages    []Message       `json:"messages"`
	MaxTokens   int             `json:"max_tokens,omitempty"`
	Temperature *float64        `json:"temperature,omitempty"`
	Tools       json.RawMessage `json:"tools,omitempty"`
}

// A Completion is what a model answered.
type Completion struct {
	Text         string          `json:"text"`
	ToolCalls    json.RawMessage `json:"tool_calls"`
	Usage        Usage           `json:"usage"`
	Model        string          `json:"model"`
	FinishReason string          `json:"finish_reason"`
	Cached       bool            `json:"cached"`
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
