package meter

import "errors"

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

func (o Option) orDefault() Option {
	if o.MaxNesting <= 0 {
		o.MaxNesting = 10_000
	}
	if o.MaxLocals <= 0 {
		o.MaxLocals = 50_000
	}
	return o
}

// maxModule keeps places in what is written in 31 bits.
const maxModule = 1 << 26
