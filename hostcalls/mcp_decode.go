package hostcalls

import (
	"encoding/json"
	"errors"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/base/strictjson"
)

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
