package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/base/guard"
	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// A Front is what a client sees of a server of tools that rlp stands in front of:
// what the layers leave of it, each call a call of the session's run.
type Front struct {
	Name      string // of the server
	Version   string // of this program
	Approvers []string
	In        io.ReadCloser
	Out       io.WriteCloser

	behind  *compose.Wrapped
	sdk     *mcp.Server
	conn    atomic.Pointer[connection]
	session atomic.Pointer[mcp.ServerSession]
	turns   chan struct{}
	calls   sync.WaitGroup
	cancel  context.CancelCauseFunc
	speaks  atomic.Value
}

// Serve speaks with the client until it is at its end. A server that cannot be
// reached, or that the policy takes whole, is the end; one that says something else
// of itself than it is known by is served without tools, so that its client is told
// why.
func (f *Front) Serve(ctx context.Context, w *compose.Wrapped) error {
	f.behind, f.turns = w, make(chan struct{}, mostCalls)
	first, err := w.Offers(ctx)
	var no *hostcalls.Answer
	switch {
	case err == nil:
	case !errors.As(err, &no):
		return err
	case no.Reason != serverChanged:
		return unserved(no)
	}
	ctx, f.cancel = context.WithCancelCause(ctx)
	defer f.cancel(nil)
	f.sdk = mcp.NewServer(&mcp.Implementation{Name: "rlp/" + f.Name, Version: f.Version}, f.options(first, no))
	f.sdk.AddReceivingMiddleware(f.received)
	talk := conversation{
		sdk: f.sdk, ctx: ctx, spoken: f.spoken, end: func() { f.cancel(nil) }, leave: defaultLeave, through: f.through,
	}
	err = talk.speak(ctx, f.In, f.Out, func() {})
	why := context.Cause(ctx)
	f.cancel(nil)
	f.calls.Wait()
	if why != nil && !errors.Is(why, context.Canceled) {
		return why
	}
	if err != nil && ctx.Err() == nil {
		err = &run.Stopped{Outcome: run.Refused, Status: run.StatusInput, Message: "the client does not speak MCP: " + err.Error()}
	}
	return err
}

const serverChanged = "server_changed"

// unserved is the end of a session whose server cannot be asked.
func unserved(no *hostcalls.Answer) error {
	s := &run.Stopped{Outcome: run.Refused, Status: run.StatusUnavailable, Message: no.Error()}
	if no.Errno == hostcalls.Acces.String() {
		s.Status = run.StatusPolicy
	}
	return s
}

// options are what the client is told of the server when they begin to speak.
func (f *Front) options(o *compose.Offers, no *hostcalls.Answer) *mcp.ServerOptions {
	c := noticing()
	says := fmt.Sprintf("rlp stands in front of %s: calls that its policy does not allow are refused and say why; "+
		"asking again changes nothing.", f.Name)
	if no != nil {
		says = "Every call is refused now. " + no.Hint
		return &mcp.ServerOptions{Instructions: says, Capabilities: c}
	}
	if o.Instructions != "" {
		says = printable(o.Instructions) + "\n\n" + says
	}
	if o.Prompts != nil {
		c.Prompts = &mcp.PromptCapabilities{}
	}
	if o.Resources != nil || o.Templates != nil {
		c.Resources = &mcp.ResourceCapabilities{}
	}
	return &mcp.ServerOptions{Instructions: says, Capabilities: c}
}

func (f *Front) spoken() string {
	version, _ := f.speaks.Load().(string)
	return version
}

// received answers what is the server's itself, and leaves the rest of the
// protocol to the SDK. What breaks under a method is its answer.
func (f *Front) received(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		if ss, ok := req.GetSession().(*mcp.ServerSession); ok {
			f.session.Store(ss)
		}
		err = guard.Call(func() (err error) {
			if answer := f.answers(method); answer != nil {
				result, err = f.answered(ctx, req, answer)
			} else {
				result, err = next(ctx, method, req)
			}
			return err
		})
		var broken *guard.Broken
		if errors.As(err, &broken) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "rlp broke while it answered"}
		}
		if agreed, ok := result.(*mcp.InitializeResult); ok && err == nil {
			f.speaks.Store(agreed.ProtocolVersion)
		}
		return result, err
	}
}

type method = func(ctx context.Context, req mcp.Request) (mcp.Result, error)

// answers is what answers a method; nil: the SDK does.
func (f *Front) answers(name string) method {
	switch name {
	case "tools/list":
		return f.listTools
	case "tools/call":
		return f.callTool
	case "prompts/list", "resources/list", "resources/templates/list":
		return func(ctx context.Context, _ mcp.Request) (mcp.Result, error) { return f.list(ctx, name) }
	case "prompts/get", "resources/read":
		return func(ctx context.Context, req mcp.Request) (mcp.Result, error) { return f.get(ctx, name, req) }
	case "completion/complete", "resources/subscribe", "resources/unsubscribe":
		return func(context.Context, mcp.Request) (mcp.Result, error) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "rlp does not pass on " + name}
		}
	}
	return nil
}

// answered has one of so many questions at a time answered. An error of the run's
// ends the session.
func (f *Front) answered(ctx context.Context, req mcp.Request, do method) (mcp.Result, error) {
	select {
	case f.turns <- struct{}{}:
	default:
		return nil, &jsonrpc.Error{Code: codeForbidden, Message: fmt.Sprintf("%d calls are under way; wait for one", mostCalls)}
	}
	f.calls.Add(1)
	defer func() { <-f.turns; f.calls.Done() }()
	result, err := do(ctx, req)
	var no *hostcalls.Answer
	var wrong *jsonrpc.Error
	switch {
	case err == nil, errors.As(err, &wrong):
		return result, err
	case errors.As(err, &no):
		return nil, &jsonrpc.Error{Code: codeForbidden, Message: "rlp: " + short(printable(no.Error()), mostText)}
	}
	f.cancel(err)
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the session has ended"}
}

func (f *Front) offers(ctx context.Context) (*compose.Offers, error) {
	o, err := f.behind.Offers(ctx)
	var no *hostcalls.Answer
	if errors.As(err, &no) { // there is nothing to show, and a call says why
		f.notice(ctx, no, "")
		return &compose.Offers{}, nil
	}
	return o, err
}

// listTools shows names, descriptions and schemas, which are those that the server is known
// by; what a server claims of a tool beside these is not.
func (f *Front) listTools(ctx context.Context, _ mcp.Request) (mcp.Result, error) {
	o, err := f.offers(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]*mcp.Tool, 0, len(o.Tools))
	for _, t := range o.Tools {
		list = append(list, &mcp.Tool{
			Name: t.Name, Description: printable(t.Description), InputSchema: objectSchema(t.InputSchema),
		})
	}
	return &mcp.ListToolsResult{Tools: list, Cacheable: stale()}, nil
}

// stale is that of an answer which nobody keeps: what is offered depends on what
// the run has seen since.
func stale() mcp.Cacheable { return mcp.Cacheable{CacheScope: "private"} }

// objectSchema is a schema of arguments as clients take one.
func objectSchema(schema json.RawMessage) json.RawMessage {
	var of struct {
		Type json.RawMessage `json:"type"`
	}
	if strictjson.Unmarshal(schema, &of, ofProtocol) != nil || string(of.Type) != `"object"` {
		return json.RawMessage(`{"type":"object"}`)
	}
	return schema
}

func (f *Front) callTool(ctx context.Context, req mcp.Request) (mcp.Result, error) {
	p, ok := req.GetParams().(*mcp.CallToolParamsRaw)
	if !ok {
		return nil, wrongParams("params: the name of a tool is wanted")
	}
	out, err := f.behind.Call(ctx, p.Name, p.Arguments)
	var no *hostcalls.Answer
	if errors.As(err, &no) {
		f.notice(ctx, no, p.Name)
		return &mcp.CallToolResult{
			IsError: true,
			Content: []mcp.Content{text("rlp refused " + short(p.Name, mostLine) + ": " + short(no.Error(), mostText))},
			Meta:    mcp.Meta{"runloop.dev/reason": no.Reason, "runloop.dev/capability": printable(no.Capability)},
		}, nil
	}
	if err != nil {
		return nil, err
	}
	result := &mcp.CallToolResult{}
	if err := strictjson.Unmarshal(out, result, ofProtocol); err != nil {
		return nil, wrongAnswer()
	}
	return result, nil
}

func wrongAnswer() error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server's answer is not one of the protocol"}
}

func (f *Front) list(ctx context.Context, method string) (mcp.Result, error) {
	o, err := f.offers(ctx)
	if err != nil {
		return nil, err
	}
	switch method {
	case "prompts/list":
		list, err := typed[mcp.Prompt](o.Prompts)
		return &mcp.ListPromptsResult{Prompts: list, Cacheable: stale()}, err
	case "resources/list":
		list, err := typed[mcp.Resource](o.Resources)
		return &mcp.ListResourcesResult{Resources: list, Cacheable: stale()}, err
	}
	list, err := typed[mcp.ResourceTemplate](o.Templates)
	return &mcp.ListResourceTemplatesResult{ResourceTemplates: list, Cacheable: stale()}, err
}

func typed[T any](said []json.RawMessage) ([]*T, error) {
	list := make([]*T, len(said))
	for i, raw := range said {
		list[i] = new(T)
		if err := strictjson.Unmarshal(raw, list[i], ofProtocol); err != nil {
			return nil, wrongAnswer()
		}
	}
	return list, nil
}

func (f *Front) get(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
	params, err := json.Marshal(req.GetParams())
	if err != nil {
		return nil, wrongParams("params: " + method + " takes an object")
	}
	out, err := f.behind.Get(ctx, method, params)
	var no *hostcalls.Answer
	if errors.As(err, &no) {
		f.notice(ctx, no, method)
	}
	if err != nil {
		return nil, err
	}
	var result mcp.Result = &mcp.ReadResourceResult{}
	if method == "prompts/get" {
		result = &mcp.GetPromptResult{}
	}
	if strictjson.Unmarshal(out, result, ofProtocol) != nil {
		return nil, wrongAnswer()
	}
	return result, nil
}

// Confirm asks whoever is at the client, by elicitation. Only the word of a client
// that the operator named counts, and what the server asks never reaches the client,
// so that no question there is imitated.
func (f *Front) Confirm(ctx context.Context, q hostcalls.Question) (bool, string) {
	ss := f.session.Load()
	if ss == nil || ss.InitializeParams() == nil || ss.InitializeParams().ClientInfo == nil {
		return false, "nobody can be asked: the client did not say who it is"
	}
	client := ss.InitializeParams().ClientInfo.Name
	if !slices.Contains(f.Approvers, client) {
		return false, fmt.Sprintf("the client %q is not named in [approvals] approvers, so that its word does not count",
			short(oneLine(client), mostLine))
	}
	ctx, cancel := context.WithTimeout(ctx, mostAsked)
	defer cancel()
	answer, err := ss.Elicit(ctx, &mcp.ElicitParams{
		Message: short(fmt.Sprintf("rlp: %s is about to call %s with %s. Allow it this once?", f.Name, oneLine(q.Target),
			oneLine(q.Arguments)), mostText),
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{"allow":{"type":"boolean","title":"Allow this once"}},"required":["allow"]}`),
	})
	if err != nil {
		return false, "the client asks nobody"
	}
	if yes, _ := answer.Content["allow"].(bool); answer.Action == "accept" && yes {
		return true, "at the client " + short(oneLine(client), mostLine)
	}
	return false, "a person at the client said no"
}
