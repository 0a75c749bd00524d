//lint:file-ignore SA1019 versions of the protocol that clients and servers speak today have it

package mcpserver

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/hostcalls"
)

// mostAsked is how long a person at a client has to answer.
const mostAsked = 5 * time.Minute

// A connection is that to the client, as notices are written to it.
type connection struct{ mcp.Connection }

// through has the connection that is made by way of t kept.
func (f *Front) through(t mcp.Transport) mcp.Transport { return keeping{t, f} }

type keeping struct {
	mcp.Transport
	f *Front
}

// Connect implements [mcp.Transport].
func (k keeping) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := k.Transport.Connect(ctx)
	if err == nil {
		k.f.conn.Store(&connection{c})
	}
	return c, err
}

// noticing are the capabilities of a server that tells of what it refused.
func noticing() *mcp.ServerCapabilities {
	return &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Logging: &mcp.LoggingCapabilities{}}
}

// notice tells the client that something was refused, and why. It is written as
// it is: the SDK sends none to a client that did not say which it wants, and the
// protocol leaves that to servers.
func (f *Front) notice(ctx context.Context, no *hostcalls.Answer, tool string) {
	c := f.conn.Load()
	if c == nil {
		return
	}
	params, err := json.Marshal(&mcp.LoggingMessageParams{Level: "warning", Logger: "rlp", Data: map[string]string{
		"refused": short(oneLine(tool), mostLine), "reason": no.Reason, "capability": oneLine(no.Capability),
		"why": short(oneLine(no.Hint), mostText),
	}})
	if err == nil { // a client that is gone is told nothing
		_ = c.Write(ctx, &jsonrpc.Request{Method: "notifications/message", Params: params})
	}
}
