package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/netns"
)

// NetworkCapabilities are what it takes, until programs begin.
func NetworkCapabilities() []uintptr {
	return []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_NET_RAW}
}

// network makes the network that the plan asks for, in the namespace that this
// process is in, and hands it over.
func (p *Plan) network() error {
	if !p.Network {
		return nil
	}
	s, err := netns.Make(netns.Plan{Ports: p.Ports, Inward: p.Inward})
	if err != nil {
		return err
	}
	defer s.Close()
	if p.Proof { // nobody takes it
		return nil
	}
	return s.Send(SocketFile)
}

// networkFiles are the files in /etc by which names are asked of the network.
func networkFiles() map[string]string {
	return map[string]string{
		"resolv.conf":   fmt.Sprintf("nameserver %s\noptions timeout:5 attempts:1\n", netns.Resolver4),
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
	}
}

// networkRules let programs make sockets of TCP and UDP, which end at the network
// that was made for them, and ask the kernel for addresses and routes. Other protocols
// have code of their own in the kernel, and some of other families leave the
// namespace. Those of Unix are as localRules say. Where a broker tells of what is
// refused it is the one who refuses it.
func (p *Plan) networkRules() []unix.SockFilter {
	without := on(unix.SYS_SOCKET, refuse(unix.EACCES))
	rest := socketRules()[len(without):]
	if p.Told {
		return rest // the broker has the others
	}
	return append(on(unix.SYS_SOCKET, p.madeSockets(refuse(unix.EACCES))...), rest...)
}

// madeSockets are the rules of sockets that programs make; the others are refused.
func (p *Plan) madeSockets(refused unix.SockFilter) []unix.SockFilter {
	return append(p.localRules(refused), []unix.SockFilter{
		load(argument(0)),
		equal(unix.AF_INET, 3, 0), equal(unix.AF_INET6, 2, 0), equal(unix.AF_NETLINK, 15, 0), refused,
		load(argument(1)), // of AF_INET and AF_INET6
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: SocketTypes},
		equal(unix.SOCK_STREAM, 1, 0), equal(unix.SOCK_DGRAM, 4, 9),
		load(argument(2)), equal(0, 6, 0), equal(unix.IPPROTO_TCP, 5, 0), refused,
		load(argument(2)), equal(0, 2, 0), equal(unix.IPPROTO_UDP, 1, 0), refused,
		allow(), refused,
		load(argument(2)), equal(unix.NETLINK_ROUTE, 0, 1), allow(), refused,
	}...)
}

// localRules are about sockets of Unix, before those about others. Without private
// folders none are made but pairs: a path could lead to a service of the machine.
// Where a broker connects them they are those of connections alone, for datagrams
// reach somebody without that call.
func (p *Plan) localRules(refused unix.SockFilter) []unix.SockFilter {
	family, is := load(argument(0)), equal(unix.AF_UNIX, 0, 1)
	switch {
	case len(p.Sockets) == 0:
		return nil
	case !p.Dials:
		return []unix.SockFilter{family, is, allow()}
	}
	types := []unix.SockFilter{
		load(argument(1)),
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: SocketTypes},
		equal(unix.SOCK_STREAM, 1, 0), equal(unix.SOCK_SEQPACKET, 0, 1),
		allow(), refused,
	}
	is.Jf = uint8(len(types))
	return append([]unix.SockFilter{family, is}, types...)
}
