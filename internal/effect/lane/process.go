package lane

import (
	"context"
	"errors"
	"fmt"
	"os"

	"runloop.dev/rlp/internal/base/guard"
)

// A Process is a program that is spoken with while it runs. Its lane has no
// other one meanwhile.
type Process struct {
	// Stdin and Stdout are our ends of the program's. Whoever closes Stdin tells
	// the program that there is no more.
	Stdin, Stdout *os.File

	end    context.CancelFunc
	done   chan struct{}
	pipes  *Pipes
	result *Result
	err    error
}

// Start is [Lane.Run] without waiting: the program's standard input and output
// are pipes, and MaxOutput bounds what is kept of its stderr alone. The program
// and all that it started end with ctx, at the latest with [Process.End]; that
// has to be called.
func Start(ctx context.Context, l Lane, c *Command) (*Process, error) {
	if w, ok := l.(waiter); ok && w.alone() {
		return nil, &UnsupportedError{
			Lane:   l.Name(),
			Why:    "this kernel cannot tell the programs of a run apart, so that one runs at a time",
			Remedy: `[exec] lane = "auto"`,
		}
	}
	stdin, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	stdout, theirs, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a pipe: %w", err), stdin.Close(), ours.Close())
	}
	own := *c
	own.Pipes = &Pipes{Stdin: stdin, Stdout: theirs}
	ctx, cancel := context.WithCancel(ctx)
	p := &Process{Stdin: ours, Stdout: stdout, end: cancel, done: make(chan struct{}), pipes: own.Pipes}
	guard.Go(func() (err error) {
		p.result, err = l.Run(ctx, &own)
		return err
	}, func(err error) {
		defer close(p.done)
		defer own.Pipes.Close()
		p.err = err
	})
	return p, nil
}

// A waiter is a lane that may have to run one program at a time in the whole
// process.
type waiter interface{ alone() bool }

// Done is closed when nothing is left of the program.
func (p *Process) Done() <-chan struct{} { return p.done }

// End ends the program with all that it started and waits until that is so. It
// returns how the program ended, nil when it was ended; the error is the lane's.
func (p *Process) End() (*Result, error) {
	p.end()
	<-p.done
	_, _ = p.Stdin.Close(), p.Stdout.Close()
	if errors.Is(p.err, context.Canceled) {
		return nil, nil
	}
	return p.result, p.err
}

// Stderr is what the program wrote there, after its end.
func (p *Process) Stderr() Output { return p.pipes.stderr }
