package hostcalls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/base/strictjson"
)

// ErrServerChanged is a server whose tools are not those that it was pinned with.
var ErrServerChanged = errors.New("the server's tools are not those that it is known by")

// An MCPError is an error in a server's own words.
type MCPError struct{ Text string }

func (e *MCPError) Error() string { return "the server answers with an error: " + e.Text }

const mcpCallName = "mcp_call"

var mcpCall = attachedFirst(define(mcpCallName, 1, caps.MCP, gated[mcpReq]{
	decode:  decodeMCP,
	prepare: prepareMCP,
	touches: func(r mcpReq) (caps.Request, string) { return r.request(), r.target() },
	payload: func(r mcpReq) [][]byte { return [][]byte{r.arguments} },
	budget: func(h *Host, r mcpReq) (caps.Code, bool) {
		if r.tool != "" && h.over(caps.MCPMaxRequestBytes, int64(len(r.arguments))) {
			return caps.BudgetExhausted, true
		}
		return caps.Unavailable, h.cfg.MCP == nil
	},
	confirm: func(h *Host, r mcpReq) (Question, bool) {
		return Question{Tool: mcpScope(&r), Target: r.target(), Arguments: string(r.arguments)}, h.cfg.ConfirmExternal &&
			r.tool != ""
	},
	done: true,
	do: func(ctx context.Context, h *Host, _ gate.Permit, r mcpReq) ([]byte, error) {
		c := serverCall{&r, h}
		offers, err := c.offers(ctx)
		if err != nil {
			return nil, err
		}
		if r.tool == "" {
			return c.list(offers)
		}
		return c.send(ctx)
	},
}))

// prepareMCP finds the server, and the operation that the call is judged as: that
// of the tool. A layer that takes the host call itself takes every tool.
func prepareMCP(_ context.Context, h *Host, op *gate.Op, r *mcpReq) (*gate.Op, error) {
	r.op = op
	set := h.cfg.Gate.Set()
	itself := caps.Request{Family: caps.Tool, Name: "mcp:" + mcpCallName}
	if h.cfg.MCP == nil || !set.Check(r.request()).Allow || !set.Check(itself).Allow {
		return op, nil // it is refused as it is
	}
	if r.on = h.cfg.MCP.Server(r.server); r.on == nil {
		return op, serverCall{r, h}.refuse(caps.Unavailable, "config.toml has no [mcp.servers."+r.server+
			"]; the operator says there how the server is reached")
	}
	if r.tool == "" {
		return op, nil
	}
	asked, err := serverCall{r, h}.toolOp(op)
	r.op = asked
	return asked, err
}

// A serverCall is a request to a server of tools in a run.
type serverCall struct {
	*mcpReq
	h *Host
}

// refuseMCP records why r is refused, though the policy allows it.
func (r serverCall) refuse(own caps.Code, why string) error {
	return r.h.cfg.refuse(r.op, r.request(), r.target(), own, why)
}

// maxToolOps bounds how many tools of servers one run has records of by name.
const maxToolOps = 4096

// toolOp is op as the tool of a server that r names.
func (r serverCall) toolOp(op *gate.Op) (*gate.Op, error) {
	scope := mcpScope(r.mcpReq)
	if known := r.h.mcpOps[scope]; known != nil {
		return known, nil
	}
	if len(r.h.mcpOps) >= maxToolOps {
		return nil, r.refuse(caps.ToolHidden, "the run has asked for too many tools that there are not")
	}
	made, err := r.h.cfg.Gate.ToolOp(op, scope, scope)
	if err != nil {
		return nil, fmt.Errorf("naming %s: %w", scope, err)
	}
	if r.h.mcpOps == nil {
		r.h.mcpOps = map[string]*gate.Op{}
	}
	r.h.mcpOps[strings.Clone(scope)] = made
	return made, nil
}

// offers are the tools of the server, if it is who it was and has the tool that
// is asked for.
func (r serverCall) offers(ctx context.Context) ([]MCPTool, error) {
	said, err := aside(r.h, func() (MCPTools, error) { return r.on.Tools(ctx) })
	switch {
	case errors.Is(err, ErrServerChanged):
		return nil, r.refuse(caps.ServerChanged,
			"what the server says of its tools is not what it was pinned with; the operator sees the difference and accepts "+
				"it by rlp mcp accept "+r.server)
	case err != nil:
		return nil, r.failed(err)
	}
	if said.Pinned != "" {
		if err := r.pinned(said); err != nil {
			return nil, err
		}
	}
	if r.tool != "" && !slices.ContainsFunc(said.List, func(t MCPTool) bool { return t.Name == r.tool }) {
		return nil, r.refuse(caps.ToolHidden,
			"the server has no such tool; a call without a tool lists those that there are")
	}
	return said.List, nil
}

// pinned tells the operator, and the log, what a server is known by from now on.
func (r serverCall) pinned(said MCPTools) error {
	r.h.cfg.warn(fmt.Errorf("the server %s is known by its %d tools from now on: %s", r.server, len(said.List), said.Pinned))
	return r.h.cfg.Gate.Note(gate.Note{
		Cap: "mcp.call", Op: mcpCallName, Target: r.server + " " + said.Pinned, Code: caps.Granted, Allow: true, Always: true,
	})
}

// listTools are the tools that the run sees: those that it may call.
func (r serverCall) list(offers []MCPTool) ([]byte, error) {
	set := r.h.cfg.Gate.Set()
	visible := []MCPTool{}
	for _, t := range offers {
		scope, known := caps.ToolScope("mcp:" + r.server + "/" + t.Name)
		if known && set.Check(caps.Request{Family: caps.Tool, Name: scope}).Allow {
			visible = append(visible, t)
		}
	}
	text, err := toolList(visible)
	if err == nil {
		err = r.h.takeIn(caps.MCP, r.target())
	}
	return text, err
}

// callTool has the tool called. Whatever it says marks the run first.
func (r serverCall) send(ctx context.Context) ([]byte, error) {
	result, err := aside(r.h, func() (json.RawMessage, error) { return r.on.Call(ctx, r.tool, r.arguments) })
	if err != nil {
		return nil, r.failed(err)
	}
	return result, r.h.takeIn(caps.MCP, r.target())
}

// An mcpFailure is an error of a server: the guest may read it in the server's
// words, records show that there was one.
type mcpFailure struct{ fail *Fail }

func (f *mcpFailure) Error() string { return "the server answers with an error" }
func (f *mcpFailure) Unwrap() error { return f.fail }

// mcpError marks the run when an error has a server's words in it: they are
// content like any other.
func (r serverCall) failed(err error) error {
	var said *MCPError
	if !errors.As(err, &said) {
		return err
	}
	if err := r.h.takeIn(caps.MCP, r.target()); err != nil {
		return err
	}
	return &mcpFailure{&Fail{Errno: IO, Hint: r.h.scrubText(said.Error())}}
}

// An mcpReq asks a server for a tool, or, without one, for what it has.
type mcpReq struct {
	server, tool string
	arguments    json.RawMessage
	op           *gate.Op  // as which the call is judged
	on           MCPServer // which that is
}

func (r mcpReq) request() caps.Request { return caps.Request{Family: caps.MCP, Name: r.server} }

// target is what records show: the server, or the server and its tool.
func (r mcpReq) target() string {
	if r.tool == "" {
		return r.server
	}
	return r.server + "/" + r.tool
}

func decodeMCP(in []string) (mcpReq, error) {
	r := mcpReq{arguments: json.RawMessage("{}")}
	if err := readObject(in[0], r.field); err != nil {
		return r, err
	}
	if r.server == "" {
		return r, errors.New("server: no name given")
	}
	if _, known := caps.ToolScope(mcpScope(&r)); r.tool != "" && !known {
		return r, errors.New("tool: no name of a tool: letters, digits, - _ . and /")
	}
	return r, checkText(r.server)
}

// field reads the value of one key of the request.
func (r *mcpReq) field(d *strictjson.Reader, key string) (err error) {
	switch key {
	case "server":
		r.server, err = d.Text()
	case "tool":
		r.tool, err = d.Text()
	case "arguments":
		if d.Null() {
			return nil
		}
		if d.Kind() != '{' {
			return errors.New("an object is wanted")
		}
		var raw string
		raw, err = d.Raw()
		r.arguments = json.RawMessage(raw)
	default:
		err = unknownKey("server, tool and arguments")
	}
	return err
}

// mcpScope is the scope of a server's tool on the axis of tools.
func mcpScope(r *mcpReq) string { return "mcp:" + r.server + "/" + r.tool }
