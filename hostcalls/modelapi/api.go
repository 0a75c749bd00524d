// Package modelapi answers programs in the protocols of models' providers, OpenAI's
// (chat completions, responses, embeddings) and Anthropic's (messages), over what
// answers model_complete and model_embed: the same decision, record, budget, rates and
// masking. Whatever key a program sends is looked at by nobody.
//
// A field that asks for what those calls have no word for is refused by its path.
// Left out is only what a list here names: what marks a request for the provider's own
// use, what asks for more or less effort, and tools that the provider itself would run.
package modelapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/lend"
	"runloop.dev/rlp/hostcalls/routes"
	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/effect/model"
)

// MaxBody bounds a request, in bytes.
const MaxBody = 16 << 20

// An Asker asks models; [hostcalls.ProgramHost] does. Errors are a [*hostcalls.Refusal].
type Asker interface {
	Complete(ctx context.Context, text string, emit func(model.Piece)) (*model.Answer, error)
	Embed(ctx context.Context, text string) (*model.Embeddings, error)
}

// A Handler answers the requests of one run to model.rlp.
type Handler struct {
	Asker Asker
	Now   func() time.Time

	bodies lend.Room
}

// maxBodies is what the bodies of all requests of a run under way hold, in bytes.
const maxBodies = 4 * MaxBody

// A protocol is what the ways to ask for a completion differ in.
type protocol struct {
	read   func(body []byte) (*question, error)
	whole  func(q *question, a *model.Answer) (any, error)
	stream func(q *question, out *events) writer
	fail   func(status int, f failure) any
}

// A writer makes an answer of parts, in the events of a protocol.
type writer interface {
	begin()
	piece(p model.Piece)
	end(a *model.Answer)
	failed(status int, f failure)
}

// A question is a request as model_complete takes it, and what of it is about the
// answer's form alone.
type question struct {
	guest  map[string]any // the request
	stream bool
	usage  bool            // a last part tells of the cost
	one    bool            // one tool call at most
	texts  map[string]bool // tools that take a text and no object
	id     string
	at     int64 // seconds since 1970
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protocols := map[string]*protocol{
		"/v1/chat/completions": chat(), "/v1/responses": responses(), "/v1/messages": messages(),
	}
	p := protocols[r.URL.Path]
	switch {
	case r.URL.Path == "/v1/embeddings":
		p = &protocol{fail: openaiError}
	case p == nil:
		tell(w, http.StatusNotFound, openaiError(http.StatusNotFound, failure{"", "there is chat/completions, responses, " +
			"embeddings and messages under /v1"}))
		return
	}
	if r.Method != http.MethodPost {
		tell(w, http.StatusMethodNotAllowed, p.fail(http.StatusMethodNotAllowed, failure{"", "ask by POST"}))
		return
	}
	text, free, err := h.bodies.Read(r.Body, MaxBody, maxBodies)
	defer free()
	body := []byte(text)
	if err != nil {
		status := http.StatusRequestEntityTooLarge
		if errors.Is(err, lend.ErrFull) {
			status = http.StatusServiceUnavailable
		}
		tell(w, status, p.fail(status, failure{"", err.Error() + "; one is at most 16 MiB"}))
		return
	}
	if p.read == nil {
		h.embed(w, r, body)
		return
	}
	h.complete(w, r, p, body)
}

func (h *Handler) complete(w http.ResponseWriter, r *http.Request, p *protocol, body []byte) {
	q, err := p.read(body)
	var text []byte
	if err == nil {
		q.id, q.at = id(), h.Now().Unix()
		q.guest["timeout_ms"] = model.MaxTimeout.Milliseconds()
		text, err = json.Marshal(q.guest)
	}
	if err != nil {
		tell(w, http.StatusBadRequest, p.fail(http.StatusBadRequest, failure{"invalid_request", err.Error()}))
		return
	}
	if q.stream {
		h.parts(w, r, p, q, string(text))
		return
	}
	a, err := h.Asker.Complete(r.Context(), string(text), nil)
	var whole any
	if err == nil {
		whole, err = p.whole(q, q.cut(a))
	}
	if err != nil {
		status, f := h.refused(w, err)
		tell(w, status, p.fail(status, f))
		return
	}
	tell(w, http.StatusOK, whole)
}

// parts answers by events. Until the first part has come it is an answer like others.
func (h *Handler) parts(w http.ResponseWriter, r *http.Request, p *protocol, q *question, text string) {
	out := &events{w: w}
	form := p.stream(q, out)
	begin := func() {
		if !out.began {
			out.begin()
			form.begin()
		}
	}
	a, err := h.Asker.Complete(r.Context(), text, func(piece model.Piece) {
		if q.one && piece.IsCall && piece.Call > 0 {
			return
		}
		begin()
		form.piece(piece)
	})
	switch {
	case err == nil:
		begin()
		form.end(q.cut(a))
	case out.began:
		form.failed(h.refused(w, err))
	default:
		status, f := h.refused(w, err)
		tell(w, status, p.fail(status, f))
	}
}

// cut is a with as many tool calls as q takes.
func (q *question) cut(a *model.Answer) *model.Answer {
	if !q.one || len(a.ToolCalls) < 2 {
		return a
	}
	less := *a
	less.ToolCalls = a.ToolCalls[:1]
	return &less
}

// A failure is why there is no answer: a word of the log, and a sentence.
type failure struct{ reason, message string }

// refused is err as a status and words. Official clients ask again for most of
// them, which is told to them only where it costs nothing and may help.
func (h *Handler) refused(w http.ResponseWriter, err error) (int, failure) {
	var no *hostcalls.Refusal
	f := failure{"io", err.Error()} // of the answer's form: what could not be asked is a Refusal
	status := http.StatusBadGateway
	if errors.As(err, &no) {
		var said struct {
			Reason string `json:"reason"`
			Hint   string `json:"hint"`
		}
		if strictjson.Unmarshal(no.Said, &said, strictjson.UnknownFields) == nil {
			f = failure{said.Reason, said.Hint}
		}
		status = routes.Status(no.Number)
	}
	again := false
	var of *model.Failure
	if errors.As(err, &of) {
		again = of.Charge == model.ChargeNothing && (of.Kind == model.RateLimited || of.Kind == model.Unavailable) &&
			of.RetryAfter <= longestWait
		switch {
		case of.Kind == model.Unavailable && of.Status == statusOverloaded:
			status = statusOverloaded
		case of.Kind == model.Unavailable:
			status = http.StatusServiceUnavailable
		}
		if of.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.FormatInt(int64((of.RetryAfter+time.Second-1)/time.Second), 10))
			w.Header().Set("Retry-After-Ms", strconv.FormatInt(of.RetryAfter.Milliseconds(), 10))
		}
	}
	w.Header().Set("X-Should-Retry", strconv.FormatBool(again))
	return status, f
}

// longestWait is how long a client should wait before it asks again: some wait for
// as long as they are told, without a word.
const longestWait = time.Minute

// statusOverloaded is Anthropic's own.
const statusOverloaded = 529

// tell writes one JSON document.
func tell(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
