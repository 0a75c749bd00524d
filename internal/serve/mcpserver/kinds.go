package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/internal/base/strictjson"
)

// ofProtocol reads what the protocol may have more members for than are known here,
// and arguments of tools inside of it.
const ofProtocol = strictjson.UnknownFields | strictjson.Enclosing

// envelope holds a message to JSON that every reader takes alike, and to the members
// that a message of any method may have.
func envelope(raw []byte) error {
	var m struct {
		Version string          `json:"jsonrpc"`
		Method  string          `json:"method"`
		ID      json.RawMessage `json:"id"`
		Error   struct {
			Code    int64  `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	switch err := strictjson.Unmarshal(raw, &m, ofProtocol); {
	case err != nil:
		return err
	case string(raw) == "null":
		return errors.New("an object is wanted")
	case strings.ContainsAny(string(m.ID[:min(1, len(m.ID))]), "{[tf"):
		return errors.New("id: a text or a number is wanted")
	case m.Version != "2.0":
		return errors.New(`jsonrpc: must be "2.0"`)
	}
	return nil
}

// params holds the parameters of a message to what its method takes.
func params(raw []byte) error {
	var m struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if strictjson.Unmarshal(raw, &m, ofProtocol) != nil || m.Params == nil {
		return nil
	}
	return paramsOf(m.Method, m.Params)
}

// paramsOf holds parameters to what a method takes.
func paramsOf(method string, params json.RawMessage) error {
	var into any
	switch method {
	case "initialize":
		into = new(mcp.InitializeParams)
	case "tools/call":
		into = new(mcp.CallToolParamsRaw)
	case "tools/list":
		into = new(mcp.ListToolsParams)
	default:
		into = new(struct {
			Meta  mcp.Meta `json:"_meta"`
			Level string   `json:"level"` // of logging/setLevel
		})
	}
	err := strictjson.Unmarshal(params, into, ofProtocol)
	if err == nil {
		return nil
	}
	var at *strictjson.Error
	if errors.As(err, &at) && at.Err == nil { // its line and column are those within the parameters
		err = &strictjson.Error{Path: at.Path, Err: errors.New(at.Problem)}
	}
	return strictjson.Under("params", err)
}

// A strict transport answers requests whose parameters are not what their methods
// take, in the words of [paramsOf]: the SDK would quote what it reads them into.
type strict struct{ mcp.Transport }

// Connect implements [mcp.Transport].
func (s strict) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := s.Transport.Connect(ctx)
	return strictConn{c}, err
}

type strictConn struct{ mcp.Connection }

// Read implements [mcp.Connection].
func (c strictConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := c.Connection.Read(ctx)
		r, is := m.(*jsonrpc.Request)
		if err != nil || !is || r.Params == nil {
			return m, err
		}
		wrong := paramsOf(r.Method, r.Params)
		switch {
		case wrong == nil:
			return m, nil
		case !r.IsCall(): // nobody waits for an answer
			continue
		}
		if err := c.Connection.Write(ctx, &jsonrpc.Response{ID: r.ID, Error: wrongParams(wrong.Error())}); err != nil {
			return nil, err
		}
	}
}

// wrongParams is the answer to a request whose parameters are not taken.
func wrongParams(why string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: short(why, mostLine)}
}
