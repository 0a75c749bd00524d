package model

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

const full = `{
 "model": "openai:gpt-4o", "max_tokens": 100, "temperature": 0, "top_p": 0.5, "seed": -3, "stop": ["a", "b"], "timeout_ms": 1500,
 "messages": [
  {"role": "system", "content": "be brief"},
  {"role": "developer", "content": "or not", "name": "dev"},
  {"role": "user", "content": [{"type": "text", "text": "what "}, {"type": "text", "text": "is it?"}]},
  {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}}]},
  {"role": "tool", "tool_call_id": "c1", "content": ""}
 ],
 "tools": [{"type": "function", "function": {"name": "look", "description": "looks", "parameters": {"type": "object", "n": 9007199254740993}, "strict": true}}],
 "tool_choice": {"type": "function", "function": {"name": "look"}},
 "response_format": {"type": "json_schema", "json_schema": {"name": "n", "description": "d", "schema": {"type": "object"}, "strict": true}}
}`

func TestParseEverything(t *testing.T) {
	r, err := ParseComplete(full)
	if err != nil {
		t.Fatal(err)
	}
	zero, half, seed := 0.0, 0.5, int64(-3)
	want := &CompleteRequest{
		Model: "openai:gpt-4o", MaxTokens: 100, Temperature: &zero, TopP: &half, Seed: &seed, Stop: []string{"a", "b"},
		Timeout: 1500 * time.Millisecond,
		Messages: []Message{
			{Role: "system", Content: "be brief"},
			{Role: "developer", Content: "or not", Name: "dev"},
			{Role: "user", Content: "what is it?"},
			{Role: "assistant", ToolCalls: []ToolCall{{ID: "c1", Type: "function", Function: Function{
				Name:      "look",
				Arguments: `{"at":1}`,
			}}}},
			{Role: "tool", ToolCallID: "c1"},
		},
		Tools: []Tool{{
			Name: "look", Description: "looks",
			Parameters: json.RawMessage(`{"type":"object","n":9007199254740993}`), Strict: true,
		}},
		ToolChoice: &ToolChoice{Mode: "required", Name: "look"},
		ResponseFormat: &ResponseFormat{
			Type: "json_schema", Name: "n", Description: "d",
			Schema: json.RawMessage(`{"type":"object"}`), Strict: true,
		},
	}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got  %+v\nwant %+v", r, want)
	}
}

// message is a request around one message.
func message(text string) string { return `{"messages":[` + text + `]}` }

// with is a good request with more fields.
func with(fields string) string {
	return `{"messages":[{"role":"user","content":"x"}],` + fields + `}`
}

// What is wrong is named by its path; nothing that was asked for is dropped.
func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ text, path, says string }{
		{``, "", "no JSON"},
		{`[]`, "", "JSON object"},
		{`null`, "", "JSON object"},
		{`{} {}`, "", "behind the end"},
		{"{\"model\":\"\xff\"}", "", "UTF-8"},
		{`{"model":"a"}`, "messages", "missing"},
		{`{"messages":[]}`, "messages", "at least one"},
		{`{"messages":null}`, "messages", "missing"},
		{`{"messages":{}}`, "messages", "array"},
		{with(`"Model":"a"`), "Model", "not a field"},
		{with(`"model":"a","model":"b"`), "model", "twice"},
		{with(`"model":"a","\u006dodel":"b"`), "model", "twice"},
		{with(`"model":1`), "model", "string"},
		{with(`"n":2`), "n", "not a field"},
		{with(`"stream":true`), "stream", "not a field"},
		{with(`"max_tokens":0`), "max_tokens", "from 1"},
		{with(`"max_tokens":-1`), "max_tokens", "from 1"},
		{with(`"max_tokens":1.5`), "max_tokens", "whole number"},
		{with(`"max_tokens":1e3`), "max_tokens", "whole number"},
		{with(`"max_tokens":"9"`), "max_tokens", "whole number"},
		{with(`"max_tokens":99999999999999999999`), "max_tokens", "whole number"},
		{with(`"temperature":2.1`), "temperature", "from 0 to 2"},
		{with(`"temperature":1e999`), "temperature", "floating point"},
		{with(`"top_p":-0.1`), "top_p", "from 0 to 1"},
		{with(`"stop":""`), "stop", "empty"},
		{with(`"stop":["a",1]`), "stop[1]", "string"},
		{with(`"stop":["` + strings.Repeat(`x","`, MaxStops) + `"]`), "stop", "at most 16"},
		{with(`"timeout_ms":600001`), "timeout_ms", "600000"},
		{message(`{"content":"x"}`), "messages[0].role", "missing"},
		{message(`{"role":"User","content":"x"}`), "messages[0].role", "one of"},
		{message(`{"role":"user"}`), "messages[0].content", "missing"},
		{message(`{"role":"user","content":null}`), "messages[0].content", "missing"},
		{
			message(`{"role":"user","content":[{"type":"image_url","image_url":"x"}]}`), "messages[0].content[0].type",
			"one of",
		},
		{message(`{"role":"user","content":[{"type":"text"}]}`), "messages[0].content[0].text", "missing"},
		{
			message(`{"role":"user","content":"x","tool_calls":[{"id":"a","function":{"name":"f"}}]}`), "messages[0].tool_calls",
			"assistant",
		},
		{message(`{"role":"user","content":"x","tool_call_id":"a"}`), "messages[0].tool_call_id", "tool's"},
		{message(`{"role":"user","content":"x"},{"role":"tool","content":"y"}`), "messages[1].tool_call_id", "missing"},
		{
			message(`{"role":"user","content":"x"},{"role":"tool","content":"y","tool_call_id":"a"}`),
			"messages[1].tool_call_id", "answers no call",
		},
		{
			message(`{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","args":"{"}}]}`),
			"messages[0].tool_calls[0].function.args", "not a field",
		},
		{
			message(`{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f g"}}]}`),
			"messages[0].tool_calls[0].function.name", "letters",
		},
		{message(`{"role":"assistant","tool_calls":[{"id":"a"}]}`), "messages[0].tool_calls[0].function", "missing"},
		{message(`{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]}`), "messages[0].tool_calls[0].id", "missing"},
		{with(`"tools":[{"type":"function"}]`), "tools[0].function", "missing"},
		{with(`"tools":[{"function":{"name":"f"}}]`), "tools[0].type", "function"},
		{
			with(`"tools":[{"type":"function","function":{"name":"f","parameters":[]}}]`), "tools[0].function.parameters",
			"object",
		},
		{
			with(`"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}]`),
			"tools[1].function.name", "earlier",
		},
		{with(`"tool_choice":"auto"`), "tool_choice", "beside tools"},
		{with(`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"g"}}`), "tool_choice", "none of the tools"},
		{with(`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"any"`), "tool_choice", "one of"},
		{with(`"response_format":{"type":"xml"}`), "response_format.type", "one of"},
		{with(`"response_format":{"type":"json_schema"}`), "response_format.json_schema", "stands beside"},
		{
			with(`"response_format":{"type":"text","json_schema":{"name":"a","schema":{}}}`), "response_format.json_schema",
			"stands beside",
		},
	} {
		_, err := ParseComplete(c.text)
		var f *FieldError
		if !errors.As(err, &f) || f.Path != c.path || !strings.Contains(f.Problem, c.says) {
			t.Errorf("%.80q: %v, want %s: ...%s...", c.text, err, c.path, c.says)
		}
	}
	for _, c := range []struct{ text, path, says string }{
		{`{}`, "input", "missing"},
		{`{"input":[]}`, "input", "at least one"},
		{`{"input":"x"}`, "input", "array"},
		{`{"input":["a",""]}`, "input[1]", "not empty"},
		{`{"input":["a",2]}`, "input[1]", "string"},
		{`{"input":["a"],"dimensions":0}`, "dimensions", "from 1"},
		{`{"input":["a"],"encoding_format":"base64"}`, "encoding_format", "not a field"},
		{`{"input":["` + strings.Repeat(`x","`, MaxInputs) + `x"]}`, "input", "at most 2048"},
	} {
		_, err := ParseEmbed(c.text)
		var f *FieldError
		if !errors.As(err, &f) || f.Path != c.path || !strings.Contains(f.Problem, c.says) {
			t.Errorf("%.80q: %v, want %s: ...%s...", c.text, err, c.path, c.says)
		}
	}
}

// Whatever a guest passes: an error says where, and what is taken is within
// its bounds and can be sent.
func FuzzParse(f *testing.F) {
	f.Add(full)
	f.Add(with(`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"required"`))
	f.Add(`{"input":["a"],"dimensions":3}`)
	f.Add(`{"messages":[{"role":"user","content":[` + strings.Repeat(`[`, 100))
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseComplete(text)
		if err == nil {
			if len(r.Messages) == 0 || r.bound() < int64(len(r.Messages)) || r.MaxTokens < 0 {
				t.Errorf("taken: %+v", r)
			}
			if _, ok := digestOf("m", r); !ok {
				t.Errorf("%+v cannot be sent", r)
			}
			c, err := echo{}.Complete(t.Context(), Target{}, r)
			if err != nil || c.Metered.In > r.bound() || c.Metered.Out > max(c.bytes(), 1) {
				t.Errorf("echo: %+v, %v", c, err)
			}
		}
		e, embedErr := ParseEmbed(text)
		if embedErr == nil && (len(e.Input) == 0 || e.words() > e.bound()) {
			t.Errorf("taken: %+v", e)
		}
		for _, err := range []error{err, embedErr} {
			var field *FieldError
			if err != nil && (!errors.As(err, &field) || field.Problem == "" || len(err.Error()) > 1000) {
				t.Errorf("%q does not say where", err)
			}
		}
	})
}
