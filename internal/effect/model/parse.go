package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ParseComplete reads the JSON of model_complete. Every field is checked, and
// one that is not known is an error: a control that was asked for is never
// dropped. The error is a [*FieldError].
func ParseComplete(text string) (*CompleteRequest, error) {
	o := parseObject(text)
	r := &CompleteRequest{
		Model:       o.text("model"),
		Messages:    o.messages(),
		MaxTokens:   o.whole("max_tokens", 1, maxNumber),
		Temperature: o.number("temperature", 0, 2),
		TopP:        o.number("top_p", 0, 1),
		Stop:        o.stops(),
		Seed:        o.integer("seed"),
		Tools:       o.tools(),
		Timeout:     o.timeout(),
	}
	r.ToolChoice = o.toolChoice(r.Tools)
	r.ResponseFormat = o.responseFormat()
	return r, o.done()
}

// ParseEmbed reads the JSON of model_embed. The error is a [*FieldError].
func ParseEmbed(text string) (*EmbedRequest, error) {
	o := parseObject(text)
	r := &EmbedRequest{
		Model:      o.text("model"),
		Dimensions: o.whole("dimensions", 1, maxNumber),
		Timeout:    o.timeout(),
	}
	for i, raw := range o.list("input", o.need("input"), MaxInputs) {
		name := fmt.Sprintf("input[%d]", i)
		s := asText(o, name, raw)
		if s == "" {
			o.fail(name, "must be a string that is not empty")
		}
		r.Input = append(r.Input, s)
	}
	if len(r.Input) == 0 {
		o.fail("input", "must have at least one text")
	}
	return r, o.done()
}

func (o *object) timeout() time.Duration {
	return time.Duration(o.whole("timeout_ms", 1, MaxTimeout.Milliseconds())) * time.Millisecond
}

func (o *object) messages() []Message {
	var list []Message
	o.each("messages", o.need("messages"), MaxMessages, func(_ int, m *object) {
		list = append(list, m.message())
	})
	if o.err == nil && len(list) == 0 {
		o.fail("messages", "must have at least one message")
	}
	o.answered(list)
	return list
}

func (o *object) message() Message {
	m := Message{
		Role:       o.oneOf("role", "system", "developer", "user", "assistant", "tool"),
		Name:       o.text("name"),
		ToolCallID: o.text("tool_call_id"),
	}
	var hasContent bool
	m.Content, hasContent = o.content()
	o.each("tool_calls", o.take("tool_calls"), MaxTools, func(_ int, c *object) {
		m.ToolCalls = append(m.ToolCalls, c.toolCall())
	})
	switch {
	case m.Role == "":
		o.fail(o.at("role"), "is missing")
	case m.Name != "" && !isWord(m.Name):
		o.fail(o.at("name"), "is 1 to 64 letters, digits, - and _")
	case m.Role != "assistant" && len(m.ToolCalls) > 0:
		o.fail(o.at("tool_calls"), "belongs to the assistant's messages alone")
	case m.Role != "tool" && m.ToolCallID != "":
		o.fail(o.at("tool_call_id"), "belongs to a tool's messages alone")
	case m.Role == "tool" && m.ToolCallID == "":
		o.fail(o.at("tool_call_id"), "is missing: a tool's message answers a call")
	case !hasContent && len(m.ToolCalls) == 0:
		o.fail(o.at("content"), "is missing")
	}
	return m
}

// content is a text, or parts that are texts, joined; and whether it is there.
func (o *object) content() (string, bool) {
	raw := o.take("content")
	if raw == nil || !isArray(raw) {
		return asText(o, "content", raw), raw != nil
	}
	var b strings.Builder
	o.each("content", raw, MaxMessages, func(_ int, part *object) {
		if part.oneOf("type", "text") == "" {
			part.fail(part.at("type"), "must be \"text\"")
		}
		b.WriteString(asText(part, "text", part.need("text")))
	})
	return b.String(), true
}

func isArray(raw json.RawMessage) bool { return raw[0] == '[' }

func (o *object) toolCall() ToolCall {
	c := ToolCall{ID: asText(o, "id", o.need("id")), Type: o.oneOf("type", "function")}
	c.Type = "function"
	if c.ID == "" || len(c.ID) > 256 {
		o.fail(o.at("id"), "is 1 to 256 bytes")
	}
	if o.fields["function"] == nil {
		o.fail(o.at("function"), "is missing")
	}
	o.child("function", func(f *object) {
		c.Function = Function{Name: asText(f, "name", f.need("name")), Arguments: f.text("arguments")}
		if !isWord(c.Function.Name) {
			f.fail(f.at("name"), "is 1 to 64 letters, digits, - and _")
		}
	})
	return c
}

// answered complains about a tool's message that answers no call before it.
func (o *object) answered(list []Message) {
	var open []string
	for i, m := range list {
		switch m.Role {
		case "assistant":
			open = open[:0]
			for _, c := range m.ToolCalls {
				open = append(open, c.ID)
			}
		case "tool":
			if !slices.Contains(open, m.ToolCallID) {
				o.fail(fmt.Sprintf("messages[%d].tool_call_id", i), "answers no call of the assistant's message before it")
			}
		default:
			open = open[:0]
		}
	}
}

func (o *object) stops() []string {
	raw := o.take("stop")
	if raw == nil {
		return nil
	}
	if !isArray(raw) {
		s := asText(o, "stop", raw)
		if s == "" {
			o.fail(o.at("stop"), "must not be empty")
		}
		return []string{s}
	}
	var stops []string
	for i, item := range o.list("stop", raw, MaxStops) {
		name := fmt.Sprintf("stop[%d]", i)
		s := asText(o, name, item)
		if s == "" {
			o.fail(o.at(name), "must be a string that is not empty")
		}
		stops = append(stops, s)
	}
	return stops
}

func (o *object) tools() []Tool {
	var list []Tool
	o.each("tools", o.take("tools"), MaxTools, func(_ int, t *object) {
		var tool Tool
		if t.oneOf("type", "function") == "" {
			t.fail(t.at("type"), "must be \"function\"")
		}
		if t.fields["function"] == nil {
			t.fail(t.at("function"), "is missing")
		}
		t.child("function", func(f *object) {
			tool = Tool{
				Name: asText(f, "name", f.need("name")), Description: f.text("description"),
				Parameters: f.schema("parameters"), Strict: f.bool("strict"),
			}
			if !isWord(tool.Name) {
				f.fail(f.at("name"), "is 1 to 64 letters, digits, - and _")
			}
			if slices.ContainsFunc(list, func(other Tool) bool { return other.Name == tool.Name }) {
				f.fail(f.at("name"), "is the name of an earlier tool")
			}
		})
		list = append(list, tool)
	})
	return list
}

func (o *object) toolChoice(tools []Tool) *ToolChoice {
	raw := o.take("tool_choice")
	if raw == nil {
		return nil
	}
	c := &ToolChoice{}
	o.fields["tool_choice"] = raw
	if raw[0] == '"' {
		c.Mode = o.oneOf("tool_choice", "auto", "none", "required")
		if c.Mode == "" {
			o.fail("tool_choice", "must not be empty")
		}
	} else {
		o.child("tool_choice", func(t *object) {
			t.oneOf("type", "function")
			t.child("function", func(f *object) { c.Mode, c.Name = "required", f.text("name") })
			if c.Name == "" {
				t.fail(t.at("function.name"), "is missing")
			}
		})
		if !slices.ContainsFunc(tools, func(t Tool) bool { return t.Name == c.Name }) {
			o.fail("tool_choice", "names none of the tools")
		}
	}
	if len(tools) == 0 {
		o.fail("tool_choice", "stands beside tools")
	}
	return c
}

func (o *object) responseFormat() *ResponseFormat {
	if o.fields["response_format"] == nil {
		return nil
	}
	var f *ResponseFormat
	o.child("response_format", func(r *object) {
		f = &ResponseFormat{Type: r.oneOf("type", "text", "json_object", "json_schema")}
		if f.Type == "" {
			r.fail(r.at("type"), "is missing")
		}
		r.child("json_schema", func(s *object) {
			f.Name, f.Description = asText(s, "name", s.need("name")), s.text("description")
			f.Schema, f.Strict = s.schema("schema"), s.bool("strict")
			if !isWord(f.Name) {
				s.fail(s.at("name"), "is 1 to 64 letters, digits, - and _")
			}
		})
		if (f.Type == "json_schema") != (f.Schema != nil) {
			r.fail(r.at("json_schema"), "stands beside type json_schema, and holds a schema")
		}
	})
	return f
}

// isWord reports whether s is a name as providers take it.
func isWord(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}
