package proxy

import (
	"context"
	"net"
	"net/http"
	"time"
)

// Ways is a set of the ways in which a place may be spoken to.
type Ways uint8

// The ways. A place that may be spoken to by bytes is not looked into.
const (
	TLS       Ways = 1 << iota // https, whose server name is the place's
	HTTP                       // plain HTTP/1, judged request by request
	Bytes                      // any protocol over TCP
	Datagrams                  // UDP, which has no way out
	Sockets                    // of other kinds, and of Unix towards the host: Host is all of the target
	Inward                     // bytes to the program, from a port of the host that leads to it
)

// A Target is what a program asks for: a connection, or a request of plain HTTP.
type Target struct {
	Way     Ways   // one of them
	Host    string // a canonical host:port
	Request *http.Request
}

// String is the target as records show it, such as "https://api.example.com:443".
func (t Target) String() string {
	switch t.Way {
	case TLS:
		return "https://" + t.Host
	case HTTP:
		return "http://" + t.Host
	case Datagrams:
		return "udp://" + t.Host
	case Sockets:
		return t.Host
	}
	return "tcp://" + t.Host
}

// A Refusal is why something is refused that the policy would have let pass.
type Refusal uint8

// The refusals.
const (
	ServerName Refusal = iota // TLS or a request for another name than the one judged, or for none
	Address                   // the name leads to an address that is not reached
	Protocol                  // a switch of protocols, CONNECT, HTTP/2 without TLS, UDP
	Service                   // a name of rlp's own, otherwise than in plain HTTP at port 80
	Socket                    // one that programs do not have
	Unassigned                // an address of the network's own that stands for no name
)

// A Grant is what [Policy.Decide] allowed.
type Grant struct {
	// Named says that a grant names exactly this place, as addresses need that are not public.
	Named bool
	// Context ends when what was allowed is allowed no more.
	Context context.Context
	// Spend takes n bytes that are about to be carried, or says that there are none left; nil: it is not counted.
	Spend func(n int64) error
	// Consent is how a person said yes to it; "": nobody was asked.
	Consent string
}

// A Policy decides. Its methods are called by many goroutines at once.
type Policy interface {
	// Knows reports whether a connection to name could be allowed, on any port. It records nothing.
	Knows(name string) bool
	// Unknown is told of each name, once, that was asked for and is not known, with what is to be said of it, if
	// anything is.
	Unknown(name, detail string)
	// Ways is how hostPort may be spoken to now. It records nothing.
	Ways(hostPort string) Ways
	// Decide decides on t and records the decision; nothing was sent or looked up before. ctx ends with what is
	// decided on.
	Decide(ctx context.Context, t Target) (Grant, error)
	// Refuse records that t is refused after all.
	Refuse(t Target, why Refusal, detail string)
	// Done records what came of what Decide allowed.
	Done(t Target, g Grant, e End)
}

// An End is what came of a connection, or of a request of plain HTTP.
type End struct {
	Sent, Received int64 // bytes, as the program sees it
	Took           time.Duration
	Err            error // nil: both sides ended it
}

// An Inside answers requests to rlp's own names, which end in ".rlp": plain HTTP at
// port 80. What connects to one goes nowhere else, whatever a policy grants.
type Inside interface {
	http.Handler
	// Has reports whether there is such a name.
	Has(name string) bool
}

// An Outside is the way out of the machine, such as [egress.Client]: both judge
// every address that a name has before they connect to one of them.
type Outside interface {
	Connect(ctx context.Context, hostPort string, named bool) (net.Conn, error)
	Send(req *http.Request, named bool) (*http.Response, error)
}
