package guest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero/api"

	"runloop.dev/rlp/internal/engine/meter"
)

// unlimited is the budget of a guest that is metered and not bounded: no
// machine executes as much.
const unlimited = math.MaxInt64 / 2

// turn is after how many slices a guest lets others have the processor: about a
// millisecond. The scheduler would take it from the guest after ten, and who
// waits behind several guests, the collector and the watch over a deadline too,
// would wait for all of them.
const turn = 8

var errFuel = errors.New("the fuel is used up")

// fuel is what a run may still compute, and what it has. It belongs to the
// guest's goroutine.
type fuel struct {
	supply  meter.Fuel
	bounded bool
	budget  int64
	slices  uint
	last    int64             // what was left at the last refill
	counter api.MutableGlobal // the module's; nil until it asks for fuel, or has started
}

func newFuel(limit *int64) fuel {
	budget := int64(unlimited)
	if limit != nil {
		budget = min(max(*limit, 0), unlimited)
	}
	return fuel{budget: budget, bounded: limit != nil, supply: *meter.NewFuel(budget, 0), last: budget}
}

// metered makes the counter of mod known.
func (f *fuel) metered(mod api.Module) {
	if f.counter == nil {
		f.counter = mod.ExportedGlobal(meter.CounterName).(api.MutableGlobal)
	}
}

// spend takes from the budget what is counted in tally: exactly, so it has to
// know the counter. It is false when the budget is passed.
func (f *fuel) spend(tally *int64) bool {
	n := *tally
	*tally = 0
	if f.counter == nil { // nothing of the guest's has run
		_, ok := f.supply.Spend(n, 0)
		return ok
	}
	counter := int64(f.counter.Get())
	next, ok := f.supply.Spend(n, counter)
	if next != counter {
		f.counter.Set(uint64(next))
	}
	return ok
}

// left is what is left of the budget when the guest is in a call of the
// host's, or has ended. It is negative when the budget was passed.
func (f *fuel) left() int64 {
	if f.counter == nil {
		return f.supply.Left(0)
	}
	return f.supply.Left(int64(f.counter.Get()))
}

// used is how many instructions were charged, with what the tallies still
// hold. A charge that passed the budget ended the run and is not counted
// beyond it. A trap loses what the guest had counted since its last turn.
func (f *fuel) used(tallies []*int64) int64 {
	for _, t := range tallies {
		f.supply.Charge(*t)
		f.last -= *t
		*t = 0
	}
	return f.budget - max(min(f.left(), f.last), 0)
}

// exportRefill links the one function that a metered module imports besides
// its own. It is no host function of the bundle's: no import of that name gets
// past the rewriting.
func (c *code) exportRefill(ctx context.Context) error {
	i64 := []api.ValueType{api.ValueTypeI64}
	_, err := c.runtime.NewHostModuleBuilder(meter.ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(refill), i64, i64).Export(meter.ImportName).Instantiate(ctx)
	return err
}

// refill is called at the end of each slice: where the host gets a word in. It
// looks whether the run is to end, and gives the guest another slice if not.
func refill(ctx context.Context, mod api.Module, stack []uint64) {
	r := ctx.(*run)
	f := &r.fuel
	f.metered(mod)
	counter := int64(stack[0])
	if n, grows := meter.Growth(counter); grows {
		r.mem.elements(n)
		return
	}
	if f.slices++; f.slices%turn == 0 {
		runtime.Gosched()
	}
	f.last = f.supply.Left(counter)
	next, ok := f.supply.Refill(counter)
	if !ok {
		r.finish(End{Kind: Fuel, Err: errFuel})
	}
	if r.look(); r.over.Load() {
		f.counter.Set(uint64(counter)) // what was used is known exactly
		if ok {
			f.supply.Return(next - counter)
		}
		panic(errOver)
	}
	f.counter.Set(uint64(next))
	stack[0] = uint64(next)
}

// look ends the run if its time is over or the caller gave up. The watch does
// the same, but may come late while guests keep every processor busy.
func (r *run) look() {
	if r.over.Load() {
		return
	}
	select {
	case <-r.caller.Done():
		r.finish(End{Kind: Cancelled, Err: context.Cause(r.caller)})
	default:
		r.clock.look()
	}
}

func timedOut(wall time.Duration) End {
	return End{Kind: Timeout, Given: wall, Err: fmt.Errorf("the wall-clock limit of %s is over", wall)}
}
