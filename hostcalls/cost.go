package hostcalls

import "runloop.dev/rlp/caps"

// What a call is charged of the guest's fuel before it is made, in metered
// instructions; each byte of its arguments and of its response is one more.
// The charges are about what the host computes for it and depend on nothing
// but the import and the lengths, so that they are the same in every run.
// docs/limits.md has the table.
const (
	costCall    = 64        // nothing beyond the run itself
	costLookUp  = 4096      // is answered from what this machine holds
	costEffect  = 65_536    // changes something, or asks another machine
	costProcess = 1_048_576 // starts something
)

func (d def) cost() int64 {
	if !d.gated {
		return costCall
	}
	switch d.family {
	case caps.Time:
		return costCall
	case caps.KBRead, caps.Secrets:
		return costLookUp
	case caps.Exec, caps.Agents:
		return costProcess
	}
	return costEffect
}
