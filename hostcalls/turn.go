package hostcalls

import (
	"context"
	"errors"
	"io"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
)

// MaxInput bounds what a guest is given for one turn, in bytes.
const MaxInput = 1 << 20

// Turns ends a guest's turn and begins its next one. What narrows the run may
// change there and nowhere else.
type Turns interface {
	// Next returns the next input, at most [MaxInput] bytes. An error that wraps
	// [io.EOF] says that there is none; a [*Fail] is for the guest; any other is
	// answered as io.
	Next(ctx context.Context) ([]byte, error)
}

// turnNext touches nothing beyond the run, so no family has a say in it; it is
// judged by its name alone, and what a layer hides ends no turn.
var turnNext = define("turn_next", 0, caps.Tool, gated[nothing]{
	decode:  func([]string) (nothing, error) { return nothing{}, nil },
	touches: func(nothing) (caps.Request, string) { return caps.Request{Family: caps.Tool, Name: turnScope}, "" },
	do: func(ctx context.Context, h *Host, _ gate.Permit, _ nothing) ([]byte, error) {
		if h.cfg.Turns == nil {
			return nil, errNoInput()
		}
		input, err := h.cfg.Turns.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil, errNoInput()
		}
		if err == nil {
			err = h.TakeInInput()
		}
		return input, err
	},
})

// turnScope is turn_next on the axis of host calls.
const turnScope = "session:turn_next"

func errNoInput() error { return &Fail{Errno: Noent, Hint: "there is no further input"} }

// Bound holds the run to l from now on: what its budget counts, and what each
// family asks for when it is called.
func (h *Host) Bound(l caps.Limits) {
	h.cfg.Limits = l
	h.budget.bound(l)
}

// bound holds b to l.
func (b *Budget) bound(l caps.Limits) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limits = l
}
