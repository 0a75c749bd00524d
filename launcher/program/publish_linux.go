package program

import (
	"fmt"
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/proxy"
	"runloop.dev/rlp/launcher/run"
)

// publish listens at the ports of the host that lead to the program, as far as the run
// holds them.
func (s *Start) publish(base, holds caps.Set) (list proxy.Listeners, err error) {
	for _, port := range s.Ports {
		if slices.Contains(loopback(base), uint16(port)) {
			list.Close()
			return nil, &run.Stopped{Outcome: run.Refused, Status: run.StatusInput, Message: fmt.Sprintf(
				"--publish %d: the policy grants this port of the host to the program; take another one", port)}
		}
		if !leaves(holds, port) {
			continue
		}
		more, err := proxy.Listen(uint16(port))
		if err != nil {
			list.Close()
			return nil, &run.Stopped{Outcome: run.Refused, Status: run.StatusUnavailable, Message: fmt.Sprintf(
				"--publish %d: this port of the host cannot be had: %v", port, err)}
		}
		list = append(list, more...)
	}
	return list, nil
}
