//go:build !linux

package program

import (
	"context"

	"runloop.dev/rlp/launcher/run"
)

// serve refuses: nothing here keeps a program from anything.
func (s *Start) serve(context.Context, *run.Calls) error {
	return &run.Stopped{
		Outcome: run.Unsupported, Status: run.StatusUnsupported, Message: "programs run as agents on Linux alone",
	}
}
