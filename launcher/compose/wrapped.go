package compose

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/effect/mcpclient"
	"runloop.dev/rlp/launcher/run"
)

// A Wrapped is a server as its client is given it: each question is a host call of its
// run. A [*hostcalls.Answer] is why one is refused; any other error ends the session.
type Wrapped struct {
	name   string
	calls  *run.Calls
	offers func() []mcpclient.Tool // what the server said of itself when it was last asked
}

// Offers are what a client is shown of a server: what the layers leave of it.
type Offers struct {
	Tools        []hostcalls.MCPTool
	Instructions string // the server's own words, "" if it has none
	// Documents of the protocol; nil where the layers leave no way to ask for them.
	Prompts, Resources, Templates []json.RawMessage
}

// Offers asks the server, and whether it is who it was.
func (w *Wrapped) Offers(ctx context.Context) (*Offers, error) {
	out, err := w.ask(ctx, "", nil)
	if err != nil {
		return nil, err
	}
	var said struct {
		Tools []hostcalls.MCPTool `json:"tools"`
	}
	if err := strictjson.Unmarshal(out, &said, strictjson.Enclosing); err != nil {
		return nil, err
	}
	list := w.offers()
	o := &Offers{}
	for _, t := range mcpclient.Of(list, mcpclient.Instructions) {
		if o.Instructions, err = strictjson.Text(t); err != nil {
			return nil, err
		}
	}
	for _, t := range said.Tools {
		switch t.Name {
		case mcpclient.GetPrompt:
			o.Prompts = mcpclient.Of(list, mcpclient.Prompt)
		case mcpclient.ReadResource:
			o.Resources, o.Templates = mcpclient.Of(list, mcpclient.Resource), mcpclient.Of(list, mcpclient.Template)
		default:
			o.Tools = append(o.Tools, t)
		}
	}
	return o, nil
}

// Call has the server call a tool.
func (w *Wrapped) Call(ctx context.Context, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	if slices.Contains(methods[:], tool) { // which no client calls as a tool
		tool += " "
	}
	return w.ask(ctx, tool, arguments)
}

// Get asks the server for a prompt or a resource, by the method of the protocol.
func (w *Wrapped) Get(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return w.ask(ctx, method, params)
}

func (w *Wrapped) ask(ctx context.Context, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	if len(arguments) == 0 {
		arguments = json.RawMessage(`{}`)
	}
	asked := map[string]any{"server": w.name, "arguments": arguments}
	if tool != "" {
		asked["tool"] = tool
	}
	req, err := json.Marshal(asked)
	if err != nil {
		return nil, errors.New("the arguments are no JSON")
	}
	if err := w.calls.Reload(); err != nil {
		return nil, err
	}
	return w.calls.Call(ctx, "mcp_call", string(req))
}

var methods = [...]string{mcpclient.GetPrompt, mcpclient.ReadResource}
