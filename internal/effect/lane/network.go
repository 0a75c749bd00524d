package lane

import "errors"

// networkless says that a lane has no network to give.
func networkless(lane string) error {
	return &UnsupportedError{
		Lane: lane, Why: "it gives programs no network of their own", Remedy: "[exec] lane = \"ns\" or \"bwrap\"",
	}
}

// Plain refuses c in a lane that has no network to give and passes no streams through.
func (c *Command) Plain(lane string) error {
	if c.Network != nil {
		return networkless(lane)
	}
	if c.Live == nil {
		return nil
	}
	return &UnsupportedError{
		Lane: lane, Why: "it passes no streams of programs through", Remedy: "[exec] lane = \"ns\" or \"bwrap\"",
	}
}

var errUnserved = errors.New("the network of a program was not handed over")
