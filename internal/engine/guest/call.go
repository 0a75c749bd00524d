package guest

import (
	"context"
	"errors"
	"slices"

	"runloop.dev/rlp/internal/engine/abi"
)

// errOver unwinds a guest whose end is known already.
var errOver = errors.New("the run is over")

// linked is a host function of one run.
type linked struct {
	call  func(ctx context.Context, mem []byte, stack []uint64) error
	cost  int64
	moved *int64
}

func (m *Module) linked(f abi.Func) linked { return linked{f.Call, f.Cost, m.tally(f.Moved)} }

// trampoline is the import with an index, of any run, as the engine calls it. It
// hands over its stack, so no value is copied; the memory is the run's own, so
// none is asked for.
type trampoline struct{ i int }

// Call does what the run has at the index.
//
// Under a budget a call is paid for before it is made, and what it moved
// after: a guest whose fuel is used up does nothing more. Without one the
// charges stay where they are counted until the run has ended.
func (t *trampoline) Call(ctx context.Context, stack []uint64) {
	r := ctx.(*run)
	f := &r.links[t.i]
	*f.moved += f.cost
	if r.looks.Load() {
		r.before(f)
	}
	r.inHost = t.i + 1
	err := f.call(r, r.mem.view, stack)
	if err != nil || r.looks.Load() {
		r.after(f, err)
	}
	r.inHost = 0
}

// before unwinds a guest whose run is over, or which cannot pay for f.
//
//go:noinline
func (r *run) before(f *linked) {
	if r.over.Load() || r.fuel.bounded && !r.fuel.spend(f.moved) {
		r.refuse()
	}
}

// after unwinds a guest whose call of f ends it, or which cannot pay for what it
// moved.
//
//go:noinline
func (r *run) after(f *linked, err error) {
	if err != nil {
		r.hostEnd(err)
		panic(errOver)
	}
	if r.fuel.bounded && !r.fuel.spend(f.moved) {
		r.refuse()
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
