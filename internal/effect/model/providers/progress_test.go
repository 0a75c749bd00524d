package providers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/base/strictjson/jsontest"
	"runloop.dev/rlp/internal/effect/model"
)

// says is a server whose every answer is this stream of data lines.
func says(t testing.TB, contentType string, lines ...string) model.Target {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("content-type", contentType)
		for _, l := range lines {
			fmt.Fprintf(w, "data: %s\n\n", l)
		}
	}))
	t.Cleanup(s.Close)
	return model.Target{Kind: "openai", BaseURL: s.URL, Model: "m", Timeout: time.Minute}
}

func delta(t testing.TB, d any, reason string) string {
	t.Helper()
	choice := map[string]any{"index": 0, "delta": d}
	if reason != "" {
		choice["finish_reason"] = reason
	}
	text, err := json.Marshal(map[string]any{"choices": []any{choice}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

type piece map[string]any

func call(index int, id, name, arguments string) piece {
	return piece{"tool_calls": []piece{{"index": index, "id": id, "type": "function", "function": piece{
		"name":      name,
		"arguments": arguments,
	}}}}
}

// What servers that speak the protocol in their own way answer.
func TestOddStreams(t *testing.T) {
	for name, c := range map[string]struct {
		lines  []string
		calls  []model.Function
		reason string
		text   string
	}{
		"calls that all have the index 0": {
			[]string{delta(t, call(0, "a", "f", `{"n":1}`), ""), delta(t, call(0, "b", "g", `{}`), "stop")},
			[]model.Function{{Name: "f", Arguments: `{"n":1}`}, {Name: "g", Arguments: "{}"}},
			"tool_calls", "",
		},
		"a call without id and arguments": {
			[]string{delta(t, call(0, "", "f", ""), "tool_calls")},
			[]model.Function{{Name: "f", Arguments: "{}"}},
			"tool_calls", "",
		},
		"no end but its reason": {[]string{delta(t, piece{"content": "hi"}, "stop")}, nil, "stop", "hi"},
		"a refusal": {
			[]string{delta(t, piece{"refusal": "I will not"}, ""), delta(t, piece{}, "stop"), "[DONE]"},
			nil, "content_filter", "I will not",
		},
		"an old reason": {[]string{delta(t, piece{"content": "hi"}, "eos"), "[DONE]"}, nil, "stop", "hi"},
	} {
		got, err := New(Options{}).Complete(within(t), says(t, "text/event-stream", c.lines...), ask("x"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var calls []model.Function
		for _, call := range got.ToolCalls {
			calls = append(calls, call.Function)
			if call.ID == "" {
				t.Errorf("%s: nobody could answer %+v", name, call)
			}
		}
		if !reflect.DeepEqual(calls, c.calls) || got.FinishReason != c.reason || got.Text != c.text {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What is no answer is none, and does not take all memory.
func TestStreamsThatMakeNoSense(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	endless := make([]string, maxAnswer>>20+2)
	for i := range endless {
		endless[i] = delta(t, piece{"content": long}, "")
	}
	for name, c := range map[string]struct {
		contentType string
		lines       []string
		kind        model.Kind
		charge      model.Charge
	}{
		"nothing": {"text/event-stream", nil, model.Broken, model.ChargeReserved},
		"no reason": {
			"text/event-stream",
			[]string{delta(t, piece{"content": "hi"}, ""), "[DONE]"},
			model.Broken,
			model.ChargeMeasured,
		},
		"no JSON": {"text/event-stream", []string{"{"}, model.Broken, model.ChargeReserved},
		"an error": {
			"text/event-stream",
			[]string{`{"error":{"message":"overloaded"}}`},
			model.Broken,
			model.ChargeReserved,
		},
		"another choice": {
			"text/event-stream",
			[]string{`{"choices":[{"index":1,"delta":{"content":"x"}}]}`},
			model.Broken, model.ChargeMeasured,
		},
		"call -1": {
			"text/event-stream",
			[]string{delta(t, call(-1, "a", "f", ""), "stop")},
			model.Broken,
			model.ChargeMeasured,
		},
		"call 2 before 1": {
			"text/event-stream",
			[]string{delta(t, call(1, "a", "f", ""), "stop")},
			model.Broken,
			model.ChargeMeasured,
		},
		"an answer at once": {
			"application/json",
			[]string{`{"choices":[{"message":{"content":"hi"}}]}`},
			model.Broken,
			model.ChargeMeasured,
		},
		"text without end": {"text/event-stream", endless, model.TooLarge, model.ChargeMeasured},
		"negative usage": {
			"text/event-stream",
			[]string{`{"choices":[],"usage":{"prompt_tokens":-5,"completion_tokens":-9}}`},
			model.Broken, model.ChargeMeasured,
		},
	} {
		_, err := New(Options{Backoff: time.Millisecond}).Complete(within(t), says(t, c.contentType, c.lines...), ask("x"))
		f := failed(t, err)
		if f.Kind != c.kind || f.Charge != c.charge {
			t.Errorf("%s: %+v", name, f)
		}
		if name == "negative usage" && f.Metered != model.Unmetered() {
			t.Errorf("a call that gives tokens back: %+v", f)
		}
	}
}

// Whatever a provider writes: no panic, an answer that has ended or a failure.
func FuzzStream(f *testing.F) {
	f.Add(delta(f, piece{"content": "hi"}, "stop"), true)
	f.Add(delta(f, call(0, "a", "f", "{"), "tool_calls"), true)
	f.Add(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"x"}}`, false)
	f.Add(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":-1}}`, false)
	f.Fuzz(func(t *testing.T, line string, isOpenAI bool) {
		kind := "anthropic"
		if isOpenAI {
			kind = "openai"
		}
		answer := roundTrip(func(*http.Request) (*http.Response, error) {
			body := "event: content_block_delta\ndata: " + line +
				"\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
			header := http.Header{"Content-Type": {"text/event-stream"}}
			return &http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(strings.NewReader(body))}, nil
		})
		got, err := New(Options{Transport: answer}).Complete(t.Context(), model.Target{
			Kind:    kind,
			BaseURL: "http://127.0.0.1", Model: "m",
		}, ask("x"))
		var failure *model.Failure
		if err == nil && got.FinishReason == "" || err != nil && !errors.As(err, &failure) {
			t.Errorf("%q: %+v, %v", line, got, err)
		}
		if got.Metered.In < -1 || got.Metered.Out < -1 {
			t.Errorf("%q: %+v", line, got.Metered)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What no reader takes is no piece of an answer, though what is known of it is
// right. Control: the good one is taken.
func TestNoAnswerIsReadTwoWays(t *testing.T) {
	for around, take := range map[string]func(g *progress, text []byte) error{
		`{"more":%s,"choices":[{"index":0,"delta":{"content":"x"}}]}`:            (*progress).openaiChunk,
		`{"type":"message_start","message":{"usage":{"input_tokens":1}},"x":%s}`: (*progress).anthropicEvent,
	} {
		bad, good := jsontest.Documents(around)
		if err := take(&progress{}, []byte(good)); err != nil {
			t.Errorf("control: %s: %v", good, err)
		}
		for name, text := range bad {
			if take(&progress{}, []byte(text)) == nil {
				t.Errorf("%s is taken: %.80s", name, text)
			}
		}
	}
}
