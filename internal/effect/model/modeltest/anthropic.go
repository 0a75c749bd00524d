package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// The body of /v1/messages; what is not here is refused.
type messages struct {
	Model     string  `json:"model"`
	MaxTokens *int64  `json:"max_tokens"`
	Stream    bool    `json:"stream"`
	System    []block `json:"system"`
	Messages  []struct {
		Role    string  `json:"role"`
		Content []block `json:"content"`
	} `json:"messages"`
	Temperature   *float64 `json:"temperature"`
	TopP          *float64 `json:"top_p"`
	StopSequences []string `json:"stop_sequences"`
	Tools         []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
		Strict      bool            `json:"strict"`
	} `json:"tools"`
	ToolChoice *struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tool_choice"`
	OutputConfig *struct {
		Format struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   []block         `json:"content"`
	IsError   bool            `json:"is_error"`
}

func anthropic() protocol {
	return protocol{path: "/v1/messages", check: checkAnthropic, answer: answerAnthropic, fail: failAnthropic}
}

func checkAnthropic(r *http.Request, body []byte) (*call, error) {
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/v1/messages":
		return nil, problem("%s %s", r.Method, r.URL.Path)
	case len(r.Header.Values("X-Api-Key")) != 1 || r.Header.Get("X-Api-Key") != Key:
		return nil, problem("x-api-key is %q", r.Header.Values("X-Api-Key"))
	case r.Header.Get("Anthropic-Version") != "2023-06-01":
		return nil, problem("anthropic-version is %q", r.Header.Get("Anthropic-Version"))
	case r.Header.Get("Content-Type") != "application/json":
		return nil, problem("content-type is %q", r.Header.Get("Content-Type"))
	case r.Header.Get("Authorization") != "":
		return nil, problem("a key in two places")
	}
	var m messages
	if err := strict(body, &m); err != nil {
		return nil, problem("body: %w", err)
	}
	return m.judge()
}

func (m *messages) judge() (*call, error) {
	switch {
	case m.Model == "" || !m.Stream:
		return nil, problem("model and stream are needed")
	case m.MaxTokens == nil || *m.MaxTokens < 1:
		return nil, problem("max_tokens is needed")
	case len(m.Messages) == 0 || m.Messages[0].Role != "user":
		return nil, problem("the first message is the user's")
	case m.Temperature != nil && *m.Temperature > 1:
		return nil, problem("temperature is at most 1")
	}
	got := &call{model: m.Model, max: *m.MaxTokens, usage: true}
	var open []string
	for i, turn := range m.Messages {
		if want := []string{"user", "assistant"}[i%2]; turn.Role != want {
			return nil, problem("messages[%d] is the %s's, not the %s's", i, turn.Role, want)
		}
		answered, err := turnOf(turn.Content, got)
		if err != nil {
			return nil, problem("messages[%d]: %w", i, err)
		}
		if turn.Role == "user" && !slices.Equal(answered, open) {
			return nil, problem("messages[%d] answers %v, and %v were called", i, answered, open)
		}
		open = nil
		for _, b := range turn.Content {
			if b.Type == "tool_use" {
				open = append(open, b.ID)
			}
		}
	}
	for i, t := range m.Tools {
		var schema struct{ Type string }
		if t.Name == "" || json.Unmarshal(t.InputSchema, &schema) != nil || schema.Type != "object" {
			return nil, problem("tools[%d]: %s %s", i, t.Name, t.InputSchema)
		}
		got.tools = append(got.tools, t.Name)
	}
	if c := m.ToolChoice; c != nil && !slices.Contains([]string{"auto", "any", "none", "tool"}, c.Type) {
		return nil, problem("tool_choice: %+v", c)
	}
	return got, nil
}

// turnOf checks the blocks of a turn, and names the calls that it answers.
func turnOf(blocks []block, got *call) (answered []string, err error) {
	if len(blocks) == 0 {
		return nil, problem("no content")
	}
	for _, b := range blocks {
		switch {
		case b.Type == "text" && b.Text != "":
			got.last = b.Text
		case b.Type == "tool_use" && b.ID != "" && b.Name != "" && json.Valid(b.Input):
		case b.Type == "tool_result" && b.ToolUseID != "":
			answered = append(answered, b.ToolUseID)
			for _, c := range b.Content {
				got.last = c.Text
			}
		default:
			return nil, problem("block %+v", b)
		}
	}
	return answered, nil
}

func answerAnthropic(s *Server, w http.ResponseWriter, r *http.Request, c *call) {
	out := newStream(w, c.model)
	usage := object{"input_tokens": 9, "cache_read_input_tokens": 2, "output_tokens": 1}
	if c.model == "nousage" {
		usage = object{}
	}
	out.send("message_start", object{"type": "message_start", "message": object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "m-2026", "content": []object{},
		"stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}})
	out.send("ping", object{"type": "ping"})
	pieces, cut := words(c.last, c.max)
	reason := "end_turn"
	if cut {
		reason = "max_tokens"
	}
	begin, deltas := object{"type": "text", "text": ""}, []object{}
	for _, p := range pieces {
		deltas = append(deltas, object{"type": "text_delta", "text": p})
	}
	if c.model == "tools" && len(c.tools) > 0 {
		reason = "tool_use"
		begin = object{"type": "tool_use", "id": "toolu_a", "name": c.tools[0], "input": object{}}
		deltas = []object{{"type": "input_json_delta", "partial_json": `{"at"`}, {
			"type":         "input_json_delta",
			"partial_json": `:1}`,
		}}
	}
	out.send("content_block_start", object{"type": "content_block_start", "index": 0, "content_block": begin})
	for i, d := range deltas {
		out.send("content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": d})
		switch {
		case c.model == "broken" && i == 1:
			panic(http.ErrAbortHandler)
		case c.model == "slow" && i == 1:
			s.wait(r, c.model)
			return
		case c.model == "overloaded" && i == 1:
			out.send("error", object{"type": "error", "error": object{"type": "overloaded_error", "message": "overloaded"}})
			return
		}
	}
	out.send("content_block_stop", object{"type": "content_block_stop", "index": 0})
	if c.model == "mixed" && len(c.tools) > 0 {
		reason = "tool_use"
		callTwice(out, c.tools[0])
	}
	delta := object{"type": "message_delta", "delta": object{"stop_reason": reason, "stop_sequence": nil}}
	if c.model != "nousage" {
		delta["usage"] = object{"output_tokens": len(pieces) + 1}
	}
	out.send("message_delta", delta)
	out.send("message_stop", object{"type": "message_stop"})
}

// callTwice calls a tool by the two blocks behind the first.
func callTwice(out stream, tool string) {
	for i := range 2 {
		at := 1 + i
		use := object{"type": "tool_use", "id": fmt.Sprintf("toolu_%c", 'a'+i), "name": tool, "input": object{}}
		out.send("content_block_start", object{"type": "content_block_start", "index": at, "content_block": use})
		for _, part := range []string{"", `{"at"`, fmt.Sprintf(":%d}", i)} {
			delta := object{"type": "input_json_delta", "partial_json": part}
			out.send("content_block_delta", object{"type": "content_block_delta", "index": at, "delta": delta})
		}
		out.send("content_block_stop", object{"type": "content_block_stop", "index": at})
	}
}

func failAnthropic(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("content-type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object{"type": "error", "error": object{"type": kind, "message": message}})
}
