package lane

import "runloop.dev/rlp/internal/effect/netns"

// An OwnNetwork is what a program gets that is to reach something: every connection
// that it makes ends at sockets that Serve is given.
type OwnNetwork struct {
	// Ports are of the program's loopback addresses: what connects to these asks for
	// the same port of the host.
	Ports []uint16
	// Inward asks for sockets that connect to the program.
	Inward bool
	// Serve is given the sockets, which it takes, before the program begins. What it
	// returns is called when the program has ended.
	Serve func(*netns.Sockets) (end func(), err error)
	// Refused is told of each socket that a program was not given or that was not
	// connected, once, as a record shows it: "icmp://*", "unix:///srv/docker.sock"; of
	// "unix://*", or "*://*" of other sockets, where it is told of no further ones.
	Refused func(what string)
}
