package api

import (
	"net"
	"sync"
)

// Bounded is l with most connections open at a time; who comes then waits to be
// accepted.
func Bounded(l net.Listener, most int) net.Listener {
	return &bounded{Listener: l, places: make(chan struct{}, most), closed: make(chan struct{})}
}

type bounded struct {
	net.Listener
	places chan struct{}
	once   sync.Once
	closed chan struct{}
}

func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.places <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.places
		return nil, err
	}
	return &placed{Conn: c, leave: func() { <-b.places }}, nil
}

func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

// A placed connection has a place until it is closed.
type placed struct {
	net.Conn
	once  sync.Once
	leave func()
}

// NetConn is the connection itself, whose other end can be asked for.
func (p *placed) NetConn() net.Conn { return p.Conn }

func (p *placed) Close() error {
	err := p.Conn.Close()
	p.once.Do(p.leave)
	return err
}
