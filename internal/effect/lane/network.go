package lane

import "errors"

// networkless says that a lane has no network to give.
func networkless(lane string) error {
	return &UnsupportedError{
		Lane: lane, Why: "it gives programs no network of their own", Remedy: "[exec] lane = \"ns\" or \"bwrap\"",
	}
}

// Plain refuses c in a lane that has no network to give, passes no streams through and
// does not look at what a program holds.
func (c *Command) Plain(lane string) error {
	why := ""
	switch {
	case c.Network != nil:
		return networkless(lane)
	case c.Live != nil:
		why = "it passes no streams of programs through"
	case c.SHA256 != "":
		why = "it does not look at what a program holds"
	default:
		return nil
	}
	return &UnsupportedError{Lane: lane, Why: why, Remedy: "[exec] lane = \"ns\" or \"bwrap\""}
}

var errUnserved = errors.New("the network of a program was not handed over")
