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
	"errors"
	"fmt"
)

const (
	// ImportModule is where the rewritten module imports [ImportName] from.
	ImportModule = "rlp:meter"

	// ImportName is the one function that is imported besides the module's own:
	// (counter i64) -> i64, called when the counter is below zero. It returns
	// what the counter is to be, at least zero, or does not return. It is called
	// too before the guest makes the host hold more, see [Growth].
	ImportName = "refill"

	// CounterName is the exported mutable i64 that holds the counter whenever
	// the guest is in a call of the host, and after it has ended by itself.
	CounterName = "rlp:meter/counter"

	// StartName is the exported function of the start section, where there was
	// one: whoever runs the module calls it first, on a stack of their own choice.
	StartName = "rlp:meter/start"

	// Version changes whenever the same module would be rewritten otherwise, or
	// charged otherwise. It belongs into the key of whatever keeps a result.
	Version = 10
)

var (
	// ErrMalformed is wrapped when the bytes are no module, or name what the
	// module does not have.
	ErrMalformed = errors.New("malformed module")

	// ErrUnsupported is wrapped when a module needs what is not let in:
	// threads, exceptions, garbage collection, typed function references, tail
	// calls, 64-bit or several memories.
	ErrUnsupported = errors.New("unsupported module")

	// ErrLimit is wrapped when a module has more of something than [Option]
	// allows.
	ErrLimit = errors.New("module over a limit")

	// ErrReserved is wrapped when a module imports or exports by a name of this
	// package.
	ErrReserved = errors.New("module uses a reserved name")
)

// Option bounds what is taken on. The zero Option has the bounds named.
type Option struct {
	MaxNesting int // blocks within blocks in one function; 0 is 10,000
	MaxLocals  int // locals and parameters of one function; 0 is 50,000
}

// maxModule keeps places in what is written in 31 bits.
const maxModule = 1 << 26

func (o Option) orDefault() Option {
	if o.MaxNesting <= 0 {
		o.MaxNesting = 10_000
	}
	if o.MaxLocals <= 0 {
		o.MaxLocals = 50_000
	}
	return o
}

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
