package modelapi

import (
	"encoding/json"
	"net/http"

	"runloop.dev/rlp/internal/effect/model"
)

// chat is OpenAI's chat completions.
func chat() *protocol {
	return &protocol{
		read: readChat, whole: wholeChat, fail: openaiError,
		stream: func(q *question, out *events) writer { return &chatWriter{q: q, out: out} },
	}
}

func readChat(body []byte) (*question, error) {
	g := object{}
	q := &question{guest: g}
	rules := map[string]rule{
		"messages": func(raw json.RawMessage) error {
			list := []object{}
			err := items("messages", raw, func(path string, raw json.RawMessage) error {
				m, err := chatMessage(path, raw)
				list = append(list, m)
				return err
			})
			g["messages"] = list
			return err
		},
		"max_completion_tokens": into(g, "max_tokens"), "stream": flag("stream", &q.stream),
		"stream_options": func(raw json.RawMessage) error {
			return fields("stream_options", raw, map[string]rule{
				"include_usage": flag("stream_options.include_usage", &q.usage), "include_obfuscation": hint,
			})
		},
		"parallel_tool_calls": not("parallel_tool_calls", &q.one),
		"n":                   only("n", "1"), "logprobs": only("logprobs", "false"),
		"top_logprobs":      only("top_logprobs", "0"),
		"frequency_penalty": only("frequency_penalty", "0"), "presence_penalty": only("presence_penalty", "0"),
		"logit_bias": only("logit_bias", "{}"), "modalities": only("modalities", `["text"]`),
	}
	for _, same := range []string{
		"model", "max_tokens", "temperature", "top_p", "stop", "seed", "tools", "tool_choice", "response_format",
	} {
		rules[same] = into(g, same)
	}
	for _, own := range []string{
		"user", "metadata", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention", "safety_identifier",
		"reasoning_effort", "verbosity",
	} {
		rules[own] = hint
	}
	return q, fields("", body, rules)
}

// chatMessage is one message. What a client sends back of an answer holds fields that
// say nothing.
func chatMessage(path string, raw json.RawMessage) (object, error) {
	m := object{}
	refusal := ""
	rules := map[string]rule{
		"refusal": text(below(path, "refusal"), &refusal), "annotations": empty(below(path, "annotations")),
		"audio": empty(below(path, "audio")), "function_call": empty(below(path, "function_call")), "reasoning": hint,
		"reasoning_content": hint,
		"tool_calls": func(raw json.RawMessage) error {
			if string(raw) == "[]" {
				return nil
			}
			calls := []object{}
			err := items(below(path, "tool_calls"), raw, func(path string, raw json.RawMessage) error {
				c := object{}
				calls = append(calls, c)
				return fields(path, raw, map[string]rule{
					"id": into(c, "id"), "type": into(c, "type"), "function": into(c, "function"), "index": hint,
				})
			})
			m["tool_calls"] = calls
			return err
		},
	}
	for _, same := range []string{"role", "content", "name", "tool_call_id"} {
		rules[same] = into(m, same)
	}
	err := fields(path, raw, rules)
	if _, says := m["content"]; !says && refusal != "" {
		m["content"] = refusal
	}
	return m, err
}

func chatCall(c model.ToolCall) object {
	return object{
		"id": c.ID, "type": "function",
		"function": object{"name": c.Function.Name, "arguments": c.Function.Arguments},
	}
}

func wholeChat(q *question, a *model.Answer) (any, error) {
	message := object{"role": "assistant", "content": a.Text, "refusal": nil, "annotations": []any{}}
	if len(a.ToolCalls) > 0 {
		calls := []object{}
		for _, c := range a.ToolCalls {
			calls = append(calls, chatCall(c))
		}
		message["tool_calls"] = calls
		if a.Text == "" {
			message["content"] = nil
		}
	}
	return object{
		"id": "chatcmpl-" + q.id, "object": "chat.completion", "created": q.at, "model": a.Model,
		"choices": []object{{"index": 0, "message": message, "logprobs": nil, "finish_reason": a.FinishReason}},
		"usage":   openaiUsage(a.Usage),
	}, nil
}

func openaiUsage(u model.Usage) object {
	return object{"prompt_tokens": u.TokensIn, "completion_tokens": u.TokensOut, "total_tokens": u.TokensIn + u.TokensOut}
}

// A chatWriter writes chunks of a chat completion.
type chatWriter struct {
	q   *question
	out *events
}

func (c *chatWriter) chunk(delta object, reason any) object {
	name, _ := c.q.guest["model"].(json.RawMessage)
	if name == nil {
		name = json.RawMessage(`""`)
	}
	chunk := object{
		"id": "chatcmpl-" + c.q.id, "object": "chat.completion.chunk", "created": c.q.at, "model": name,
		"choices": []object{{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": reason}},
	}
	if c.q.usage {
		chunk["usage"] = nil
	}
	return chunk
}

func (c *chatWriter) begin() {
	c.out.send("", c.chunk(object{"role": "assistant", "content": "", "refusal": nil}, nil))
}

func (c *chatWriter) piece(p model.Piece) {
	delta := object{"content": p.Text}
	if p.IsCall {
		function := object{"arguments": p.Arguments}
		call := object{"index": p.Call, "function": function}
		if p.ID != "" {
			call["id"], call["type"], function["name"] = p.ID, "function", p.Name
		}
		delta = object{"tool_calls": []object{call}}
	}
	c.out.send("", c.chunk(delta, nil))
}

func (c *chatWriter) end(a *model.Answer) {
	c.out.send("", c.chunk(object{}, a.FinishReason))
	if c.q.usage {
		last := c.chunk(object{}, nil)
		last["choices"], last["usage"] = []object{}, openaiUsage(a.Usage)
		c.out.send("", last)
	}
	c.out.raw("", []byte("[DONE]"))
}

func (c *chatWriter) failed(status int, f failure) { c.out.send("", openaiError(status, f)) }

// openaiError is an error in OpenAI's words.
func openaiError(status int, f failure) any {
	kind := "api_error"
	switch {
	case status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case status == http.StatusForbidden:
		kind = "permission_error"
	case status < http.StatusInternalServerError:
		kind = "invalid_request_error"
	}
	var code any
	if f.reason != "" {
		code = f.reason
	}
	return object{"error": object{"message": f.message, "type": kind, "param": nil, "code": code}}
}
