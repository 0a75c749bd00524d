package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/internal/schema"
)

// envelope says what is wrong with the members that a message of any method may
// have; at is where it stands.
func envelope(raw []byte, at string) error {
	if raw[0] != '{' {
		return fmt.Errorf("%sthe message is not an object", at)
	}
	var m struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Error   struct {
			Code    int64  `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := wellKinded(json.Unmarshal(raw, &m)); err != nil {
		return fmt.Errorf("%s%w", at, err)
	}
	doc, _ := schema.Scan(raw)
	for _, member := range doc.Members {
		if member.Key == "id" && (member.Raw[0] == '{' || member.Raw[0] == '[' || member.Raw[0] == 't' || member.Raw[0] == 'f') {
			return fmt.Errorf("%sid: must be a text or a number", at)
		}
	}
	if m.Version != "2.0" {
		return fmt.Errorf(`%sjsonrpc: must be "2.0"`, at)
	}
	return nil
}

// params says what is wrong with the parameters of a message that is whole
// otherwise.
func params(raw []byte) error {
	var m struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(raw, &m) != nil || m.Params == nil {
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
			Level string   // of logging/setLevel
		})
	}
	if err := wellKinded(json.Unmarshal(m.Params, into)); err != nil {
		return fmt.Errorf("params: %w", err)
	}
	return nil
}

// wellKinded is an error of a decoder in words that know nothing of what it decodes
// into.
func wellKinded(err error) error {
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &kind):
		return errors.New("is not what is wanted here")
	case kind.Field == "":
		return fmt.Errorf("must be %s", wanted(kind.Type))
	}
	return fmt.Errorf("%s: must be %s", kind.Field, wanted(kind.Type))
}

// wanted is what JSON calls what a Go type is made of.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Pointer:
		return wanted(t.Elem())
	}
	return "a number"
}
