package modelapi

import (
	"encoding/json"
	"fmt"

	"runloop.dev/rlp/internal/base/strictjson"
)

// responses is OpenAI's responses, without anything that the provider would keep.
func responses() *protocol {
	return &protocol{
		read: readResponses, whole: wholeResponse, fail: openaiError,
		stream: newResponseWriter,
	}
}

func readResponses(body []byte) (*question, error) {
	g := object{}
	q := &question{guest: g, texts: map[string]bool{}}
	var c conversation
	instructions := ""
	rules := map[string]rule{
		"input": c.input, "instructions": text("instructions", &instructions), "max_output_tokens": into(g, "max_tokens"),
		"stream": flag("stream", &q.stream), "parallel_tool_calls": not("parallel_tool_calls", &q.one),
		"tools":       func(raw json.RawMessage) error { return responseTools(g, q, raw) },
		"tool_choice": func(raw json.RawMessage) error { return responseChoice(g, raw) },
		"text":        func(raw json.RawMessage) error { return responseText(g, raw) },
		"background":  only("background", "false"), "top_logprobs": only("top_logprobs", "0"),
	}
	for _, same := range []string{"model", "temperature", "top_p"} {
		rules[same] = into(g, same)
	}
	for _, own := range []string{
		"user", "metadata", "client_metadata", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention",
		"safety_identifier", "reasoning", "include", "truncation", "stream_options", "max_tool_calls",
	} {
		rules[own] = hint
	}
	err := fields("", body, rules)
	if g["tools"] == nil {
		delete(g, "tool_choice") // of tools that are none here
	}
	if instructions != "" {
		c.list = append([]object{{"role": "system", "content": instructions}}, c.list...)
	}
	g["messages"] = c.list
	return q, err
}

// A conversation is the messages that items of a response's input are.
type conversation struct{ list []object }

func (c *conversation) input(raw json.RawMessage) error {
	if raw[0] != '[' {
		said := ""
		c.list = append(c.list, object{"role": "user"})
		err := text("input", &said)(raw)
		c.list[0]["content"] = said
		return err
	}
	return items("input", raw, c.item)
}

func (c *conversation) item(path string, raw json.RawMessage) error {
	var head struct {
		Type string `json:"type"`
		Role string `json:"role"`
	}
	if strictjson.Unmarshal(raw, &head, strictjson.UnknownFields) != nil {
		return fmt.Errorf("%s must be an item", path)
	}
	switch head.Type {
	case "", "message":
		said := ""
		err := fields(path, raw, map[string]rule{
			"content": texts(below(path, "content"), &said, "input_text", "output_text", "text", "refusal"),
			"type":    hint, "role": hint, "id": hint, "status": hint, "phase": hint,
		})
		c.list = append(c.list, object{"role": head.Role, "content": said})
		return err
	case "reasoning": // the provider's own thoughts, which no other model can read
		return nil
	case "function_call", "custom_tool_call":
		return c.call(path, raw)
	case "function_call_output", "custom_tool_call_output":
		called, said := "", ""
		err := fields(path, raw, map[string]rule{
			"call_id": text(below(path, "call_id"), &called), "type": hint, "id": hint, "status": hint, "name": hint,
			"output": texts(below(path, "output"), &said, "input_text", "output_text", "text"),
		})
		c.list = append(c.list, object{"role": "tool", "tool_call_id": called, "content": said})
		return err
	}
	return fmt.Errorf("%s: %q is not passed on to models here", below(path, "type"), head.Type)
}

// call adds a call to the assistant's message before it, or makes one.
func (c *conversation) call(path string, raw json.RawMessage) error {
	var called, name, arguments, input string
	err := fields(path, raw, map[string]rule{
		"call_id": text(below(path, "call_id"), &called), "name": text(below(path, "name"), &name),
		"arguments": text(below(path, "arguments"), &arguments), "input": text(below(path, "input"), &input),
		"type": hint, "id": hint, "status": hint, "namespace": hint,
	})
	if arguments == "" {
		text, jsonErr := json.Marshal(object{customInput: input})
		if arguments = string(text); jsonErr != nil {
			return jsonErr
		}
	}
	made := object{"id": called, "type": "function", "function": object{"name": name, "arguments": arguments}}
	if n := len(c.list); n > 0 && c.list[n-1]["role"] == "assistant" {
		calls, _ := c.list[n-1]["tool_calls"].([]object)
		c.list[n-1]["tool_calls"] = append(calls, made)
		return err
	}
	c.list = append(c.list, object{"role": "assistant", "tool_calls": []object{made}})
	return err
}

// customInput is the one field of the arguments by which a model calls a tool that
// takes a text.
const customInput = "input"

// responseTools are the functions among tools. A tool that takes a text is a function
// of one field; what the provider itself would run is left out.
func responseTools(g object, q *question, raw json.RawMessage) error {
	list := []object{}
	err := items("tools", raw, func(path string, raw json.RawMessage) error {
		kind, name := "", ""
		f := object{}
		rules := map[string]rule{"type": text(below(path, "type"), &kind), "format": hint}
		for _, same := range []string{"description", "parameters", "strict"} {
			rules[same] = into(f, same)
		}
		rules["name"] = func(raw json.RawMessage) error {
			f["name"] = raw
			return text(below(path, "name"), &name)(raw)
		}
		err := fields(path, raw, rules)
		switch kind {
		case "custom":
			q.texts[name] = true
			f["parameters"] = object{
				"type": "object", "properties": object{customInput: object{"type": "string"}}, "required": []string{customInput},
			}
		case "function":
		default:
			return nil
		}
		list = append(list, object{"type": "function", "function": f})
		return err
	})
	if len(list) > 0 {
		g["tools"] = list
	}
	return err
}

func responseChoice(g object, raw json.RawMessage) error {
	if raw[0] == '"' {
		g["tool_choice"] = raw
		return nil
	}
	kind, name := "", ""
	err := fields("tool_choice", raw, map[string]rule{
		"type": text("tool_choice.type", &kind), "name": text("tool_choice.name", &name),
	})
	if err == nil && kind != "function" && kind != "custom" {
		err = fmt.Errorf("tool_choice.type: %q is not passed on to models here", kind)
	}
	g["tool_choice"] = object{"type": "function", "function": object{"name": name}}
	return err
}

func responseText(g object, raw json.RawMessage) error {
	return fields("text", raw, map[string]rule{"verbosity": hint, "format": func(raw json.RawMessage) error {
		kind := ""
		of := object{}
		rules := map[string]rule{"type": text("text.format.type", &kind)}
		for _, same := range []string{"name", "description", "schema", "strict"} {
			rules[same] = into(of, same)
		}
		err := fields("text.format", raw, rules)
		format := object{"type": kind}
		if kind == "json_schema" {
			format["json_schema"] = of
		}
		g["response_format"] = format
		return err
	}})
}
