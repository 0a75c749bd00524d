// Command rlp launches untrusted WASM agents with exactly the capabilities that
// their operator left them, and records what they did.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"runloop.dev/rlp/internal/guest"
	"runloop.dev/rlp/internal/lane"
)

// sameSignal is how long after a signal another one is taken for the same: who
// ends a group of processes often signals each of them twice. After that a signal
// ends the program at once, whatever it waits for.
const sameSignal = 500 * time.Millisecond

func main() { os.Exit(Main()) }

// Main is the program: it returns the exit status. Tests run it as a command.
func Main() int {
	if len(os.Args) == 2 && os.Args[1] == lane.ConfineName {
		return lane.Confined()
	}
	handleWriteSignals()
	if status, done := guest.BeCompiler(os.Args, os.Stdin, os.Stdout); done {
		return status
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, func() { time.AfterFunc(sameSignal, stop) })
	return run(ctx, environment{
		args: os.Args[1:], env: os.Environ(),
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
	})
}
