package guest

import (
	"errors"

	"github.com/tetratelabs/wazero/experimental"
)

var errMemoryLimit = errors.New("memory limit exceeded")

const errNoMemory Unable = "the machine has no memory left for the guest"

// memory is the guest's linear memory, its cap, and what counts as memory beside it. The engine asks it for every
// growth, so it alone knows that one was refused; and as it hands out the
// bytes, host functions need not ask the engine for them.
type memory struct {
	limit   uint64
	refused func() // records the end, before the guest can see anything
	missing func() // the same where the machine has less than the limit

	beside uint64 // what the host holds for the guest: tables, output, answers
	stack  stack
	stacks *stacks
	frame  uint64 // no frame of its native code is larger

	reserved []byte // address space up to the cap and a guard behind it, or nil where growing copies
	opened   uint64 // of it, from its beginning on
	view     []byte // what the guest has now
	peak     uint64
}

const (
	// besideFree is what a guest may make the host hold beside its memory before
	// it counts as memory: the tables, the globals, the calls and the output of an
	// honest one are less, and it may have all of its memory.
	besideFree = 1 << 20

	// elementSize is what an element of a table may take while the table grows,
	// itemSize what one of a segment does, and globalSize a global.
	elementSize, itemSize, globalSize = 16, 48, 64
)

// taken is what counts of a memory of that size, with what is beside it.
func taken(size, beside uint64) uint64 { return size + max(beside, besideFree) - besideFree }

// take lets the memory be of that size with so much beside it, or ends the run
// here and now: the panic unwinds the guest, which gets no chance to make something
// else of it.
func (m *memory) take(size, beside uint64) {
	if !m.allow(size, beside) {
		panic(errMemoryLimit)
	}
}

// allow lets the memory be of that size with so much beside it, or records the
// end. What is left is the stack's.
func (m *memory) allow(size, beside uint64) bool {
	if taken(size, beside+m.stack.depth()) > m.limit {
		m.refused()
		return false
	}
	m.beside = beside
	m.stack.bound(m.limit + besideFree - size - beside)
	m.peak = max(m.peak, taken(size, beside+m.stack.depth()))
	return true
}

// elements lets the host hold n elements more for the guest's tables. More than a
// table can have it will not.
func (m *memory) elements(n int64) {
	if max(n, -n) > maxTableSize {
		return
	}
	m.take(uint64(len(m.view)), m.beside+elementSize*uint64(n))
}

// Hold implements [abi.Holder]: what the guest printed, returned and passed, and
// what it is answered, is memory like its own. It is for host functions, while the
// guest waits for them.
func (m *Module) Hold(n int64) error {
	if mem := &m.run.mem; !mem.allow(uint64(len(mem.view)), uint64(int64(mem.beside)+n)) {
		return errMemoryLimit
	}
	return nil
}

// Allocate implements experimental.MemoryAllocator.
func (m *memory) Allocate(_, most uint64) experimental.LinearMemory {
	m.reserved = reserve(min(m.limit, most))
	return m
}

// Reallocate implements experimental.LinearMemory.
func (m *memory) Reallocate(size uint64) []byte {
	m.take(size, m.beside)
	switch {
	case size > m.room():
		m.move(size)
	case size > m.opened:
		m.reach(size)
	default: // as much as it has
	}
	return m.view
}

// room is how large the memory may get where it is.
func (m *memory) room() uint64 { return uint64(max(len(m.reserved)-guard, 0)) }

// reach opens what is reserved up to size. A program in Go ends if it asks for
// memory that is not there, so it is the system that is asked, where that can say
// no.
func (m *memory) reach(size uint64) {
	if !open(m.reserved, size) {
		m.missing()
		panic(errNoMemory)
	}
	m.opened, m.view = size, m.reserved[:size:size]
}

// move makes a larger memory where there was no room for all that it may have.
func (m *memory) move(size uint64) {
	if !reserves {
		grown := make([]byte, size)
		copy(grown, m.view)
		m.view = grown
		return
	}
	grown := reserve(size)
	if grown == nil || !open(grown, size) {
		release(grown)
		m.missing()
		panic(errNoMemory)
	}
	copy(grown, m.view)
	release(m.reserved)
	m.reserved, m.opened, m.view = grown, size, grown[:size:size]
}

// Free implements experimental.LinearMemory. It may be called twice.
func (m *memory) Free() {
	m.view = nil
	release(m.reserved)
	m.reserved, m.opened = nil, 0
}
