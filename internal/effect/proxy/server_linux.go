package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"

	"runloop.dev/rlp/internal/base/guard"
	"runloop.dev/rlp/internal/effect/netns"
)

// Bounds of connections.
const (
	mostConnections = 4 << 10
	helloTime       = 10 * time.Second // for the first that is said on one
	tryAgain        = 50 * time.Millisecond
)

// A Config says who decides, and how to get out.
type Config struct {
	Policy  Policy
	Outside Outside
	Inside  Inside // nil: there is no such name
	// Published are listeners of the host, which Serve takes: what connects to one asks for
	// the same port of the program, as the policy's [Inward] to [Published].
	Published Listeners
	Now       func() time.Time
}

// A Server serves one network until it is closed.
type Server struct {
	cfg          Config
	isRedirected bool
	isIPv6       bool
	names        *names
	unknown      told // names that the policy does not know
	datagramsTo  told // places
	closedAt     told // places on loopback
	unassigned   told // addresses of ours that stand for no name, with ports
	pipes        *pipes
	listeners    []*net.TCPListener
	packets      []*net.UDPConn
	strays       []*os.File
	web          *http.Server
	handed       chan net.Conn // to web
	inward       inward

	open    chan struct{} // a place for each connection
	running sync.WaitGroup
	ctx     context.Context // of all connections
	cut     context.CancelFunc
	closing chan struct{}
	once    sync.Once
}

// Serve serves s, which it takes.
func Serve(s *netns.Sockets, cfg Config) (*Server, error) {
	defer s.Close() // a listener has descriptors of its own
	srv := &Server{
		cfg: cfg, isRedirected: s.Redirected, isIPv6: s.IPv6, names: newNames(), pipes: newPipes(),
		handed: make(chan net.Conn), open: make(chan struct{}, mostConnections), closing: make(chan struct{}),
	}
	srv.ctx, srv.cut = context.WithCancel(context.Background())
	srv.listeners = append(srv.listeners, cfg.Published...)
	if err := errors.Join(srv.take(s), srv.inward.take(s)); err != nil {
		srv.Close(0)
		return nil, fmt.Errorf("serving a program's network: %w", err)
	}
	srv.web = srv.newWeb()
	for i, l := range srv.listeners {
		serve := srv.handle
		if i < len(cfg.Published) {
			serve = srv.enter
		}
		srv.start(func() error { srv.accept(l, serve); return nil })
	}
	for _, p := range srv.packets {
		srv.start(func() error { srv.datagrams(p); return nil })
	}
	for _, f := range srv.strays {
		srv.start(func() error { srv.look(f); return nil })
	}
	srv.start(func() error { return srv.web.Serve(handedOver{srv}) })
	return srv, nil
}

func (s *Server) start(f func() error) {
	s.running.Add(1)
	guard.Go(f, func(error) { s.running.Done() })
}

func (s *Server) take(sockets *netns.Sockets) error {
	for _, f := range sockets.Streams {
		l, err := net.FileListener(f)
		if err != nil {
			return err
		}
		tcp, is := l.(*net.TCPListener)
		if !is {
			return errors.Join(errSocket, l.Close())
		}
		s.listeners = append(s.listeners, tcp)
	}
	for _, f := range sockets.Queries {
		p, err := net.FilePacketConn(f)
		if err != nil {
			return err
		}
		udp, is := p.(*net.UDPConn)
		if !is {
			return errors.Join(errSocket, p.Close())
		}
		s.packets = append(s.packets, udp)
	}
	s.strays, sockets.Strays = sockets.Strays, nil // no package of Go's knows such a socket
	return nil
}

var (
	errSocket   = errors.New("a socket is not of the kind that it was handed over as")
	errProtocol = errors.New("that is not spoken here")
	errBroken   = errors.New("the answer broke off")
)

// Close ends the service. Connections have grace to say what they were about to,
// when their program has ended, and are reset then.
func (s *Server) Close(grace time.Duration) {
	s.once.Do(func() {
		close(s.closing)
		for _, l := range s.listeners {
			_ = l.Close()
		}
		for _, p := range s.packets {
			_ = p.Close()
		}
		for _, f := range s.strays {
			_ = f.SetReadDeadline(longAgo())
		}
	})
	t := time.AfterFunc(grace, s.cut)
	for range mostConnections { // all places are free
		s.open <- struct{}{}
	}
	t.Stop()
	s.cut()
	if s.web != nil {
		_ = s.web.Close()
	}
	s.running.Wait()
	for _, f := range s.strays {
		_ = f.Close()
	}
	s.pipes.close()
	s.inward.close()
	for range mostConnections {
		<-s.open
	}
}

// ended reports whether err is that of a socket which Close closed.
func (s *Server) ended(err error) bool {
	select {
	case <-s.closing:
		return true
	default:
		return errors.Is(err, net.ErrClosed)
	}
}

// accept takes connections in until l is closed.
func (s *Server) accept(l *net.TCPListener, serve func(*net.TCPConn)) {
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			if s.ended(err) {
				return
			}
			select { // too many open files, mostly
			case <-s.closing:
			case <-time.After(tryAgain):
			}
			continue
		}
		select {
		case s.open <- struct{}{}:
			guard.Go(func() error { serve(c); return nil }, func(error) { reset(c); <-s.open })
		default:
			reset(c)
		}
	}
}

// reset ends a connection at once: what was not read or sent is lost, and the
// other side is told so.
func reset(c net.Conn) {
	if t, is := c.(*net.TCPConn); is {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

// destination is where the program wanted to connect to.
func (s *Server) destination(c *net.TCPConn) (netip.AddrPort, error) {
	to := c.LocalAddr().(*net.TCPAddr).AddrPort()
	if s.isRedirected {
		raw, err := c.SyscallConn()
		if err != nil {
			return to, err
		}
		var asked netip.AddrPort
		var failed error
		if err := raw.Control(func(fd uintptr) { asked, failed = netns.Original(int(fd), to.Addr().Is6()) }); err != nil {
			return to, err
		}
		switch {
		case failed == nil:
			to = asked
		case !errors.Is(failed, os.ErrNotExist): // one that was never translated is what it says
			return to, failed
		}
	}
	return netip.AddrPortFrom(to.Addr().Unmap(), to.Port()), nil
}

// handedOver is the listener of the connections that speak plain HTTP.
type handedOver struct{ s *Server }

func (h handedOver) Accept() (net.Conn, error) {
	select {
	case c := <-h.s.handed:
		return c, nil
	case <-h.s.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (handedOver) Close() error   { return nil }
func (handedOver) Addr() net.Addr { return &net.TCPAddr{} }
