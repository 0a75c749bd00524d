package guest

import (
	"errors"

	"github.com/tetratelabs/wazero/experimental"
)

var (
	errMemoryLimit = errors.New("memory limit exceeded")
	errNoMemory    = errors.New("the machine has no memory left for the guest")
)

// memory is the guest's linear memory and its cap. The engine asks it for every
// growth, so it alone knows that one was refused; and as it hands out the
// bytes, host functions need not ask the engine for them.
type memory struct {
	limit   uint64
	refused func() // records the end, before the guest can see anything
	missing func() // the same where the machine has less than the limit

	reserved []byte // address space up to the cap and a guard behind it, or nil where growing copies
	opened   uint64 // of it, from its beginning on
	view     []byte // what the guest has now
	peak     uint64
}

// Allocate implements experimental.MemoryAllocator.
func (m *memory) Allocate(_, most uint64) experimental.LinearMemory {
	m.reserved = reserve(min(m.limit, most))
	return m
}

// Reallocate implements experimental.LinearMemory. A growth over the cap ends
// the run here and now: the panic unwinds the guest, which gets no chance to
// make something else of it.
func (m *memory) Reallocate(size uint64) []byte {
	if size > m.limit {
		m.refused()
		panic(errMemoryLimit)
	}
	switch {
	case size > m.room():
		m.move(size)
	case size > m.opened:
		m.reach(size)
	default: // as much as it has
	}
	m.peak = max(m.peak, size)
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
