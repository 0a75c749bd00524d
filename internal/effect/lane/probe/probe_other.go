//go:build !linux

package probe

import (
	"context"
	"io"

	"runloop.dev/rlp/internal/effect/lane"
)

// Main is for Linux.
func Main([]string, io.Writer) int { return 2 }

// A Bait is for Linux: no lane is tried elsewhere.
type Bait struct{}

// Lay lays nothing.
func Lay(string) (*Bait, error) { return &Bait{}, nil }

// Close takes nothing up.
func (*Bait) Close() error { return nil }

// A Survey is what a lane was found to be.
type Survey struct {
	Name     string
	Missing  *lane.UnsupportedError
	Controls lane.Controls
	Findings []Finding
}

// Of says that no lane is to be had here.
func Of(_ context.Context, name string, _ lane.Config, _ *Bait, _ string) (Survey, error) {
	s := Survey{Name: name, Missing: &lane.UnsupportedError{
		Lane: name, Why: "programs are run on Linux alone",
		Remedy: "run rlp on Linux, or in a virtual machine with it",
	}}
	for i := range s.Controls {
		s.Controls[i] = lane.Label{Why: s.Missing.Why, Remedy: s.Missing.Remedy}
	}
	return s, nil
}
