package model

import (
	"encoding/json"
	"log/slog"
	"time"
)

// Bounds of what one request may hold.
const (
	MaxMessages = 4096
	MaxTools    = 128
	MaxStops    = 16
	MaxInputs   = 2048
	MaxTimeout  = 10 * time.Minute
	maxNumber   = 1 << 31 // of max_tokens and dimensions
)

// DefaultTimeout is how long a provider may take when the request does not say.
const DefaultTimeout = 2 * time.Minute

// DefaultMaxTokens is what a request that names no max_tokens may get, or what
// is left of its limits when that is less. Some providers insist on a number.
const DefaultMaxTokens = 4096

// A Message is one part of a conversation. Content is the text; the assistant's
// may be empty beside tool calls.
type Message struct {
	Role       string     `json:"role"` // system, developer, user, assistant or tool
	Content    string     `json:"content"`
	Name       string     `json:"name,omitempty"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`   // the assistant's
	ToolCallID string     `json:"tool_call_id,omitempty"` // which call a tool's message answers
}

// A ToolCall is what a model wants done.
type ToolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"` // "function"
	Function Function `json:"function"`
}

// A Function is the name of a tool and its arguments: JSON in a text, as far as
// the model that wrote it is to be trusted.
type Function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// A Tool is what a model may ask for.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // a JSON Schema
	Strict      bool            `json:"strict,omitempty"`
}

// A ToolChoice says whether a model must use a tool: Mode is auto, none or
// required; Name, if any, is the one that it must use.
type ToolChoice struct {
	Mode string `json:"mode"`
	Name string `json:"name,omitempty"`
}

// A ResponseFormat is the form that the text must have: Type is text,
// json_object or json_schema, and a schema stands beside the last.
type ResponseFormat struct {
	Type        string          `json:"type"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Strict      bool            `json:"strict,omitempty"`
}

// A CompleteRequest asks a model to go on with a conversation. Make one of a
// guest's JSON by [ParseComplete]. What is nil or empty was not said.
type CompleteRequest struct {
	Model          string          `json:"model"`
	Messages       []Message       `json:"messages"`
	MaxTokens      int64           `json:"max_tokens,omitempty"`
	Temperature    *float64        `json:"temperature,omitempty"`
	TopP           *float64        `json:"top_p,omitempty"`
	Stop           []string        `json:"stop,omitempty"`
	Seed           *int64          `json:"seed,omitempty"`
	Tools          []Tool          `json:"tools,omitempty"`
	ToolChoice     *ToolChoice     `json:"tool_choice,omitempty"`
	ResponseFormat *ResponseFormat `json:"response_format,omitempty"`
	Timeout        time.Duration   `json:"-"`
	// Emit receives the answer as it comes, if who answers has it so; nil: nobody
	// waits for parts. The whole is what [Backend.Complete] returns.
	Emit func(Piece) `json:"-"`
}

// A Piece is the next part of an answer: of its text, or of one of its tool calls.
type Piece struct {
	Text string `json:"text,omitempty"`
	// Call says that the piece is of the tool call of that index, from 0. The first
	// of each has id and name.
	IsCall    bool   `json:"is_call,omitempty"`
	Call      int    `json:"call,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
}

// An EmbedRequest asks for one vector for each input.
type EmbedRequest struct {
	Model      string        `json:"model"`
	Input      []string      `json:"input"`
	Dimensions int64         `json:"dimensions,omitempty"`
	Timeout    time.Duration `json:"-"`
}

// Usage is what a call cost, in tokens and US dollars.
type Usage struct {
	TokensIn  int64   `json:"tokens_in"`
	TokensOut int64   `json:"tokens_out"`
	USD       float64 `json:"usd"`
}

// An Answer is what a guest gets of a completion.
type Answer struct {
	Text         string     `json:"text"`
	ToolCalls    []ToolCall `json:"tool_calls"`
	Usage        Usage      `json:"usage"`
	Model        string     `json:"model"` // the name that was judged, provider and model
	FinishReason string     `json:"finish_reason"`
	Cached       bool       `json:"cached"`
}

// Embeddings are what a guest gets of an embedding: vectors in the order of the
// inputs.
type Embeddings struct {
	Vectors [][]float32 `json:"vectors"`
	Usage   Usage       `json:"usage"`
	Model   string      `json:"model"`
	Cached  bool        `json:"cached"`
}

// A Key opens a provider's door. It prints as nothing.
type Key struct{ value string }

// NewKey makes the key of its value; "" is no key.
func NewKey(value string) Key { return Key{value} }

// Reveal is the value, for the one who sends it.
func (k Key) Reveal() string { return k.value }

func (k Key) String() string { return "[key]" }

// GoString is String: a key is not printed by %#v either.
func (k Key) GoString() string { return "[key]" }

// LogValue is what a log shows of a key.
func (k Key) LogValue() slog.Value { return slog.StringValue("[key]") }

// MarshalJSON refuses: who has to send a key reveals it.
func (k Key) MarshalJSON() ([]byte, error) { return []byte(`"[key]"`), nil }
