package meter

import (
	"slices"

	"runloop.dev/rlp/internal/engine/wasm"
)

// emitter writes the code of one body.
type emitter struct {
	out    []byte
	params uint32 // of the guest's; behind them is the counter
	locals uint32 // parameters and locals of the guest's
	refill uint32 // the index of the added import
}

// moved is where a local of the guest's is now.
func (e *emitter) moved(i uint32) uint32 {
	if i >= e.params {
		return i + 1
	}
	return i
}

// ask tells the host that the guest is about to make it hold more, which the
// number on top of the stack says.
func (e *emitter) ask() { e.out = append(wasm.AppendU32(append(e.out, opCall), e.refill), opDrop) }

// The counter is in the local behind the parameters. Behind the guest's own
// are up to two more, for what is on top of the stack.
func (e *emitter) counter() uint32 { return e.params }

func (e *emitter) scratch(i uint32) uint32 { return e.locals + 1 + i }

func (e *emitter) local(op byte, i uint32) { e.out = wasm.AppendU32(append(e.out, op), i) }

// add adds n to the number on top of the stack. The engine has no short form
// for a constant below zero.
func (e *emitter) add(n int64) {
	switch {
	case n > 0:
		e.out = append(wasm.AppendS64(append(e.out, opI64Const), n), opI64Add)
	case n < 0:
		e.out = append(wasm.AppendS64(append(e.out, opI64Const), -n), opI64Sub)
	}
}

// compare compares the counter, on top of the stack, to what it must be at
// least when that much is owed.
func (e *emitter) compare(owed int64, op byte) {
	e.out = append(wasm.AppendS64(append(e.out, opI64Const), -owed), op)
}

// check asks for more if the number on top of the stack, the counter, is too
// low.
func (e *emitter) check(owed int64) {
	e.compare(owed, opI64GeS)
	e.out = append(e.out, opIf, typeNone, opElse)
	e.local(opLocalGet, e.counter())
	e.add(owed)
	e.out = wasm.AppendU32(append(e.out, opCall), e.refill)
	e.add(-owed)
	e.local(opLocalSet, e.counter())
	e.out = append(e.out, opEnd)
}

// less leaves the counter on the stack, less cost.
func (e *emitter) less(cost int64) {
	e.local(opLocalGet, e.counter())
	e.add(-cost)
}

// charged leaves the counter on the stack, less cost, which it has now.
func (e *emitter) charged(cost int64) {
	e.less(cost)
	if cost != 0 {
		e.local(opLocalTee, e.counter())
	}
}

// room makes s twice as long when it is full. The language's own growth, of
// long slices, would ask for five times what is needed in the end.
func room[T any](s []T) []T {
	if len(s) == cap(s) {
		s = slices.Grow(s, len(s)+8)
	}
	return s
}
