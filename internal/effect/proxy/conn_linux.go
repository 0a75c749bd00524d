package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A conn is one connection of the program.
type conn struct {
	s     *Server
	c     *net.TCPConn
	host  string   // the canonical host:port that was asked for
	names []string // what that may be called on the connection: its name, or the names of loopback
	head  []byte   // what was read to judge it
	began time.Time

	sent, received atomic.Int64
	spend          atomic.Pointer[func(int64) error]
}

// handle serves one connection to its end. Whoever returns from it without
// having closed c has it reset.
func (s *Server) handle(c *net.TCPConn) {
	to, err := s.destination(c)
	if err != nil {
		return
	}
	stop := context.AfterFunc(s.ctx, func() { reset(c) })
	defer stop()
	k := &conn{s: s, c: c, began: s.cfg.Now()}
	if !k.find(to) {
		s.toNoName(c, to)
		return
	}
	if k.isOwn() {
		k.inside(to.Port())
		return
	}
	ways := s.cfg.Policy.Ways(k.host)
	switch {
	case ways == 0 && to.Port() == queryPort:
		s.answers(c)
	case ways == 0: // whatever it would be: the policy says no, and records it
		k.carry(Target{Way: usual(to.Port()), Host: k.host})
	case ways&Bytes != 0:
		k.carry(Target{Way: Bytes, Host: k.host})
	default:
		k.look(ways)
	}
}

// toNoName serves a connection to an address of ours that stands for no name: the one
// of the resolver answers queries, the others are refused and recorded.
func (s *Server) toNoName(c *net.TCPConn, to netip.AddrPort) {
	if to.Port() == queryPort {
		s.answers(c)
		return
	}
	if is, more := s.unassigned.isNew(to.String()); is {
		s.cfg.Policy.Refuse(Target{Way: usual(to.Port()), Host: to.String()}, Unassigned,
			"no name was answered with this address"+more)
	}
}

// usual is how port is mostly spoken to.
func usual(port uint16) Ways {
	switch port {
	case 443:
		return TLS
	case 80:
		return HTTP
	}
	return Bytes
}

// find says what the destination is called. It is false where that is an address
// of ours that stands for no name.
func (k *conn) find(to netip.AddrPort) bool {
	port := strconv.Itoa(int(to.Port()))
	if name, is := k.s.names.name(to.Addr()); is {
		k.host, k.names = name+":"+port, []string{name}
		return name != ""
	}
	k.host, k.names = to.String(), []string{to.Addr().String()}
	if !to.Addr().IsLoopback() {
		return true
	}
	k.names = []string{"localhost", "127.0.0.1", "::1", to.Addr().String()}
	if local := "localhost:" + port; k.s.cfg.Policy.Ways(k.host) == 0 && k.s.cfg.Policy.Ways(local) != 0 {
		k.host = local
	}
	return true
}

// isNamed reports whether the place may be called name on the connection.
func (k *conn) isNamed(name string) bool { return slices.Contains(k.names, name) }

func isAddress(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil
}

// look reads what the connection begins with, and serves it as what that is.
func (k *conn) look(ways Ways) {
	stop := impatient(k.c, helloTime)
	defer stop()
	tls := Target{Way: TLS, Host: k.host}
	if err := k.more(); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) && ways&TLS != 0 {
			k.s.cfg.Policy.Refuse(tls, ServerName, errUnfinished.Error())
		}
		return // who says nothing and goes was refused nothing
	}
	switch isTLS := k.head[0] == typeHandshake; {
	case isTLS && ways&TLS == 0:
		k.carry(tls) // the policy says no, and records it
		return
	case !isTLS && ways&HTTP != 0:
		stop()
		k.serveWeb()
		return
	}
	name, err := k.hello()
	switch {
	case err == nil && k.isNamed(name):
	case err == nil && name == "" && isAddress(k.names[0]): // an address is never named
	case err == nil && name == "":
		err = errNoName
	case err == nil:
		err = errors.New("its ClientHello names " + strconv.Quote(name))
	}
	if err != nil {
		k.s.cfg.Policy.Refuse(tls, ServerName, err.Error())
		return
	}
	stop()
	k.carry(tls)
}

// more reads on.
func (k *conn) more() error {
	k.head = slices.Grow(k.head, 2<<10)
	n, err := k.c.Read(k.head[len(k.head):cap(k.head)])
	k.head = k.head[:len(k.head)+n]
	if n > 0 {
		return nil
	}
	return err
}

// hello reads the ClientHello and is the server's name in it.
func (k *conn) hello() (string, error) {
	var h hello
	for {
		err := h.take(k.head)
		if err == nil {
			return h.serverName()
		}
		if !errors.Is(err, errUnfinished) {
			return "", err
		}
		if k.more() != nil {
			return "", errUnfinished
		}
	}
}

// carry asks for t, connects and carries bytes between both sides until they end.
func (k *conn) carry(t Target) {
	ctx, over := context.WithCancel(k.s.ctx)
	defer over()
	g, err := k.s.cfg.Policy.Decide(ctx, t)
	if err != nil {
		return
	}
	ctx, stop := either(g.Context, ctx)
	defer stop()
	up, err := k.s.cfg.Outside.Connect(ctx, k.host, g.Named)
	if err != nil {
		if isAddressError(err) {
			k.s.cfg.Policy.Refuse(t, Address, err.Error())
		}
		k.s.cfg.Policy.Done(t, g, k.end(err))
		return
	}
	cut := context.AfterFunc(ctx, func() { reset(k.c); reset(up) })
	defer cut()
	err = k.exchange(up, g.Spend)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	k.s.cfg.Policy.Done(t, g, k.end(err))
}

// isAddressError reports whether err is a refusal for the sake of an address.
func isAddressError(err error) bool {
	var address interface{ AddressNotPermitted() }
	return errors.As(err, &address)
}

func (k *conn) end(err error) End {
	return End{
		Sent: k.sent.Load(), Received: k.received.Load(), Took: k.s.cfg.Now().Sub(k.began), Err: err,
	}
}

// either is a context that ends when one of a and b does; a may be nil.
func either(a, b context.Context) (context.Context, context.CancelFunc) {
	if a == nil {
		return context.WithCancel(b)
	}
	ctx, cancel := context.WithCancelCause(a)
	stop := context.AfterFunc(b, func() { cancel(context.Cause(b)) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

// exchange carries what was read already, and then bytes in both directions. Each
// ends by itself; an error ends both.
func (k *conn) exchange(up net.Conn, spend func(int64) error) error {
	defer up.Close()
	if err := take(spend, int64(len(k.head))); err != nil {
		return err
	}
	if _, err := up.Write(k.head); err != nil {
		reset(k.c)
		return err
	}
	k.sent.Add(int64(len(k.head)))
	k.head = nil
	back := make(chan error, 1)
	go func() { back <- k.flow(k.c, up, &k.received, spend) }()
	err := k.flow(up, k.c, &k.sent, spend)
	if other := <-back; err == nil {
		err = other
	}
	_ = k.c.Close()
	return err
}

// flow carries from one side to the other until that side says no more.
func (k *conn) flow(to, from net.Conn, moved *atomic.Int64, spend func(int64) error) error {
	err := k.s.pipes.move(to, from, func(n int64) error { moved.Add(n); return take(spend, n) })
	if err == nil {
		if half, is := to.(interface{ CloseWrite() error }); is {
			err = half.CloseWrite()
		}
		if err == nil || isGone(err) {
			return nil
		}
	}
	reset(to)
	reset(from)
	return err
}

// isGone reports whether err is that the other side has left already.
func isGone(err error) bool { return errors.Is(err, net.ErrClosed) || errors.Is(err, unix.ENOTCONN) }

func take(spend func(int64) error, n int64) error {
	if spend == nil {
		return nil
	}
	return spend(n)
}

// copied carries bytes by reading and writing them.
func copied(to io.Writer, from io.Reader, moved func(int64) error) error {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if over := moved(int64(n)); over != nil {
				return over
			}
			if _, failed := to.Write(buf[:n]); failed != nil {
				return failed
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}
