package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"runloop.dev/rlp/internal/base/strictjson"
)

// A modelServer speaks the chat protocol that most model servers speak, whole
// and streamed. It has no model: it answers with a letter made of the prompt.
type modelServer struct{ key string }

type chatRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

// ServeHTTP answers a request.
func (s *modelServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions":
		reply(w, http.StatusNotFound, chatError("POST /v1/chat/completions"))
		return
	case r.Header.Get("Authorization") != "Bearer "+s.key:
		reply(w, http.StatusUnauthorized, chatError("the key is not known"))
		return
	}
	var q chatRequest
	if err := strictjson.Decode(r.Body, 1<<20, &q, strictjson.UnknownFields); err != nil || len(q.Messages) == 0 {
		reply(w, http.StatusBadRequest, chatError(fmt.Sprintf("not a chat request (%v)", err)))
		return
	}
	prompt := textOf(q.Messages[len(q.Messages)-1].Content)
	text := letter(prompt)
	usage := map[string]int{
		"prompt_tokens": len(strings.Fields(prompt)), "completion_tokens": len(strings.Fields(text)),
		"total_tokens": len(strings.Fields(prompt)) + len(strings.Fields(text)),
	}
	if q.Stream {
		stream(w, q.Model, text, usage)
		return
	}
	reply(w, http.StatusOK, map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": q.Model, "usage": usage,
		"choices": []any{map[string]any{
			"index": 0, "finish_reason": "stop", "message": map[string]string{"role": "assistant", "content": text},
		}},
	})
}

func chatError(text string) map[string]any {
	return map[string]any{"error": map[string]string{"message": text, "type": "invalid_request_error"}}
}

// textOf is a message's text, given as a string or in parts.
func textOf(raw json.RawMessage) string {
	text, err := strictjson.Text(raw)
	if err == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = strictjson.Unmarshal(raw, &parts, strictjson.UnknownFields) // neither: no text
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// letter is what a model would write, were there one.
func letter(prompt string) string {
	about, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	if len(about) > 200 {
		about = about[:200]
	}
	return "Hello,\n\nthis is about what you asked me for: " + strings.ToValidUTF8(about, "") +
		"\n\nKind regards,\nthe demo's model"
}

// stream sends text in pieces, the usage and the end.
func stream(w http.ResponseWriter, model, text string, usage map[string]int) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(choices []any, usage map[string]int) {
		chunk := map[string]any{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model,
			"choices": choices,
		}
		if usage != nil {
			chunk["usage"] = usage
		}
		data, err := json.Marshal(chunk)
		if err != nil {
			return
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
	piece := func(delta map[string]string, finish any) []any {
		return []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}
	}
	for word := range strings.SplitAfterSeq(text, " ") {
		send(piece(map[string]string{"role": "assistant", "content": word}, nil), nil)
	}
	send(piece(map[string]string{}, "stop"), nil)
	send([]any{}, usage)
	fmt.Fprint(w, "data: [DONE]\n\n")
}
