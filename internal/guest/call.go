package guest

import (
	"context"
	"errors"

	"github.com/tetratelabs/wazero/api"

	"runloop.dev/rlp/internal/abi"
)

// errOver unwinds a guest whose end is known already.
var errOver = errors.New("the run is over")

// hostFunc is f as the engine calls it. The engine hands over its stack, so no
// value is copied; the memory is the run's own, so none is asked for.
//
// A call is paid for before it is made, and what it moved after: a guest whose
// fuel is used up does nothing more.
func (m *Module) hostFunc(f abi.Func) api.GoFunc {
	call, cost, moved := f.Call, f.Cost, f.Moved
	if moved == nil {
		moved = new(int64)
	}
	return func(ctx context.Context, stack []uint64) {
		r := m.run
		if r.over.Load() || !r.fuel.charge(cost) {
			r.refuse()
		}
		r.inHost = true
		err := call(ctx, r.mem.view, stack)
		r.inHost = false
		n := *moved
		*moved = 0
		if err != nil {
			r.fuel.charge(n)
			r.hostEnd(err)
			panic(errOver)
		}
		if !r.fuel.charge(n) {
			r.refuse()
		}
	}
}

// refuse unwinds the guest. Without an end it is the fuel that is used up.
func (r *run) refuse() {
	r.finish(End{Kind: Fuel, Err: errFuel})
	panic(errOver)
}
