// Package meter rewrites a WebAssembly module so that it meters itself.
//
// The unit is one instruction; nop, drop, block, loop, else and end are free,
// and bulk operations cost what they move besides. An instruction is charged
// when its metered block begins: a stretch of code that only a trap, or a call
// that does not return, leaves in the middle. What is charged depends on the
// module and its input alone, never on the engine, the machine or how often
// the host was asked.
//
// The counter is handed from function to function, in a register for the most
// part, and is in a global that no instruction of the guest can name whenever
// the host has its turn. Where it is found below zero (at function entries, loop
// headers, bulk operations, and behind calls that much comes after: every
// unbounded computation passes them) the module calls its one added import, and
// the host gives it another slice or ends it. See [Fuel] for the host's half.
//
// Between those places the counter may be off by a number known beforehand, so
// that a loop is charged for once, wherever that is cheapest, and what is
// compared with is that number instead of zero.
//
// Every index of the guest is checked against the index spaces that the guest
// itself has: what is added is out of its reach, whatever its bytes say. All
// other validation is left to the engine, and the result is valid only if the
// original was. The package does no I/O and knows no engine.
package meter

import (
	"fmt"
)

// Rewrite returns the module with its metering. The same module and option
// give the same bytes. Names of functions are kept, other custom sections are
// dropped. Time and memory are linear in len(module), whatever it says.
//
// Errors wrap one of [ErrMalformed], [ErrUnsupported], [ErrLimit] and
// [ErrReserved]. A module without an error may still be invalid; then the
// engine refuses it as it would have refused the original.
func Rewrite(module []byte, opt Option) ([]byte, error) {
	m := &rewriter{
		opt: opt.orDefault(), newType: map[string]uint32{},
		outside: map[uint32]uint32{}, inside: map[uint32]uint32{},
	}
	if len(module) > maxModule {
		return nil, fmt.Errorf("metering a module: %w: %d bytes, at most %d are allowed", ErrLimit, len(module), maxModule)
	}
	if err := m.read(module); err != nil {
		return nil, fmt.Errorf("metering a module: %w", err)
	}
	return m.bytes(), nil
}
