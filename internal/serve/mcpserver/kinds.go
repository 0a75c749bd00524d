package mcpserver

import (
	"encoding/json"
	"errors"
	"strings"

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
	var into any
	switch m.Method {
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
	if err := strictjson.Unmarshal(m.Params, into, ofProtocol); err != nil {
		return strictjson.Under("params", err)
	}
	return nil
}
