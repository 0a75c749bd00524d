package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A conversation is one client at the other end of a pair of streams.
type conversation struct {
	sdk    *mcp.Server
	ctx    context.Context // what the conversation began ends with it
	spoken func() string   // the version of the protocol that was agreed on, "" if none was
	end    func()          // cancels what is under way, and closes the connection
	leave  time.Duration   // how long a client at its end has to take its answers
	// through is laid over what reads and writes; nil: nothing is.
	through func(mcp.Transport) mcp.Transport
}

// speak reads one message a line until in ends, ctx ends or the client does not
// keep to the protocol. For a client that takes no answers it waits a moment.
func (v *conversation) speak(ctx context.Context, in io.ReadCloser, out io.WriteCloser, connected func()) error {
	heard := linesOf(in, v.spoken)
	var way mcp.Transport = strict{&mcp.IOTransport{Reader: heard, Writer: out, MaxLineLength: mostMessage}}
	if v.through != nil {
		way = v.through(way)
	}
	conn, err := v.sdk.Connect(v.ctx, way, nil)
	if err != nil {
		return fmt.Errorf("serving MCP: %w", err)
	}
	connected()
	over := make(chan error, 1)
	go func() { over <- conn.Wait() }()
	select {
	case err = <-over:
	case <-heard.ended:
		err = v.lastWords(over, nil)
	case <-ctx.Done():
		v.end()
		err = v.lastWords(over, ctx.Err())
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// lastWords waits for the end of a connection, for a moment. why is why it ends; nil:
// it says so itself.
func (v *conversation) lastWords(over <-chan error, why error) error {
	late := time.NewTimer(v.leave)
	defer late.Stop()
	select {
	case err := <-over:
		if why == nil {
			return err
		}
	case <-late.C:
	}
	return why
}
