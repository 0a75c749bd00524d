package hostcalls

import (
	"context"
	"errors"
	"io"

	"runloop.dev/rlp/caps"
)

// MaxInput bounds what a guest is given for one turn, in bytes.
const MaxInput = 1 << 20

// turnNext touches nothing beyond the run, so nothing is asked for; a layer can
// hide it, and then it ends no turn.
var turnNext = ungated("turn_next", 0, func(ctx context.Context, h *Host, _ []string) ([]byte, error) {
	if h.cfg.Turns == nil {
		return nil, errNoInput()
	}
	input, err := h.cfg.Turns.Next(ctx)
	if errors.Is(err, io.EOF) {
		return nil, errNoInput()
	}
	if err == nil {
		err = h.TakeInInput() // before the guest has it
	}
	return input, err
})

func errNoInput() error { return &Fail{Errno: Noent, Hint: "there is no further input"} }

// Bound holds the run to l from now on: what its budget counts, and what each
// family asks for when it is called.
func (h *Host) Bound(l caps.Limits) {
	h.cfg.Limits = l
	h.budget.Bound(l)
}
