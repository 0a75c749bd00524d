//go:build !linux

package access

import (
	"net"
	"net/netip"
)

// unixPeer does not know: the socket lies where only its user comes.
func unixPeer(*net.UnixConn) (int, peerState) { return 0, peerUntold }

// tcpPeer does not know.
func tcpPeer(*net.TCPConn, netip.AddrPort, netip.AddrPort) (int, peerState) { return 0, peerUntold }
