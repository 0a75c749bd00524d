package netns

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// The addresses of the namespace. Connections come from the own ones; queries for
// names go to a resolver's, which is any address, or to another one: port 53 of
// every address is answered.
var (
	Own4      = netip.AddrFrom4([4]byte{198, 18, 0, 1})
	Own6      = netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x72, 2: 0x6c, 3: 0x70, 15: 1})
	Resolver4 = netip.AddrFrom4([4]byte{198, 18, 0, 2})
)

// Pool4 and Pool6 are the addresses that stand for names: the block for
// benchmarks (RFC 2544), which no network routes, and one of unique local
// addresses. The first ones are the namespace's own.
var (
	Pool4 = netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18}), 15)
	Pool6 = netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x72, 2: 0x6c, 3: 0x70}), 64)
)

// interceptPort is where connections are led. It is privileged: no program takes
// it after us.
const interceptPort = 1

// queryPort is where queries for names are answered. The kernel refuses other datagrams.
const queryPort = 53

// An UnsupportedError says what of the kernel the network needs and has not got.
type UnsupportedError struct {
	Need, Remedy string
	Err          error
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("a network under a policy needs %s: %v (%s)", e.Need, e.Err, e.Remedy)
}

// Unwrap is what the kernel said.
func (e *UnsupportedError) Unwrap() error { return e.Err }

// A Plan says what network to make.
type Plan struct {
	// Ports are of the namespace's loopback addresses: what connects to these asks
	// for the same port of the host.
	Ports []uint16
	// Inward asks for sockets that connect to programs inside.
	Inward bool
	// Redirect makes it by the second way alone, whatever the kernel has.
	Redirect bool
}

// Make makes the network of the namespace that the process is in, which must be
// a new one in which it may administer the network, and listens in it.
func Make(p Plan) (*Sockets, error) {
	ways := []way{transparent(), redirected()}
	if p.Redirect {
		ways = ways[1:]
	}
	return makeBy(ways, p)
}

// makeBy is Make by the first of ways that the kernel has.
func makeBy(ways []way, p Plan) (*Sockets, error) {
	all := families()
	if err := ask(unix.NETLINK_ROUTE, append(up(), all[0].everything()...)); err != nil {
		return nil, &UnsupportedError{
			Need: "to administer a network namespace", Err: fmt.Errorf("routes of IPv4: %w", err),
			Remedy: "sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns",
		}
	}
	list := all[:1]
	if err := ask(unix.NETLINK_ROUTE, all[1].everything()); err == nil { // else IPv6 is off here: nothing leads there
		list = all[:]
	}
	w, err := ruled(ways, list)
	if err != nil {
		return nil, err
	}
	s := &Sockets{Redirected: w.kind == "nat"}
	if err = s.listen(list, p.Ports); err == nil && p.Inward {
		err = s.inward(list)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// ruled installs the rules of the first of ways that works.
func ruled(ways []way, list []family) (way, error) {
	var errs []error
	missing := ""
	for _, w := range ways {
		err := ask(unix.NETLINK_NETFILTER, w.rules(list))
		if err == nil {
			return w, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", w.name, err))
		missing += ", or " + w.modules
	}
	return way{}, &UnsupportedError{
		Need: "the kernel's modules " + missing[len(", or "):], Err: errors.Join(errs...),
		Remedy: "modprobe -a nf_tables nft_tproxy; a kernel without them is built with CONFIG_NFT_TPROXY",
	}
}
