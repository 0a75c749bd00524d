// Package hostmcp offers programs what guests import: the knowledge base, agents, the
// log, the result and the time, as tools of MCP over streamable HTTP. A call of a tool
// is a call of the import: the same decision, record, limits, masking and marks of
// untrusted content.
package hostmcp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/lend"
	"runloop.dev/rlp/internal/base/guard"
	"runloop.dev/rlp/internal/base/strictjson"
)

// MaxBody bounds a message, in bytes: the largest value, each byte of it escaped.
const MaxBody = 8 << 20

// maxBodies is what the messages of all requests of a run under way hold, in bytes.
const maxBodies = 4 * MaxBody

// A Caller makes the host calls of a run, as an engine would for its guest. An error
// that is a [*hostcalls.Answer] is what a guest would be told; any other is the host's.
type Caller interface {
	Call(ctx context.Context, name string, args ...string) ([]byte, error)
}

// A Handler answers the requests of one run to http://host.rlp/mcp. Each stands for
// itself: there are no sessions.
type Handler struct {
	caller Caller
	sdk    *mcp.StreamableHTTPHandler
	turn   chan struct{} // an element is a launch under way: a run has one at a time
	bodies lend.Room
}

// New makes one of a run whose host calls c makes.
func New(c Caller) *Handler {
	h := &Handler{caller: c, turn: make(chan struct{}, 1)}
	me := mcp.Implementation{Name: "rlp-host", Title: "rlp, the host of this run", Version: hostcalls.ImportModule}
	s := mcp.NewServer(&me, &mcp.ServerOptions{
		Instructions: "Each call is decided by the policy of this run, and recorded. A call that is refused says what " +
			"would have to change; asking again changes nothing.",
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	for _, t := range tools() {
		s.AddTool(&mcp.Tool{Name: t.name, Description: t.does, InputSchema: t.schema()}, h.answers(t))
	}
	h.sdk = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: MaxBody,
		DisableLocalhostProtection: true, // what connects is the run's program
	})
	return h
}

// A request is one of HTTP: what it asked for ends with it.
type request struct {
	ctx   context.Context
	calls sync.WaitGroup
}

type requestKey struct{}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/mcp" {
		http.Error(w, "there is /mcp alone", http.StatusNotFound)
		return
	}
	text, free, err := h.bodies.Read(r.Body, MaxBody, maxBodies)
	defer free()
	switch {
	case errors.Is(err, lend.ErrLong):
		http.Error(w, "a message is at most 8 MiB", http.StatusRequestEntityTooLarge)
		return
	case errors.Is(err, lend.ErrFull):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	case err != nil:
		http.Error(w, "the message did not come whole", http.StatusBadRequest)
		return
	}
	if text != "" {
		if err := strictjson.Read(text, func(d *strictjson.Reader) error { return d.Any() }); err != nil {
			http.Error(w, "the message: "+err.Error(), http.StatusBadRequest)
			return
		}
	}
	ctx, cancel := context.WithCancel(r.Context())
	q := &request{ctx: ctx}
	defer q.calls.Wait()
	defer cancel()
	r = r.WithContext(context.WithValue(ctx, requestKey{}, q))
	r.Body = io.NopCloser(strings.NewReader(text))
	h.sdk.ServeHTTP(w, r)
}

// answers is what answers the calls of a tool.
func (h *Handler) answers(t tool) mcp.ToolHandler {
	return func(ctx context.Context, asked *mcp.CallToolRequest) (result *mcp.CallToolResult, err error) {
		q, ok := ctx.Value(requestKey{}).(*request)
		if !ok {
			return nil, errors.New("a call outside of a request")
		}
		q.calls.Add(1)
		defer q.calls.Done()
		err = guard.Call(func() (err error) { // the SDK guards no goroutine
			result, err = h.answer(q.ctx, t, string(asked.Params.Arguments))
			return err
		})
		var broken *guard.Broken
		if errors.As(err, &broken) {
			return nil, errors.New("rlp broke while it answered")
		}
		return result, err
	}
}

// answer calls the import of t by what a client wrote.
func (h *Handler) answer(ctx context.Context, t tool, arguments string) (*mcp.CallToolResult, error) {
	args, encoding, err := t.read(arguments)
	if err != nil {
		return said(told(&hostcalls.Answer{
			Errno: hostcalls.Inval.String(), Reason: caps.InvalidRequest.String(), Hint: err.Error(),
		}), true), nil
	}
	if t.name == launchName {
		select {
		case h.turn <- struct{}{}:
			defer func() { <-h.turn }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	resp, err := h.caller.Call(ctx, t.name, args...)
	var no *hostcalls.Answer
	if errors.As(err, &no) {
		return said(told(no), true), nil
	}
	if err != nil {
		return nil, errors.New("the host could not do it; its log says why")
	}
	if text, is := encoded(resp, encoding); is {
		result := said(text, false)
		result.StructuredContent = map[string]string{"encoding": base64Word}
		return result, nil
	}
	return said(string(resp), false), nil
}

func said(text string, failed bool) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: failed}
}
