package modelapi

import (
	"fmt"

	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/effect/model"
)

func wholeResponse(q *question, a *model.Answer) (any, error) {
	output := []object{}
	if a.Text != "" || len(a.ToolCalls) == 0 {
		output = append(output, q.message(a.Text, "completed"))
	}
	for i, c := range a.ToolCalls {
		output = append(output, q.called(i, c.ID, c.Function.Name, c.Function.Arguments, "completed"))
	}
	return q.response(a, output), nil
}

// response is a response as it is at some moment; a is nil before it is complete.
func (q *question) response(a *model.Answer, output []object) object {
	r := object{
		"id": "resp_" + q.id, "object": "response", "created_at": q.at, "status": "in_progress", "error": nil,
		"incomplete_details": nil, "instructions": nil, "metadata": object{}, "model": q.guest["model"], "output": output,
		"parallel_tool_calls": !q.one, "temperature": q.guest["temperature"], "top_p": q.guest["top_p"],
		"tool_choice": "auto", "tools": []any{}, "store": false, "usage": nil, "previous_response_id": nil,
	}
	if a == nil {
		return r
	}
	r["status"], r["model"] = "completed", a.Model
	switch a.FinishReason {
	case "length":
		r["status"], r["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
	case "content_filter":
		r["status"], r["incomplete_details"] = "incomplete", object{"reason": "content_filter"}
	}
	u := a.Usage
	r["usage"] = object{
		"input_tokens": u.TokensIn, "output_tokens": u.TokensOut, "total_tokens": u.TokensIn + u.TokensOut,
		"input_tokens_details": object{"cached_tokens": 0}, "output_tokens_details": object{"reasoning_tokens": 0},
	}
	return r
}

func (q *question) message(said, status string) object {
	return object{
		"id": "msg_" + q.id, "type": "message", "role": "assistant", "status": status,
		"content": []object{outputText(said)},
	}
}

func outputText(said string) object {
	return object{"type": "output_text", "text": said, "annotations": []any{}, "logprobs": []any{}}
}

// called is the item of a call, by what the program's tool takes.
func (q *question) called(i int, callID, name, arguments, status string) object {
	item := object{"type": "function_call", "id": fmt.Sprintf("fc_%s_%d", q.id, i), "call_id": callID, "name": name}
	item["status"] = status
	if !q.texts[name] {
		item["arguments"] = arguments
		return item
	}
	item["type"], item["id"] = "custom_tool_call", fmt.Sprintf("ctc_%s_%d", q.id, i)
	item["input"] = inputOf(arguments)
	return item
}

// inputOf is the text that a model calls a tool with.
func inputOf(arguments string) string {
	var of struct {
		Input string `json:"input"`
	}
	if strictjson.Unmarshal([]byte(arguments), &of, strictjson.UnknownFields) != nil {
		return arguments
	}
	return of.Input
}

// A responseWriter writes the events of a response: an item begins, grows, is done.
type responseWriter struct {
	q      *question
	out    *events
	n      int      // events
	output []object // items that are done
	open   bool     // the last item is not
	call   model.Piece
	said   []byte // of the open item
}

func newResponseWriter(q *question, out *events) writer { return &responseWriter{q: q, out: out} }

func (r *responseWriter) send(kind string, event object) {
	event["type"], event["sequence_number"] = kind, r.n
	r.n++
	r.out.send(kind, event)
}

func (r *responseWriter) begin() {
	for _, kind := range []string{"response.created", "response.in_progress"} {
		r.send(kind, object{"response": r.q.response(nil, []object{})})
	}
}

func (r *responseWriter) piece(p model.Piece) {
	if r.open && (p.IsCall != r.call.IsCall || p.Call != r.call.Call) {
		r.done()
	}
	if !r.open {
		r.add(p)
	}
	part := p.Text + p.Arguments
	r.said = append(r.said, part...)
	at := len(r.output)
	switch {
	case part == "":
	case !p.IsCall:
		r.send("response.output_text.delta", r.inText(object{"delta": part, "logprobs": []any{}}))
	case !r.q.texts[r.call.Name]: // of a text the end tells, since it comes within JSON
		r.send("response.function_call_arguments.delta", object{"item_id": r.item("")["id"], "output_index": at, "delta": part})
	}
}

// add begins an item.
func (r *responseWriter) add(p model.Piece) {
	r.open, r.call, r.said = true, p, nil
	item := r.item("in_progress")
	if !p.IsCall {
		item["content"] = []object{}
	}
	r.send("response.output_item.added", object{"output_index": len(r.output), "item": item})
	if !p.IsCall {
		r.send("response.content_part.added", r.inText(object{"part": outputText("")}))
	}
}

// item is the open item as it is.
func (r *responseWriter) item(status string) object {
	if r.call.IsCall {
		return r.q.called(r.call.Call, r.call.ID, r.call.Name, string(r.said), status)
	}
	return r.q.message(string(r.said), status)
}

func (r *responseWriter) inText(event object) object {
	event["item_id"], event["output_index"], event["content_index"] = "msg_"+r.q.id, len(r.output), 0
	return event
}

// done ends the open item.
func (r *responseWriter) done() {
	item := r.item("completed")
	at := object{"item_id": item["id"], "output_index": len(r.output)}
	switch {
	case !r.call.IsCall:
		r.send("response.output_text.done", r.inText(object{"text": string(r.said), "logprobs": []any{}}))
		r.send("response.content_part.done", r.inText(object{"part": outputText(string(r.said))}))
	case r.q.texts[r.call.Name]:
		at["input"] = item["input"]
		r.send("response.custom_tool_call_input.done", at)
	default:
		at["arguments"], at["name"] = string(r.said), r.call.Name
		r.send("response.function_call_arguments.done", at)
	}
	r.send("response.output_item.done", object{"output_index": len(r.output), "item": item})
	r.output, r.open = append(r.output, item), false
}

func (r *responseWriter) end(a *model.Answer) {
	if r.open {
		r.done()
	}
	if r.output == nil {
		r.output = []object{}
	}
	whole := r.q.response(a, r.output)
	kind := "response.completed"
	if whole["status"] == "incomplete" {
		kind = "response.incomplete"
	}
	r.send(kind, object{"response": whole})
}

func (r *responseWriter) failed(status int, f failure) {
	whole := r.q.response(nil, r.output)
	whole["status"] = "failed"
	whole["error"] = object{"code": f.reason, "message": f.message}
	if status == statusOverloaded {
		whole["error"] = object{"code": "server_is_overloaded", "message": f.message}
	}
	r.send("response.failed", object{"response": whole})
}
