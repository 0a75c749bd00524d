package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/internal/base/guard"
)

// protocol is what a session is opened with: the handshake that servers of every
// age know. A server may answer with an older version.
const protocol = "2025-11-25"

// A Session is one conversation with a server. One call at a time.
type Session struct {
	sdk     *mcp.ClientSession
	end     func()
	dead    sync.Once
	gone    chan struct{} // closed when it was ended here
	changed *atomic.Bool
}

// ErrGone is a server that ended, or does not speak the protocol.
var ErrGone = errors.New("the server ended the conversation, or does not speak the protocol")

// A RemoteError is an error that the server answers with. Its text is the
// server's own.
type RemoteError struct {
	Code    int64
	Message string
}

func (e *RemoteError) Error() string { return "the server answers with an error: " + e.Message }

// Connect opens a session, within ctx.
func Connect(ctx context.Context, t Transport) (*Session, error) {
	s := &Session{end: t.end, gone: make(chan struct{}), changed: t.changed}
	client := mcp.NewClient(&mcp.Implementation{Name: "rlp", Version: "1"}, &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{}, // none: no roots, no sampling, no questions
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			s.changed.Store(true)
		},
	})
	var opened *mcp.ClientSession
	err := s.within(ctx, func(ctx context.Context) (err error) {
		opened, err = client.Connect(ctx, t.sdk, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
		return err
	})
	if err != nil {
		s.kill()
		return nil, err
	}
	s.sdk = opened
	return s, nil
}

// Changed reports whether the server said that its tools are others, since the
// last [Session.Tools].
func (s *Session) Changed() bool { return s.changed.Load() }

// Call has the server call a tool; arguments are a JSON object. The result is a
// JSON object with content, isError and, where there is any, structuredContent.
func (s *Session) Call(ctx context.Context, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	var got *mcp.CallToolResult
	err := s.within(ctx, func(ctx context.Context) (err error) {
		got, err = s.sdk.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
		return err
	})
	if err != nil {
		return nil, err
	}
	if got.InputRequests != nil {
		return nil, &RemoteError{Message: "the tool asks for more input, which an agent cannot give"}
	}
	content := got.Content
	if content == nil {
		content = []mcp.Content{}
	}
	return marshal(struct {
		Content    []mcp.Content `json:"content"`
		Structured any           `json:"structuredContent,omitempty"`
		IsError    bool          `json:"isError"`
	}{content, got.StructuredContent, got.IsError})
}

// Close ends the session. What its server does about that is not waited for
// longer than a moment.
func (s *Session) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	_ = s.within(ctx, func(context.Context) error { return s.sdk.Close() })
	s.kill()
}

// kill makes all that waits for the server end.
func (s *Session) kill() {
	s.dead.Do(func() {
		close(s.gone)
		s.end()
	})
}

// grace is how long what was cancelled may take to return by itself.
const grace = 250 * time.Millisecond

// within does what may wait for the server. A server that does not even let
// itself be told that nobody waits any more is not spoken with again.
func (s *Session) within(ctx context.Context, do func(context.Context) error) error {
	select {
	case <-s.gone:
		return ErrGone
	default:
	}
	done := make(chan error, 1)
	guard.Go(func() error { return do(ctx) }, func(err error) { done <- err })
	select {
	case err := <-done:
		var broken *guard.Broken
		if errors.As(err, &broken) { // nobody knows in which state the session is
			s.kill()
		}
		return plain(ctx, err)
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		s.kill()
	}
	return context.Cause(ctx)
}

// plain is err in words of this package: what a server wrote where it should
// have spoken the protocol is in none of them.
func plain(ctx context.Context, err error) error {
	var remote *jsonrpc.Error
	var way *WayError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &way):
		return way
	case errors.Is(err, ErrTooLarge):
		return ErrTooLarge
	case errors.As(err, &remote):
		return &RemoteError{Code: remote.Code, Message: remote.Message}
	}
	return ErrGone
}
