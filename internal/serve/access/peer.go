package access

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"sync"

	"runloop.dev/rlp/internal/serve/service"
)

// A peer is who is at the other end of a connection, as the kernel says.
type peer struct {
	conn  net.Conn // as it was accepted, without TLS
	place placing  // that it has; nil: it has none
	local bool     // a Unix socket
	once  sync.Once
	uid   int
	state peerState

	shown  sync.Once
	signed error // why its certificate is nobody's; nil: an authority of the operator's signed it
}

// A peerState is what is known of a peer.
type peerState uint8

const (
	peerUnknown peerState = iota // nothing: it is nobody
	peerKnown                    // uid is its user
	peerUntold                   // this system does not tell
)

// peerKey is where a connection's context holds its peer.
type peerKey struct{}

// A placing connection has one of few places, of which each caller has a share.
type placing interface {
	// Serves notes who was proved on it; it is false when their share is in use.
	Serves(key string, operator bool) bool
}

// serves notes who was proved on the connection. It is false when they have as many
// as one caller may.
func (p *peer) serves(c *service.Caller) bool {
	switch {
	case p == nil || p.place == nil:
		return true
	case c.EveryTenant:
		return p.place.Serves("operator", true) // whatever tenant they ask for
	}
	return p.place.Serves(c.Key(), false)
}

// SourceOf is whose a connection is, as far as its other end tells: the user on
// this host, an address elsewhere.
func SourceOf(c net.Conn) string { return (&peer{conn: c}).source() }

// source is where a connection comes from.
func (p *peer) source() string {
	uid, state := p.user()
	switch addr := p.remote(); {
	case state == peerKnown:
		return "user " + strconv.Itoa(uid)
	case addr.IsValid():
		return network(addr)
	}
	return "unknown"
}

func peerOf(ctx context.Context) *peer {
	p, _ := ctx.Value(peerKey{}).(*peer)
	return p
}

// user is the uid of the peer.
func (p *peer) user() (uid int, state peerState) {
	if p == nil {
		return 0, peerUnknown
	}
	p.once.Do(func() {
		switch c := p.conn.(type) {
		case *net.UnixConn:
			p.uid, p.state = unixPeer(c)
		case *net.TCPConn:
			local, remote := addrPort(c.LocalAddr()), addrPort(c.RemoteAddr())
			// The kernel knows both ends of a connection that never left it.
			if local.IsValid() && remote.Addr().IsLoopback() && local.Addr().IsLoopback() {
				p.uid, p.state = tcpPeer(c, local, remote)
			}
		}
	})
	return p.uid, p.state
}

// remote is the address at the other end; it is not valid for a Unix socket.
func (p *peer) remote() netip.Addr {
	if p == nil {
		return netip.Addr{}
	}
	return addrPort(p.conn.RemoteAddr()).Addr()
}

// addrPort is a TCP address, an IPv4 address as such however it is written.
func addrPort(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// network is whose attempts are counted together: an address, of IPv6 64 bits; on
// this host all of loopback, of which every user has every address.
func network(addr netip.Addr) string {
	if addr.IsLoopback() {
		return "loopback"
	}
	if addr.Is4() {
		return addr.String()
	}
	p, err := addr.WithZone("").Prefix(64)
	if err != nil {
		return "unknown"
	}
	return p.String()
}
