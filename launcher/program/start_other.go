//go:build !linux

package program

import (
	"context"

	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/launcher/run"
)

// serve refuses: nothing here keeps a program from anything.
func (s *Start) serve(context.Context, *run.Calls) error { return unsupported() }

// Speak refuses like serve.
func (s *Start) Speak(*run.Calls, int) (*lane.Process, error) { return nil, unsupported() }

func unsupported() error {
	return &run.Stopped{
		Outcome: run.Unsupported, Status: run.StatusUnsupported, Message: "programs run as agents on Linux alone",
	}
}
