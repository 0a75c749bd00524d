//go:build !linux

package daemon

import (
	"context"
	"os"
	"time"
)

// A Client is a connection to the process that serves: there is none here.
type Client struct{}

// An Answer is what came of a request.
type Answer struct {
	Taken, Lost bool
	Status      int
	Why         string
	Text        []byte
}

// Dial finds nobody.
func Dial(string) (*Client, error) { return nil, ErrUnsupported }

// Close ends the connection.
func (*Client) Close() {}

// Send asks nobody.
func (*Client) Send(Request, ...int) error { return ErrUnsupported }

// Cancel tells nobody.
func (*Client) Cancel() {}

// Wait has nothing to wait for.
func (*Client) Wait() Answer { return Answer{} }

// Ask asks nobody.
func Ask(string, byte) (*State, error) { return nil, ErrUnsupported }

// Options say how to serve.
type Options struct {
	Dir         string
	Since       time.Time
	Idle        time.Duration
	Most        int
	Handle      func(ctx context.Context, call *Call) Outcome
	Ready, Over func()
}

// An Outcome is how a call ended, or why it was not begun.
type Outcome struct {
	Status   int
	Declined string
}

// Serve refuses.
func Serve(context.Context, Options) error { return ErrUnsupported }

// A Stream is one of a client's streams.
type Stream struct{ file *os.File }

// File is the open file.
func (s *Stream) File() *os.File { return s.file }

// A Call is one launch for a client.
type Call struct {
	Args, Env             []string
	Stdin, Stdout, Stderr *Stream
}

// Begin says that nobody else may do this.
func (*Call) Begin() error { return ErrUnsupported }

// Here does something where the client is.
func (*Call) Here(func(string)) error { return ErrUnsupported }

// Read reads.
func (s *Stream) Read(p []byte) (int, error) { return s.file.Read(p) }

// Write writes.
func (s *Stream) Write(p []byte) (int, error) { return s.file.Write(p) }

// Ended has nothing to wait for.
func Ended(string, <-chan struct{}) error { return ErrUnsupported }
