package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/engine/abi"
)

// A Body is what a run does that has no module: a program, or a part of rlp that
// stands between a program and whoever asks it. It reaches nothing of the run's but
// by c. A [*Stopped] is how the run ends, an [ExitCode] how its program did.
type Body func(ctx context.Context, c *Calls) error

// A Stopped is an end that a [Body] gives its run.
type Stopped struct {
	Outcome Outcome
	Status  int
	Message string
}

func (s *Stopped) Error() string { return s.Message }

// An ExitCode is the exit code of the program that a [Body] had run.
type ExitCode uint32

func (c ExitCode) Error() string { return "exit code " + strconv.FormatUint(uint64(c), 10) }

// Calls are the host calls of a run that has a [Body], by the table, the gate and
// the records of those of guests. They are made one after another.
type Calls struct {
	// Env is what of the operator's variables the run was given.
	Env []string
	// Input is what the run was given to read.
	Input []byte
	// Stdout and Stderr take the output of the run.
	Stdout, Stderr io.Writer
	// Gate decides for a program, and Host answers it: whoever asks one of them holds
	// [Calls.Lock]. Budget is what both count in.
	Gate   *gate.Gate
	Host   *hostcalls.Host
	Budget *budget.Budget
	// Base is what the run was launched with at most, Holds what was left of it.
	Base, Holds caps.Set
	Limits      caps.Limits

	mu    sync.Mutex
	funcs map[string]abi.Func
	mem   []byte       // what a guest's memory is to the table
	edits func() error // applies what the operator edited
}

// Lock is held by whoever asks the gate or the host.
func (c *Calls) Lock() sync.Locker { return &c.mu }

// Reload applies what the operator edited since it was last looked at, as the end of
// a turn does. It fails where that, or anything before it, cannot be recorded: then
// nothing may go on.
func (c *Calls) Reload() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.edits(), c.Gate.Err())
}

// Now is what the run holds now.
func (c *Calls) Now() caps.Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Gate.Set()
}

// room is what an answer has of the memory at first.
const room = 64 << 10

// Call makes the host call of a name. The error is a [*hostcalls.Answer]; any other is
// the end of the run.
func (c *Calls) Call(ctx context.Context, name string, args ...string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.funcs[name]
	if !ok || len(f.Params) != 2*len(args)+2 {
		return nil, fmt.Errorf("there is no host call %s of %d arguments", name, len(args))
	}
	text := strings.Join(args, "")
	if need := len(text) + room; len(c.mem) < need {
		c.mem = make([]byte, need)
	}
	copy(c.mem, text)
	stack, at := make([]uint64, 0, len(f.Params)), 0
	for _, a := range args {
		stack = append(stack, uint64(at), uint64(len(a)))
		at += len(a)
	}
	answer := c.mem[at : at+room]
	stack = append(stack, uint64(at), room)
	if err := f.Call(ctx, c.mem, stack); err != nil {
		return nil, err
	}
	n := int64(stack[0])
	if n >= 0 && n <= room {
		return append([]byte{}, answer[:n]...), nil
	}
	out, err := c.rest(ctx, at)
	if err != nil || n >= 0 {
		return out, err
	}
	e, err := hostcalls.ParseAnswer(out)
	if err != nil {
		return nil, fmt.Errorf("reading why %s failed: %w", name, err)
	}
	return nil, e
}

// rest is all that the last call has still to give, by way of the memory at a place.
func (c *Calls) rest(ctx context.Context, at int) ([]byte, error) {
	var out []byte
	for {
		stack := []uint64{uint64(at), room}
		if err := c.funcs["response_read"].Call(ctx, c.mem, stack); err != nil {
			return nil, err
		}
		if stack[0] == 0 {
			return out, nil
		}
		out = append(out, c.mem[at:at+int(stack[0])]...)
	}
}
