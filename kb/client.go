package kb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/wire"
)

// errLost says that the owner went away before it answered.
var errLost = errors.New("the store's owner has gone")

// A client asks the store's owner. Each request has a connection for itself;
// connections are kept for the next.
type client struct {
	path  string
	us    agreement
	codec *audit.Codec

	mu   sync.Mutex
	idle []*clientConn
	gone bool
}

type clientConn struct {
	*net.UnixConn
	wire *wire.Conn
}

// dial reaches the owner and greets it, to see that it answers.
func dial(ctx context.Context, path string, us agreement) (*client, error) {
	codec, err := audit.NewCodec()
	if err != nil {
		return nil, err
	}
	c := &client{path: path, us: us, codec: codec}
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	c.release(conn)
	return c, nil
}

func (c *client) connect(ctx context.Context) (*clientConn, error) {
	u, err := wire.DialUnix(ctx, c.path, greetWithin)
	if err != nil {
		return nil, err
	}
	conn := &clientConn{u, wire.NewConn(u, c.codec)}
	stop := context.AfterFunc(ctx, func() { u.SetDeadline(time.Unix(1, 0)) }) //nolint:errcheck // a closed connection fails at the greeting
	if err := greet(u, conn.wire, c.us); err != nil || !stop() {
		u.Close()
		return nil, errors.Join(ctx.Err(), err)
	}
	return conn, nil
}

// take returns a connection that nobody uses.
func (c *client) take(ctx context.Context) (*clientConn, error) {
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		conn := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		return conn, nil
	}
	c.mu.Unlock()
	return c.connect(ctx)
}

func (c *client) release(conn *clientConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone || len(c.idle) >= 16 {
		conn.Close()
		return
	}
	c.idle = append(c.idle, conn)
}

func (c *client) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	for _, conn := range c.idle {
		conn.Close()
	}
	c.idle = nil
	return nil
}

// ask sends the owner a request and reads its answer. An error that is errLost leaves
// open whether the request was done.
func (c *client) ask(ctx context.Context, op wire.Opcode, q, a any) error {
	body, err := c.codec.Marshal(q)
	if err != nil {
		return err
	}
	r, err := c.exchange(ctx, &message{op, body})
	switch {
	case err != nil:
		return err
	case r.Failure != wire.FailNone:
		return &wire.RemoteError{Kind: r.Failure, Text: r.Text}
	}
	if err := c.codec.Unmarshal(r.Body, a); err != nil {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return nil
}

func (c *client) exchange(ctx context.Context, m *message) (*reply, error) {
	conn, err := c.take(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(err, wire.ErrVersion) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", errLost, err)
	}
	conn.SetDeadline(time.Now().Add(answerWithin)) //nolint:errcheck // a closed connection fails at the write
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	r := new(reply)
	if err = conn.wire.Send(m); err == nil {
		err = conn.wire.Receive(r)
	}
	if !stop() || err != nil {
		conn.Close()
		if ctx.Err() != nil && err != nil {
			return nil, ctx.Err()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errLost, err)
	}
	conn.SetDeadline(time.Time{}) //nolint:errcheck // a closed connection fails at the next use
	if ctx.Err() == nil {
		c.release(conn)
	}
	return r, nil
}

// pidOf reads who says to hold the lock, for messages; 0: not known.
func pidOf(lock string) int {
	p, err := os.ReadFile(lock)
	if err != nil || len(p) > 20 {
		return 0
	}
	var pid int
	if _, err := fmt.Sscan(string(p), &pid); err != nil {
		return 0
	}
	return pid
}
