package lane

import "fmt"

func (b Bounds) orDefault() Bounds {
	if b.Memory == 0 {
		b.Memory = MaxData
	}
	if b.Pids == 0 {
		b.Pids = MaxProcesses
	}
	return b
}

// ownThreads are those of a confined rlp, and more.
const ownThreads = 16

// roomFor says why a lane cannot bound processes so low: a group counts those
// that rlp itself has in it, and it has to start.
func (b Bounds) roomFor(lane string) error {
	if lane != "ns" && lane != "bwrap" || b.Pids == 0 || b.Pids >= ownThreads {
		return nil
	}
	return &UnsupportedError{
		Lane: lane, Why: fmt.Sprintf("pids = %d leaves no room for rlp's own, which are counted too", b.Pids),
		Remedy: fmt.Sprintf(`[exec] pids = %d or more, or lane = "container"`, ownThreads),
	}
}
