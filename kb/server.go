package kb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"runloop.dev/rlp/kb/wire"
)

const (
	// answerWithin is how long the other end has for one message once it began,
	// and an owner for one answer.
	answerWithin = 5 * time.Second
	// greetWithin is how long both ends have to say who they are.
	greetWithin = 2 * time.Second
	// maxConns bounds what one owner serves at a time.
	maxConns = 256
)

// A server lets the other processes of the same user use an engine.
type server struct {
	engine   *engine
	listener *net.UnixListener
	path     string // of the socket

	mu     sync.Mutex
	conns  map[*net.UnixConn]bool
	closed bool
	wg     sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc
}

// serve listens at the store's socket. The caller holds the store's lock, so
// that a socket which is there already is nobody's.
func serve(e *engine, path string) (*server, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("serving the store: %w", err)
	}
	l, err := wire.ListenUnix(path)
	if err != nil {
		return nil, fmt.Errorf("serving the store: %w", err)
	}
	s := &server{engine: e, listener: l, path: path, conns: map[*net.UnixConn]bool{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("serving the store: %w", err), s.close())
	}
	s.wg.Go(s.accept)
	return s, nil
}

// close stops serving: the requests under way are answered, then the
// connections end, and with them the clients' faith in this owner.
func (s *server) close() error {
	err := errors.Join(s.listener.Close(), os.Remove(s.path))
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		c.SetReadDeadline(time.Now()) //nolint:errcheck // the connection ends either way
	}
	s.mu.Unlock()
	hard := time.AfterFunc(answerWithin, func() {
		s.cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.conns {
			c.Close()
		}
	})
	s.wg.Wait()
	hard.Stop()
	s.cancel()
	return err
}

func (s *server) accept() {
	for {
		c, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of descriptors or the like: what is served goes on.
			select {
			case <-s.ctx.Done():
				return
			case <-time.After(10 * time.Millisecond):
				continue
			}
		}
		s.mu.Lock()
		full := s.closed || len(s.conns) >= maxConns
		if !full {
			s.conns[c] = true
			s.wg.Go(func() { s.converse(c) })
		}
		s.mu.Unlock()
		if full {
			c.Close()
		}
	}
}

// converse answers one connection until it ends.
func (s *server) converse(c *net.UnixConn) {
	defer func() {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		c.Close()
	}()
	w := wire.NewConn(c, s.engine.codec)
	if err := greet(c, w, s.engine.agreement); err != nil {
		return
	}
	for !s.isClosed() {
		m := new(message)
		if err := w.Receive(m); err != nil {
			return
		}
		a, err := s.engine.serve(s.ctx, m)
		if errors.Is(err, wire.ErrClosed) || errors.Is(err, context.Canceled) {
			return // the client asks the next owner
		}
		c.SetWriteDeadline(time.Now().Add(answerWithin)) //nolint:errcheck // a closed connection fails at the write
		if err := w.Send(s.reply(a, err)); err != nil {
			return
		}
	}
}

// reply is what is sent of an answer.
func (s *server) reply(a any, err error) *reply {
	r := &reply{}
	if err == nil {
		r.Body, err = s.engine.codec.Marshal(a)
	}
	if err != nil {
		return &reply{Failure: wire.FailureOf(err), Text: err.Error()}
	}
	return r
}

// isClosed is asked before each wait for a request: whoever closes the server
// ends the waits that began before.
func (s *server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// greet checks that the other end is of this user and this version and indexes
// by the same rules, masks included, for the same tenant, and says the same of
// this end.
func greet(c *net.UnixConn, w *wire.Conn, us agreement) error {
	uid, err := wire.PeerUID(c)
	if err != nil {
		return fmt.Errorf("asking who is at the store's socket: %w", err)
	}
	if uid != os.Geteuid() {
		return fmt.Errorf("%w: user %d is at the other end of its socket", wire.ErrUnavailable, uid)
	}
	c.SetDeadline(time.Now().Add(greetWithin)) //nolint:errcheck // a closed connection fails at the write
	if err := w.Send(hello{magic, protocolVersion, os.Getpid()}); err != nil {
		return err
	}
	var h hello
	if err := w.Receive(&h); err != nil {
		return err
	}
	if h.Magic != magic || h.Version != protocolVersion {
		return fmt.Errorf("%w: process %d speaks version %d, this one %d", wire.ErrVersion, h.PID, h.Version, protocolVersion)
	}
	if err := w.Send(us); err != nil {
		return err
	}
	var a agreement
	if err := w.Receive(&a); err != nil {
		return err
	}
	if a.Tenant != us.Tenant {
		return fmt.Errorf("%w: process %d has the store of another tenant", wire.ErrUnavailable, h.PID)
	}
	if a.Index != us.Index {
		return fmt.Errorf("%w: process %d masks values by other rules, or began with another kb/mask.key; end it first",
			wire.ErrVersion, h.PID)
	}
	return c.SetDeadline(time.Time{})
}
