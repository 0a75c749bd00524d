package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// The body of /chat/completions; what is not here is refused.
type chat struct {
	Model    string `json:"model"`
	Messages []struct {
		Role       string  `json:"role"`
		Content    *string `json:"content"`
		Name       string  `json:"name"`
		ToolCallID string  `json:"tool_call_id"`
		ToolCalls  []struct {
			ID       string `json:"id"`
			Type     string `json:"type"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
	MaxTokens           *int64   `json:"max_tokens"`
	MaxCompletionTokens *int64   `json:"max_completion_tokens"`
	Temperature         *float64 `json:"temperature"`
	TopP                *float64 `json:"top_p"`
	Seed                *int64   `json:"seed"`
	Stop                []string `json:"stop"`
	Stream              bool     `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []struct {
		Type     string `json:"type"`
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
			Strict      bool            `json:"strict"`
		} `json:"function"`
	} `json:"tools"`
	ToolChoice     json.RawMessage `json:"tool_choice"`
	ResponseFormat *struct {
		Type       string `json:"type"`
		JSONSchema *struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Schema      json.RawMessage `json:"schema"`
			Strict      bool            `json:"strict"`
		} `json:"json_schema"`
	} `json:"response_format"`
}

func openai() protocol {
	return protocol{
		path: "/v1/chat/completions", check: checkOpenAI, answer: answerOpenAI, embed: embedOpenAI,
		fail: failOpenAI,
	}
}

func strict(body []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}

func checkOpenAI(r *http.Request, body []byte) (*call, error) {
	switch {
	case r.Method != http.MethodPost:
		return nil, problem("method %s", r.Method)
	case len(r.Header.Values("Authorization")) != 1 || r.Header.Get("Authorization") != "Bearer "+Key:
		return nil, problem("Authorization is %q", r.Header.Values("Authorization"))
	case r.Header.Get("Content-Type") != "application/json":
		return nil, problem("Content-Type is %q", r.Header.Get("Content-Type"))
	case r.Header.Get("X-Api-Key") != "":
		return nil, problem("a key in two places")
	case body == nil:
		return nil, nil
	case r.URL.Path != "/v1/chat/completions":
		return nil, problem("path %s", r.URL.Path)
	}
	var c chat
	if err := strict(body, &c); err != nil {
		return nil, problem("body: %w", err)
	}
	return c.judge()
}

func (c *chat) judge() (*call, error) {
	got := &call{model: c.Model, usage: c.StreamOptions.IncludeUsage, max: 1 << 40}
	if c.Model == "" || len(c.Messages) == 0 || !c.Stream {
		return nil, problem("model, messages and stream are needed")
	}
	if c.MaxTokens != nil {
		got.max = *c.MaxTokens
	}
	var open []string
	for i, m := range c.Messages {
		switch {
		case !slices.Contains([]string{"system", "developer", "user", "assistant", "tool"}, m.Role):
			return nil, problem("messages[%d]: role %q", i, m.Role)
		case m.Content == nil && len(m.ToolCalls) == 0:
			return nil, problem("messages[%d]: no content", i)
		case m.Role == "tool" && !slices.Contains(open, m.ToolCallID):
			return nil, problem("messages[%d]: a tool's message answers no call", i)
		case m.Role != "tool" && len(open) > 0 && i > 0 && c.Messages[i-1].Role == "assistant":
			return nil, problem("messages[%d]: calls are not answered", i)
		}
		if m.Role != "tool" {
			open = nil
		}
		for _, t := range m.ToolCalls {
			if t.Type != "function" || t.ID == "" || !json.Valid([]byte(t.Function.Arguments)) {
				return nil, problem("messages[%d]: tool call %+v", i, t)
			}
			open = append(open, t.ID)
		}
		if m.Content != nil && (m.Role == "user" || m.Role == "tool") {
			got.last = *m.Content
		}
	}
	for i, t := range c.Tools {
		if t.Type != "function" || t.Function.Name == "" {
			return nil, problem("tools[%d]: %+v", i, t)
		}
		got.tools = append(got.tools, t.Function.Name)
	}
	if f := c.ResponseFormat; f != nil && (f.Type == "json_schema") != (f.JSONSchema != nil) {
		return nil, problem("response_format: %+v", f)
	}
	return got, nil
}

type object = map[string]any

func chunk(delta object, reason any) object {
	return object{
		"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m-2026",
		"choices": []object{{"index": 0, "delta": delta, "finish_reason": reason}},
	}
}

func answerOpenAI(s *Server, w http.ResponseWriter, r *http.Request, c *call) {
	out := newStream(w, c.model)
	out.send("", chunk(object{"role": "assistant", "content": ""}, nil))
	pieces, cut := words(c.last, c.max)
	reason := "stop"
	if cut {
		reason = "length"
	}
	if c.model == "tools" && len(c.tools) > 0 {
		reason, pieces = "tool_calls", nil
		begin := object{"index": 0, "id": "call_a", "type": "function", "function": object{
			"name":      c.tools[0],
			"arguments": "",
		}}
		out.send("", chunk(object{"tool_calls": []object{begin}}, nil))
		for _, part := range []string{`{"at"`, `:1}`} {
			out.send("", chunk(object{"tool_calls": []object{{"index": 0, "function": object{"arguments": part}}}}, nil))
		}
	}
	for i, p := range pieces {
		out.send("", chunk(object{"content": p}, nil))
		switch {
		case c.model == "broken" && i == 1:
			panic(http.ErrAbortHandler)
		case c.model == "slow" && i == 1:
			s.wait(r, c.model)
			return
		}
	}
	if c.model == "mixed" && len(c.tools) > 0 {
		reason = "tool_calls"
		for i := range 2 {
			begin := object{"index": i, "id": fmt.Sprintf("call_%c", 'a'+i), "type": "function", "function": object{
				"name": c.tools[0], "arguments": "",
			}}
			out.send("", chunk(object{"tool_calls": []object{begin}}, nil))
			for _, part := range []string{`{"at"`, "", fmt.Sprintf(":%d}", i)} {
				out.send("", chunk(object{"tool_calls": []object{{"index": i, "function": object{"arguments": part}}}}, nil))
			}
		}
	}
	out.send("", chunk(object{}, reason))
	if c.usage && c.model != "nousage" {
		end := chunk(object{}, nil)
		end["choices"] = []object{}
		end["usage"] = object{"prompt_tokens": 7, "completion_tokens": len(pieces) + 1, "total_tokens": 8 + len(pieces)}
		out.send("", end)
	}
	out.send("", "[DONE]")
}

func failOpenAI(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("content-type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object{"error": object{"message": message, "type": kind, "param": nil, "code": nil}})
}

func embedOpenAI(s *Server, w http.ResponseWriter, body []byte) error {
	var e struct {
		Model          string   `json:"model"`
		Input          []string `json:"input"`
		EncodingFormat string   `json:"encoding_format"`
		Dimensions     int      `json:"dimensions"`
	}
	if err := strict(body, &e); err != nil {
		return problem("body: %w", err)
	}
	if e.Model == "" || len(e.Input) == 0 || e.EncodingFormat != "float" {
		return problem("embeddings: %+v", e)
	}
	s.count(e.Model)
	var data []object
	for i := len(e.Input) - 1; i >= 0; i-- { // the order of an answer is its indexes'
		data = append(data, object{"object": "embedding", "index": i, "embedding": []float64{float64(len(e.Input[i])), 0.5}})
	}
	if e.Model == "broken" {
		data = data[1:]
	}
	answer := object{"object": "list", "model": e.Model, "data": data, "usage": object{
		"prompt_tokens": 5,
		"total_tokens":  5,
	}}
	if e.Model == "nousage" {
		delete(answer, "usage")
	}
	w.Header().Set("content-type", "application/json")
	return json.NewEncoder(w).Encode(answer)
}
