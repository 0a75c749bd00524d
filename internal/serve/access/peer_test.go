package access

import (
	"context"
	"net"
	"net/http"
	"net/netip"
)

// fakeConn is a connection from somewhere else.
type fakeConn struct {
	net.Conn
	local, remote netip.AddrPort
}

func (c fakeConn) LocalAddr() net.Addr  { return net.TCPAddrFromAddrPort(c.local) }
func (c fakeConn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.remote) }

// withPeer is r as it came from an address.
func withPeer(r *http.Request, from string) *http.Request {
	c := fakeConn{local: netip.MustParseAddrPort("192.0.2.80:8770"), remote: netip.AddrPortFrom(netip.MustParseAddr(from),
		1234)}
	return r.WithContext(context.WithValue(r.Context(), peerKey{}, &peer{conn: c}))
}
