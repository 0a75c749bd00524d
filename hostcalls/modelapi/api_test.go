package modelapi

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/effect/model"
	"runloop.dev/rlp/secrets"
)

const looks = `[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]`

// ask posts a body and returns the status, the head and the text of the answer.
func (r *rig) ask(t *testing.T, path, body string) (int, http.Header, string) {
	t.Helper()
	resp, err := http.Post(r.front.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

// bodies ask the same in each protocol.
func bodies(name, text, more string) map[string]string {
	return map[string]string{
		"/v1/chat/completions": `{"model":"` + name + `","messages":[{"role":"user","content":"` + text + `"}]` + more + `}`,
		"/v1/responses":        `{"model":"` + name + `","input":"` + text + `"` + more + `}`,
		"/v1/messages": `{"model":"` + name + `","max_tokens":99,"messages":[{"role":"user","content":"` + text + `"}]` +
			more + `}`,
	}
}

// Each way to ask is judged and recorded as model_complete, whole or by stream, before
// anybody is asked; what is not granted is asked of nobody.
func TestRequestsAreRecorded(t *testing.T) {
	for _, more := range []string{"", `,"stream":true`} {
		for path, body := range bodies("openai:some", "hello there", more) {
			r := open(t, grant)
			status, head, text := r.ask(t, path, body)
			events := head.Get("Content-Type") == "text/event-stream"
			if status != 200 || !strings.Contains(text, "hello") || events != (more != "") {
				t.Errorf("%s %s: %d %s", path, more, status, text)
			}
			r.judge.Lock()
			d, e := r.log.Decisions, r.log.Events
			r.judge.Unlock()
			if len(d) != 1 || d[0].Deny ||
				d[0].Cap != "model.use" || d[0].Op != "model_complete" || d[0].Target != "openai:some" ||
				len(e) != 1 || e[0].Verb != "model_complete" || e[0].Status != "ok" || e[0].ResultHash == "" {
				t.Errorf("%s: recorded %+v, %+v", path, d, e)
			}
		}
		for path, body := range bodies("openai:other", "hello", more) {
			r := open(t, grant)
			status, head, text := r.ask(t, path, body)
			if status != 403 || !strings.Contains(text, "model_not_permitted") || head.Get("X-Should-Retry") != "false" ||
				r.behind["openai"].Calls("other") != 0 {
				t.Errorf("%s: %d %s", path, status, text)
			}
		}
	}
}

// The budget of the run is one, whichever way is asked; the control is without a limit.
func TestRequestsSpendTheBudget(t *testing.T) {
	for path, body := range bodies("openai:some", strings.Repeat("word ", 60), "") {
		for limit, want := range map[string]int{"": 200, "[limits]\nmodel_tokens = 100\n": 429} {
			r := open(t, grant+limit)
			status, head, text := r.ask(t, path, body)
			if status != want || want == 429 && (!strings.Contains(text, "model_tokens") ||
				head.Get("X-Should-Retry") != "false" || r.behind["openai"].Calls("some") != 0) {
				t.Errorf("%s under %q: %d %s", path, limit, status, text)
			}
		}
	}
}

// What the calls have no word for is refused by its path, and asked of nobody.
func TestWhatIsNotPassedOnIsRefused(t *testing.T) {
	r := open(t, grant)
	for path, cases := range map[string]map[string]string{
		"/v1/chat/completions": {
			`{"messages":[{"role":"user","content":"x"}],"n":2}`:                                      "n is 1 here",
			`{"messages":[{"role":"user","content":"x"}],"logit_bias":{"1":2}}`:                       "logit_bias",
			`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`: "messages[0].content[0]",
			`{"messages":[{"role":"user","content":"x"}],"audio":{"voice":"y"}}`:                      "audio is not a field",
			`{"messages":[{"role":"user","content":"x","audio":{"id":"y"}}]}`:                         "messages[0].audio",
			`{"messages":{}}`: "messages must be an array",
			`{"messages":[{"role":"user","content":"x"}],"messages":[]}`: "messages",
			`[]`: "the request is no JSON object",
		},
		"/v1/responses": {
			`{"input":"x","previous_response_id":"resp_1"}`:                                  "previous_response_id",
			`{"input":[{"type":"item_reference","id":"y"}]}`:                                 "input[0].type",
			`{"input":[{"role":"user","content":[{"type":"input_image","image_url":"y"}]}]}`: "input[0].content[0].type",
			`{"input":"x","background":true}`:                                                "background",
			`{"input":[{"type":"function_call_output","call_id":"c","output":"y"}]}`:         "messages[0].tool_call_id",
		},
		"/v1/messages": {
			`{"max_tokens":1,"messages":[{"role":"user","content":"x"}],"top_k":3}`:                      "top_k",
			`{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]}`:     "messages[0].content[0].type",
			`{"max_tokens":1,"messages":[{"role":"user","content":"x"}],"mcp_servers":[{"url":"y"}]}`:    "mcp_servers",
			`{"max_tokens":1,"messages":[{"role":"user","content":"x"}],"tool_choice":{"type":"maybe"}}`: "tool_choice.type",
		},
		"/v1/embeddings": {`{"input":[[1,2]]}`: "input[0]", `{"input":"x","encoding_format":"bits"}`: "encoding_format"},
	} {
		for body, want := range cases {
			body = strings.Replace(body, "{", `{"model":"openai:some",`, 1)
			if status, _, text := r.ask(t, path, body); status != 400 || !strings.Contains(text, want) {
				t.Errorf("%s %s: %d %s", path, body, status, text)
			}
		}
	}
	if n := r.behind["openai"].Calls("some"); n != 0 {
		t.Errorf("asked %d times", n)
	}
	for path, want := range map[string]int{"/v1/models": 404, "/": 404, "/v1/chat/completions/": 404} {
		if status, _, _ := r.ask(t, path, "{}"); status != want {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// Who wants one call at a time gets one, whole and by stream.
func TestOneCallAtATime(t *testing.T) {
	for path, more := range map[string]string{
		"/v1/chat/completions": `,"tools":` + looks + `,"parallel_tool_calls":`,
		"/v1/responses":        `,"tools":[{"type":"function","name":"look","parameters":{"type":"object"}}],"parallel_tool_calls":`,
		"/v1/messages": `,"tools":[{"name":"look","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto",` +
			`"disable_parallel_tool_use":`,
	} {
		for _, one := range []bool{true, false} {
			says := map[bool]string{true: "false", false: "true"}[one]
			if path == "/v1/messages" {
				says = map[bool]string{true: "true}", false: "false}"}[one]
			}
			for _, stream := range []string{"", `,"stream":true`} {
				r := open(t, grant)
				_, _, text := r.ask(t, path, bodies("openai:mixed", "hi", more+says+stream)[path])
				if !strings.Contains(text, "call_a") || strings.Contains(text, "call_b") == one {
					t.Errorf("%s, one %v%s: %s", path, one, stream, text)
				}
			}
		}
	}
}

// A tool that takes a text is one to the program, and a function to the model.
func TestToolsThatTakeATextInResponses(t *testing.T) {
	speaker := speaking{
		model.Piece{IsCall: true, ID: "c1", Name: "patch"},
		model.Piece{IsCall: true, Arguments: `{"input":"a`},
		model.Piece{IsCall: true, Arguments: `\nb"}`},
	}
	r := open(t, grant, func(c *hostcalls.Config) { c.Model = speaker })
	const tool = `,"tools":[{"type":"custom","name":"patch","format":{"type":"text"}}]`
	for _, stream := range []string{"", `,"stream":true`} {
		_, _, text := r.ask(t, "/v1/responses", bodies("openai:some", "hi", tool+stream)["/v1/responses"])
		if !strings.Contains(text, `"type":"custom_tool_call"`) || !strings.Contains(text, `"input":"a\nb"`) {
			t.Errorf("%s: %s", stream, text)
		}
	}
}

// speaking is a model that says these parts.
type speaking []model.Piece

func (speaking) Bound(model.Limits)                   {}
func (speaking) Prepare(model.Request) *model.Refusal { return nil }
func (s speaking) Complete(_ context.Context, r *model.CompleteRequest) (*model.Answer, error) {
	a := &model.Answer{Model: r.Model, FinishReason: "stop"}
	for _, p := range s {
		if r.Emit != nil {
			r.Emit(p)
		}
		if !p.IsCall {
			a.Text += p.Text
			continue
		}
		if p.Call == len(a.ToolCalls) {
			a.ToolCalls = append(a.ToolCalls, model.ToolCall{ID: p.ID, Type: "function", Function: model.Function{Name: p.Name}})
		}
		a.ToolCalls[p.Call].Function.Arguments += p.Arguments
	}
	return a, nil
}

func (speaking) Embed(context.Context, *model.EmbedRequest) (*model.Embeddings, error) {
	return &model.Embeddings{}, nil
}

// No model gives a value of the run away, in whatever parts it says it; the control is
// the same model in a run that knows none.
func TestAnswersHoldNoValues(t *testing.T) {
	const value = "Sup3rSecretValue"
	tenant, err := ident.ParseTenant("default")
	if err != nil {
		t.Fatal(err)
	}
	speaker := speaking{
		{Text: "it is Sup3r"},
		{Text: "Secret"},
		{Text: "Value."},
		{IsCall: true, ID: "c", Name: "look"},
		{IsCall: true, Arguments: `{"a":"Sup3rS`},
		{IsCall: true, Arguments: `ecretValue"}`},
	}
	for _, knows := range []bool{true, false} {
		for _, stream := range []string{"", `,"stream":true`} {
			for path, body := range bodies("openai:some", "hi", stream) {
				r := open(t, grant, func(c *hostcalls.Config) {
					c.Model = speaker
					if !knows {
						return
					}
					run := secrets.NewRun(func() (secrets.Provider, error) {
						return secrets.Open(secrets.Config{
							Provider: "env", Tenant: tenant, Env: []string{"RLP_SECRET_default_0a_0key=" + value},
						})
					})
					if _, err := run.Handle(t.Context(), "runloop/a/key"); err != nil {
						t.Fatal(err)
					}
					c.Secrets = run
				})
				_, _, text := r.ask(t, path, body)
				if together := strings.Contains(said(text), value); together == knows {
					t.Errorf("knows %v, %s%s: %s", knows, path, stream, text)
				}
				if knows && strings.Count(said(text), "[secret runloop/a/key]") < 2 {
					t.Errorf("%s%s: %s", path, stream, text)
				}
			}
		}
	}
}

// said is all texts of an answer, one behind the other.
func said(answer string) string {
	var b strings.Builder
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			b.WriteString(v)
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, key := range []string{
				"delta", "content", "choices", "text", "partial_json", "arguments", "message", "output",
				"tool_calls", "function", "input", "a",
			} {
				walk(v[key])
			}
		}
	}
	lines := []string{answer}
	if strings.Contains(answer, "data: ") {
		lines = nil
		for s := bufio.NewScanner(strings.NewReader(answer)); s.Scan(); {
			if line, is := strings.CutPrefix(s.Text(), "data: "); is {
				lines = append(lines, line)
			}
		}
	}
	for _, line := range lines {
		var v any
		if json.Unmarshal([]byte(line), &v) == nil {
			walk(v)
		}
	}
	return b.String()
}

// The events of each protocol come in the order that its clients go by.
func TestShapes(t *testing.T) {
	for path, want := range map[string][]string{
		"/v1/responses": {
			"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
			"response.output_text.delta", "response.output_text.delta", "response.output_text.done",
			"response.content_part.done",
			"response.output_item.done", "response.completed",
		},
		"/v1/messages": {
			"message_start", "content_block_start", "content_block_delta", "content_block_delta", "content_block_stop",
			"message_delta", "message_stop",
		},
		"/v1/chat/completions": nil,
	} {
		r := open(t, grant)
		_, _, text := r.ask(t, path, bodies("anthropic:some", "two words", `,"stream":true`)[path])
		var kinds []string
		for line := range strings.Lines(text) {
			if kind, is := strings.CutPrefix(strings.TrimSpace(line), "event: "); is {
				kinds = append(kinds, kind)
			}
		}
		if !slices.Equal(kinds, want) {
			t.Errorf("%s: %q", path, kinds)
		}
		if path == "/v1/chat/completions" && !strings.HasSuffix(text, "data: [DONE]\n\n") {
			t.Errorf("%s", text)
		}
	}
}
