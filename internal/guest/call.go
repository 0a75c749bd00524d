package guest

import (
	"context"
	"errors"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"runloop.dev/rlp/internal/abi"
)

// errOver unwinds a guest whose end is known already.
var errOver = errors.New("the run is over")

// hostFunc is f as the engine calls it. The engine hands over its stack, so no
// value is copied; the memory is the run's own, so none is asked for.
//
// Under a budget a call is paid for before it is made, and what it moved
// after: a guest whose fuel is used up does nothing more. Without one the
// charges stay where they are counted until the run has ended.
func (m *Module) hostFunc(f abi.Func) api.GoFunc {
	call, cost, moved := f.Call, f.Cost, m.tally(f.Moved)
	return func(ctx context.Context, stack []uint64) {
		r := m.run
		*moved += cost
		if r.over.Load() || r.fuel.bounded && !r.fuel.spend(moved) {
			r.refuse()
		}
		r.inHost = true
		err := call(ctx, r.mem.view, stack)
		r.inHost = false
		if err != nil {
			r.hostEnd(err)
			panic(errOver)
		}
		if r.fuel.bounded && !r.fuel.spend(moved) {
			r.refuse()
		}
	}
}

// tally is where the charges of a function are counted.
func (m *Module) tally(moved *int64) *int64 {
	if moved == nil {
		moved = new(int64)
	}
	if !slices.Contains(m.tallies, moved) {
		m.tallies = append(m.tallies, moved)
	}
	return moved
}

// refuse unwinds the guest. Without an end it is the fuel that is used up.
func (r *run) refuse() {
	r.finish(End{Kind: Fuel, Err: errFuel})
	panic(errOver)
}
