package modelapi

import (
	"encoding/json"
	"fmt"
	"net/http"

	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/effect/model"
)

// messages is Anthropic's messages.
func messages() *protocol {
	return &protocol{
		read: readMessages, whole: wholeMessage, fail: anthropicError,
		stream: func(q *question, out *events) writer { return &messageWriter{q: q, out: out, at: -1} },
	}
}

func readMessages(body []byte) (*question, error) {
	g := object{}
	q := &question{guest: g}
	list := []object{}
	system := ""
	rules := map[string]rule{
		"system": texts("system", &system, "text"),
		"messages": func(raw json.RawMessage) error {
			return items("messages", raw, func(path string, raw json.RawMessage) error {
				turn, err := turnOf(path, raw)
				list = append(list, turn...)
				return err
			})
		},
		"stop_sequences": into(g, "stop"), "stream": flag("stream", &q.stream),
		"tools":         func(raw json.RawMessage) error { return messageTools(g, raw) },
		"tool_choice":   func(raw json.RawMessage) error { return messageChoice(g, q, raw) },
		"output_config": func(raw json.RawMessage) error { return messageFormat(g, raw) },
		"mcp_servers":   empty("mcp_servers"),
	}
	for _, same := range []string{"model", "max_tokens", "temperature", "top_p"} {
		rules[same] = into(g, same)
	}
	for _, own := range []string{
		"metadata", "service_tier", "thinking", "context_management", "cache_control", "inference_geo",
	} {
		rules[own] = hint
	}
	err := fields("", body, rules)
	if g["tools"] == nil {
		delete(g, "tool_choice")
	}
	if system != "" {
		list = append([]object{{"role": "system", "content": system}}, list...)
	}
	g["messages"] = list
	return q, err
}

// turnOf is the messages of a turn: results of tools first, which is their order.
func turnOf(path string, raw json.RawMessage) ([]object, error) {
	role, said := "", ""
	var calls, results []object
	err := fields(path, raw, map[string]rule{
		"role": text(below(path, "role"), &role),
		"content": func(raw json.RawMessage) error {
			at := below(path, "content")
			if raw[0] != '[' {
				return text(at, &said)(raw)
			}
			return items(at, raw, func(path string, raw json.RawMessage) error {
				return block(path, raw, &said, &calls, &results)
			})
		},
	})
	if said == "" && len(calls) == 0 && len(results) > 0 {
		return results, err
	}
	m := object{"role": role, "content": said}
	if len(calls) > 0 {
		m["tool_calls"] = calls
	}
	return append(results, m), err
}

// block reads one block of a turn.
func block(path string, raw json.RawMessage, said *string, calls, results *[]object) error {
	var head struct {
		Type string `json:"type"`
	}
	if strictjson.Unmarshal(raw, &head, strictjson.UnknownFields) != nil {
		return fmt.Errorf("%s must be a block", path)
	}
	switch head.Type {
	case "text":
		part := ""
		err := fields(path, raw, map[string]rule{
			"type": hint, "text": text(below(path, "text"), &part), "cache_control": hint, "citations": hint,
		})
		*said += part
		return err
	case "thinking", "redacted_thinking": // of the model that wrote it alone
		return nil
	case "tool_use":
		called, name, input := "", "", json.RawMessage("{}")
		err := fields(path, raw, map[string]rule{
			"type": hint, "id": text(below(path, "id"), &called), "name": text(below(path, "name"), &name),
			"input": func(raw json.RawMessage) error { input = raw; return nil }, "cache_control": hint, "caller": hint,
		})
		*calls = append(*calls, object{
			"id": called, "type": "function", "function": object{"name": name, "arguments": string(input)},
		})
		return err
	case "tool_result":
		called, answer, failed := "", "", false
		err := fields(path, raw, map[string]rule{
			"type": hint, "tool_use_id": text(below(path, "tool_use_id"), &called), "cache_control": hint,
			"is_error": flag(below(path, "is_error"), &failed), "content": texts(below(path, "content"), &answer, "text"),
		})
		if failed {
			answer = "error: " + answer
		}
		*results = append(*results, object{"role": "tool", "tool_call_id": called, "content": answer})
		return err
	}
	return fmt.Errorf("%s: %q is not passed on to models here; text, tool_use and tool_result are", below(path, "type"),
		head.Type)
}

// messageTools are the program's own tools; those that the provider would run are left
// out.
func messageTools(g object, raw json.RawMessage) error {
	list := []object{}
	err := items("tools", raw, func(path string, raw json.RawMessage) error {
		var head struct {
			Type string `json:"type"`
		}
		if strictjson.Unmarshal(raw, &head, strictjson.UnknownFields) != nil {
			return fmt.Errorf("%s must be a tool", path)
		}
		if head.Type != "" && head.Type != "custom" {
			return nil
		}
		f := object{}
		rules := map[string]rule{"type": hint, "input_schema": into(f, "parameters")}
		for _, same := range []string{"name", "description", "strict"} {
			rules[same] = into(f, same)
		}
		for _, own := range []string{
			"cache_control", "eager_input_streaming", "input_examples", "defer_loading", "allowed_callers",
		} {
			rules[own] = hint
		}
		list = append(list, object{"type": "function", "function": f})
		return fields(path, raw, rules)
	})
	if len(list) > 0 {
		g["tools"] = list
	}
	return err
}

func messageChoice(g object, q *question, raw json.RawMessage) error {
	kind, name := "", ""
	err := fields("tool_choice", raw, map[string]rule{
		"type": text("tool_choice.type", &kind), "name": text("tool_choice.name", &name),
		"disable_parallel_tool_use": flag("tool_choice.disable_parallel_tool_use", &q.one),
	})
	switch kind {
	case "auto", "none":
		g["tool_choice"] = kind
	case "any":
		g["tool_choice"] = "required"
	case "tool":
		g["tool_choice"] = object{"type": "function", "function": object{"name": name}}
	default:
		return fmt.Errorf("tool_choice.type: %q is not known here", kind)
	}
	return err
}

func messageFormat(g object, raw json.RawMessage) error {
	return fields("output_config", raw, map[string]rule{"effort": hint, "format": func(raw json.RawMessage) error {
		schema := object{"name": "answer"}
		g["response_format"] = object{"type": "json_schema", "json_schema": schema}
		return fields("output_config.format", raw, map[string]rule{
			"type": only("output_config.format.type", `"json_schema"`), "schema": into(schema, "schema"),
		})
	}})
}

func wholeMessage(q *question, a *model.Answer) (any, error) {
	content := []object{}
	if a.Text != "" {
		content = append(content, object{"type": "text", "text": a.Text, "citations": nil})
	}
	for _, c := range a.ToolCalls {
		if _, err := strictjson.Members([]byte(c.Function.Arguments)); err != nil {
			return nil, fmt.Errorf("the model's call of %s has no JSON object as its input", c.Function.Name)
		}
		content = append(content, object{
			"type": "tool_use", "id": c.ID, "name": c.Function.Name, "input": json.RawMessage(c.Function.Arguments),
		})
	}
	m := q.anthropic(a.Model, content)
	m["stop_reason"], m["usage"] = stopReason(a), anthropicUsage(a.Usage)
	return m, nil
}

func (q *question) anthropic(name any, content []object) object {
	return object{
		"id": "msg_" + q.id, "type": "message", "role": "assistant", "model": name, "content": content,
		"stop_reason": nil, "stop_sequence": nil, "usage": anthropicUsage(model.Usage{}),
	}
}

func anthropicUsage(u model.Usage) object {
	return object{
		"input_tokens": u.TokensIn, "output_tokens": u.TokensOut, "cache_creation_input_tokens": 0,
		"cache_read_input_tokens": 0,
	}
}

func stopReason(a *model.Answer) string {
	switch a.FinishReason {
	case "length":
		return "max_tokens"
	case "tool_calls":
		return "tool_use"
	case "content_filter":
		return "refusal"
	}
	return "end_turn"
}

// A messageWriter writes the events of a message: its blocks, one after the other.
type messageWriter struct {
	q    *question
	out  *events
	at   int // the block that is open; -1 before the first
	last model.Piece
}

func (m *messageWriter) send(kind string, event object) {
	event["type"] = kind
	m.out.send(kind, event)
}

func (m *messageWriter) begin() {
	m.send("message_start", object{"message": m.q.anthropic(m.q.guest["model"], []object{})})
}

func (m *messageWriter) piece(p model.Piece) {
	if m.at < 0 || p.IsCall != m.last.IsCall || p.Call != m.last.Call {
		m.stop()
		m.at++
		begun := object{"type": "text", "text": "", "citations": nil}
		if p.IsCall {
			begun = object{"type": "tool_use", "id": p.ID, "name": p.Name, "input": object{}}
		}
		m.last = p
		m.send("content_block_start", object{"index": m.at, "content_block": begun})
	}
	delta := object{"type": "text_delta", "text": p.Text}
	if p.IsCall {
		delta = object{"type": "input_json_delta", "partial_json": p.Arguments}
	}
	if p.Text+p.Arguments != "" {
		m.send("content_block_delta", object{"index": m.at, "delta": delta})
	}
}

func (m *messageWriter) stop() {
	if m.at >= 0 {
		m.send("content_block_stop", object{"index": m.at})
	}
}

func (m *messageWriter) end(a *model.Answer) {
	m.stop()
	m.send("message_delta", object{
		"delta": object{"stop_reason": stopReason(a), "stop_sequence": nil}, "usage": anthropicUsage(a.Usage),
	})
	m.send("message_stop", object{})
}

func (m *messageWriter) failed(status int, f failure) { m.out.send("error", anthropicError(status, f)) }

// anthropicError is an error in Anthropic's words.
func anthropicError(status int, f failure) any {
	kind := "api_error"
	switch {
	case status == http.StatusForbidden:
		kind = "permission_error"
	case status == http.StatusNotFound:
		kind = "not_found_error"
	case status == http.StatusRequestEntityTooLarge:
		kind = "request_too_large"
	case status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case status == statusOverloaded:
		kind = "overloaded_error"
	case status < http.StatusInternalServerError:
		kind = "invalid_request_error"
	}
	said := f.message
	if f.reason != "" {
		said = f.reason + ": " + said
	}
	return object{"type": "error", "error": object{"type": kind, "message": said}}
}
