// Package abi is the shape of one host function, free of any engine: what the
// guest interface is written in and what an engine links.
package abi

import (
	"context"
	"fmt"
)

// A Type is a value type of the WebAssembly core specification.
type Type byte

// The two types that the guest interface uses.
const (
	I32 Type = 0x7f
	I64 Type = 0x7e
)

// A Func is one function that a guest may import.
type Func struct {
	Module, Name    string
	Params, Results []Type

	// Call reads its parameters from stack and leaves its result in stack[0].
	// mem is the guest's whole linear memory as it is now: it may not be kept
	// after Call returns. A non-nil error ends the run (an [Exit], a deadline,
	// a record that could not be written); what a guest may survive is a result.
	Call func(ctx context.Context, mem []byte, stack []uint64) error

	// Cost is what a call is charged before it is made, in metered
	// instructions. Moved is where Call adds the bytes that it took from the
	// guest or gave it, each of which is charged as one more instruction; who
	// calls it takes them out. nil: none are counted.
	Cost  int64
	Moved *int64
}

// Exit is how a guest ends itself (proc_exit).
type Exit struct{ Code uint32 }

func (e *Exit) Error() string { return fmt.Sprintf("guest exit %d", e.Code) }
