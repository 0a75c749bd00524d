package proxy

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/netns"
)

// Bounds of queries.
const (
	queryPort   = 53
	queryBytes  = 512 // a query has one question, of at most 255 bytes
	queriesKept = 64  // over one connection
	keepAnswer  = 60  // seconds
)

// datagrams answers queries until c is closed.
func (s *Server) datagrams(c *net.UDPConn) {
	b, oob := make([]byte, queryBytes), make([]byte, 256)
	for {
		n, m, _, from, err := c.ReadMsgUDPAddrPort(b, oob)
		if err != nil {
			if s.ended(err) {
				return
			}
			continue // such as a program that closed its socket before the answer
		}
		if answer := s.answer(b[:n]); answer != nil {
			// What came with the query says which address was asked, and goes back with the answer.
			_, _, _ = c.WriteMsgUDPAddrPort(answer, oob[:m], from)
		}
	}
}

// strayBytes holds the heads of a datagram.
const strayBytes = 128

// look has datagrams that go nowhere recorded, until the server is closed and all that
// were sent before have been seen.
func (s *Server) look(f *os.File) {
	b := make([]byte, strayBytes)
	for {
		n, err := f.Read(b)
		if err != nil {
			s.last(f, b)
			return
		}
		s.seen(b[:n])
	}
}

// last takes what came before the end.
func (s *Server) last(f *os.File, b []byte) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		for {
			n, _, err := unix.Recvfrom(int(fd), b, unix.MSG_DONTWAIT)
			if err != nil {
				return
			}
			s.seen(b[:n])
		}
	})
}

func (s *Server) seen(packet []byte) {
	at, refused, is := netns.Stray(packet)
	switch {
	case refused && is:
		s.closed(at)
	case is:
		s.stray(netip.AddrPortFrom(at.Addr().Unmap(), at.Port()))
	}
}

// closed has a connection recorded that was refused: nobody listens there in the
// sandbox, and a port of the host's is one only where it is granted.
func (s *Server) closed(at netip.AddrPort) {
	t := Target{Way: Bytes, Host: at.String()}
	if is, more := s.closedAt.isNew(t.Host); is {
		s.cfg.Policy.Refuse(t, Unassigned, "nobody listens there in the sandbox, and no port of the host's is granted"+more)
	}
}

// stray has a datagram recorded that goes nowhere, the first one to a place.
func (s *Server) stray(to netip.AddrPort) {
	if at := to.Addr(); at.IsLoopback() || at == netns.Own4 || at == netns.Own6 { // the sandbox's own
		return
	}
	t := Target{Way: Datagrams, Host: to.String()}
	if name, ours := s.names.name(to.Addr()); ours && name != "" {
		t.Host = name + ":" + strconv.Itoa(int(to.Port()))
	}
	if is, more := s.datagramsTo.isNew(t.Host); is {
		s.cfg.Policy.Refuse(t, Protocol, "UDP has no way out"+more)
	}
}

// answers answers the queries of a connection, and ends it.
func (s *Server) answers(c *net.TCPConn) {
	_ = s.stream(c)
	_ = c.Close()
}

// stream answers the queries of one connection, each of which has its length
// before it.
func (s *Server) stream(c *net.TCPConn) error {
	stop := impatient(c, helloTime)
	defer stop()
	var b [queryBytes]byte
	for range queriesKept {
		if _, err := io.ReadFull(c, b[:2]); err != nil {
			return err
		}
		size := binary.BigEndian.Uint16(b[:2])
		if int(size) > len(b) {
			return errProtocol
		}
		if _, err := io.ReadFull(c, b[:size]); err != nil {
			return err
		}
		answer := s.answer(b[:size])
		if answer == nil {
			return errProtocol
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return err
		}
	}
	return nil
}

// answer is the answer to one query, nil to what is none.
func (s *Server) answer(query []byte) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil || h.Response {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	reply := dnsmessage.Header{
		ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired, RecursionAvailable: true,
	}
	if h.OpCode != 0 || q.Class != dnsmessage.ClassINET {
		reply.RCode = dnsmessage.RCodeNotImplemented
		return message(reply, q, nil)
	}
	name, ok := s.known(q.Name.String())
	if !ok {
		reply.RCode = dnsmessage.RCodeNameError
		return message(reply, q, nil)
	}
	v4, v6 := s.names.addresses(name)
	switch {
	case q.Type == dnsmessage.TypeA:
		return message(reply, q, &dnsmessage.AResource{A: v4.As4()})
	case q.Type == dnsmessage.TypeAAAA && s.isIPv6:
		return message(reply, q, &dnsmessage.AAAAResource{AAAA: v6.As16()})
	}
	return message(reply, q, nil) // there is nothing else of it, least of all a key that hides server names
}

func message(h dnsmessage.Header, q dnsmessage.Question, body dnsmessage.ResourceBody) []byte {
	m := dnsmessage.Message{Header: h, Questions: []dnsmessage.Question{q}}
	if body != nil {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: keepAnswer}, Body: body,
		}}
	}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}

// known is the canonical form of a name that is asked for, if the policy knows it.
func (s *Server) known(asked string) (string, bool) {
	name, port, err := caps.ParseHost(strings.TrimSuffix(asked, "."))
	if err != nil || port != 0 || isAddress(name) {
		return "", false
	}
	if s.has(name) {
		return name, true
	}
	if is, more := s.unknown.isNew(name); is {
		s.cfg.Policy.Unknown(name, strings.TrimPrefix(more, "; "))
	}
	return "", false
}

// has reports whether there is a name.
func (s *Server) has(name string) bool {
	if caps.IsOwnName(name) {
		return s.cfg.Inside != nil && s.cfg.Inside.Has(name)
	}
	return s.cfg.Policy.Knows(name)
}

// impatient ends what is read of c after d. What it returns calls that off.
func impatient(c net.Conn, d time.Duration) (stop func()) {
	t := time.AfterFunc(d, func() { _ = c.SetReadDeadline(longAgo()) })
	return func() {
		if t.Stop() {
			return
		}
		_ = c.SetReadDeadline(time.Time{})
	}
}

// longAgo is a time that is over by any clock.
func longAgo() time.Time { return time.Unix(1, 0) }
