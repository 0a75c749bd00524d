// Package hostiletest makes modules that attack what decodes, compiles and
// runs them.
//
// Each says how it may end, and every end is one that leaves the host's memory
// and time bounded. None is kept as a file: they are made when they are needed.
package hostiletest

// Ends of an attack, as bits.
const (
	Refused = 1 << iota // before any instruction of it: 65
	Timeout             // 124
	Fuel                // 137
	Memory              // 138
	Trap                // 1
	OK                  // it ran, or exited by itself

	// Bounded is any end at all, in bounded time and memory.
	Bounded = Refused | Timeout | Fuel | Memory | Trap | OK
)

// An Attack is one module.
type Attack struct {
	Name  string
	What  string
	Ends  int  // those that are right
	Slow  bool // the engine alone is busy with it for seconds, or dies of it
	Bytes func() []byte
}

// All is every attack.
func All() []Attack { return append(append(Claims(), Bombs()...), Runs()...) }
