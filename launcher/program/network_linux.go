package program

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/connect"
	"runloop.dev/rlp/internal/base/guard"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/internal/effect/netns"
	"runloop.dev/rlp/internal/effect/proxy"
)

const (
	// often is how long what was taken away may go on at most.
	often = 500 * time.Millisecond
	// grace is how long connections have to say what the program had left to say.
	grace = 2 * time.Second
	// mostPorts of the host's loopback lead out of a network.
	mostPorts = 64
)

// A Network is what one is made of.
type Network struct {
	Policy  *connect.Policy
	Outside proxy.Outside
	Inside  proxy.Inside // as [Inside] makes it; nil: there are no names that end in ".rlp"
	Now     func() time.Time
	// Base is what the run held when it was launched: what is granted of the host's
	// loopback are ports of the network.
	Base caps.Set
	// Published are listeners of the host that lead to the same ports of the program.
	Published proxy.Listeners
	// Look is called before what is open is reviewed; nil: nothing is.
	Look func()
}

// Own is the network, as a lane makes it for one program at a time.
func (n Network) Own() *lane.OwnNetwork {
	// Whoever records waits for a host call that has not ended; a lane does not.
	var telling sync.WaitGroup
	serve := func(s *netns.Sockets) (func(), error) {
		end, err := n.serve(s)
		if err != nil {
			return nil, err
		}
		return func() { end(); telling.Wait() }, nil
	}
	return &lane.OwnNetwork{
		Ports: loopback(n.Base), Inward: len(n.Published) > 0, Serve: serve,
		Refused: func(what string) {
			telling.Add(1)
			guard.Go(func() error { n.refused(what); return nil }, func(error) { telling.Done() })
		},
	}
}

func (n Network) refused(what string) {
	why := "no policy grants such a socket"
	if what == "unix://*" || what == "*://*" {
		why = "others were refused, and are not recorded one by one"
	}
	n.Policy.Refuse(proxy.Target{Way: proxy.Sockets, Host: what}, proxy.Socket, why)
}

func (n Network) serve(s *netns.Sockets) (end func(), err error) {
	p, err := proxy.Serve(s, proxy.Config{
		Policy: n.Policy, Outside: n.Outside, Inside: n.Inside, Published: n.Published, Now: n.Now,
	})
	if err != nil {
		return nil, err
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	guard.Go(func() error { n.review(stop); return nil }, func(error) { close(stopped) })
	return func() {
		p.Close(grace)
		close(stop)
		<-stopped
	}, nil
}

// review looks at what is open until stop.
func (n Network) review(stop chan struct{}) {
	t := time.NewTicker(often)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if n.Look != nil {
				n.Look()
			}
			n.Policy.Review()
		case <-stop:
			return
		}
	}
}

// loopback are the ports of the host's own addresses that base grants.
func loopback(base caps.Set) (ports []uint16) {
	for _, g := range base.BaseGrants() {
		if g.Family != caps.Net {
			continue
		}
		at, err := netip.ParseAddrPort(strings.Replace(g.Scope, "localhost:", "127.0.0.1:", 1))
		if err == nil && at.Addr().IsLoopback() && !slices.Contains(ports, at.Port()) && len(ports) < mostPorts {
			ports = append(ports, at.Port())
		}
	}
	return ports
}
