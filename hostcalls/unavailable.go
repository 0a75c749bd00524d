package hostcalls

import (
	"context"
	"encoding/json"
	"fmt"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
)

// The families below are checked and recorded like any other, and then answer
// notsup: this version has no component that would do them.

type asked struct {
	req    caps.Request
	target string
}

func unavailable(name string, args int, f caps.Family, decode func(in []string) (asked, error)) def {
	return define(name, args, f, gated[asked]{
		decode:  decode,
		touches: func(r asked) (caps.Request, string) { return r.req, r.target },
		budget:  func(*Host, asked) (caps.Code, bool) { return caps.Unavailable, true },
		do: func(context.Context, *Host, gate.Permit, asked) ([]byte, error) {
			return nil, errUnavailable
		},
	})
}

var mcpCall = unavailable("mcp_call", 1, caps.MCP, decodeMCP)

func decodeJSON(text string, into any) error {
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("the request is not the JSON object that this call takes: %w", err)
	}
	return nil
}

func decodeMCP(in []string) (asked, error) {
	var r struct {
		Server string `json:"server"`
	}
	if err := decodeJSON(in[0], &r); err != nil {
		return asked{}, err
	}
	return named(caps.MCP, r.Server)
}

func named(f caps.Family, name string) (asked, error) {
	if name == "" {
		return asked{}, fmt.Errorf("%s: no name given", f.String())
	}
	if err := checkText(name); err != nil {
		return asked{}, err
	}
	return asked{caps.Request{Family: f, Name: name}, name}, nil
}
