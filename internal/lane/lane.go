// Package lane is where programs run. A [Lane] starts one program at a time,
// gives it exactly what its [Command] says, and ends it with everything that it
// started before [Lane.Run] returns.
//
// A lane does not decide: which program may run was judged before. What a lane
// can keep a program from, and how well, it says itself: [Lane.Level].
package lane

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Level is how well a lane keeps programs from the network and from
// everything of the machine that the run was not given.
type Level uint8

// The levels, as `rlp lanes` names them.
const (
	Unsupported Level = iota
	BestEffort
	Enforced
)

// String is the level's word.
func (l Level) String() string {
	switch l {
	case BestEffort:
		return "best_effort"
	case Enforced:
		return "enforced"
	}
	return "unsupported"
}

// A Lane runs the programs of one run of an agent, one at a time.
type Lane interface {
	// Name is the lane's word in config.toml.
	Name() string
	// Level is what the lane promises.
	Level() Level
	// Run starts the program and waits for its end, at the latest until the
	// command's timeout is over or ctx ends; then it and all that it started
	// are ended. The end of ctx is an error, the end of the time a result.
	Run(ctx context.Context, c *Command) (*Result, error)
	// Close ends what is left and gives up what the lane holds.
	Close() error
}

// A Command is one program to run, decided and complete.
type Command struct {
	// Program is the canonical path of the file: no part of it is a link.
	Program string
	// Argv are the arguments; the first is what the program is told that it is called.
	Argv []string
	// Env is the whole environment but for what the lane says of itself, NAME=value.
	Env []string
	// Dir is where the program starts, relative to the working folder of the
	// run or an absolute path in it; "" is that folder.
	Dir string
	// Stdin is what the program reads.
	Stdin []byte
	// Timeout is more than 0.
	Timeout time.Duration
	// MaxOutput is what is kept of each stream, in bytes; what comes after it is
	// read and thrown away.
	MaxOutput int
}

// A Result is how a program ended.
type Result struct {
	// ExitCode is the program's own, or 128 and the signal that ended it.
	ExitCode int
	// TimedOut says that the time was over, and the program was ended.
	TimedOut       bool
	Stdout, Stderr Output
}

// An Output is what a program wrote to one stream.
type Output struct {
	Data []byte
	Cut  bool // there was more than the lane keeps
}

// Open is the lane that config.toml names, for one run. It starts nothing. The
// lane "auto" is the one that enforces what programs must be kept from.
func Open(name string, cfg NativeConfig) (Lane, error) {
	switch name {
	case "native":
		return Native(cfg)
	case "auto":
		return nil, &UnsupportedError{name, "no lane of this version enforces that programs have no network"}
	}
	return nil, &UnsupportedError{name, "this version does not have it"}
}

// What a program can be refused for.
var (
	ErrNotExist   = errors.New("no such program")
	ErrNotProgram = errors.New("not an executable regular file")
	ErrClosed     = errors.New("no folder for programs")
	ErrDir        = errors.New("not a folder within the working folder")
	ErrTooBig     = errors.New("more arguments and environment than the system takes")
	ErrStray      = errors.New("processes that do not end")
)

// An UnsupportedError says that a lane is not to be had here.
type UnsupportedError struct{ Lane, Why string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("the lane %s is not available: %s", e.Lane, e.Why)
}
