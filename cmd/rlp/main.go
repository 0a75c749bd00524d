// Command rlp launches untrusted WASM agents with exactly the capabilities that
// their operator left them, and records what they did.
package main

import (
	"os"

	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/internal/engine/guest"
)

func main() { os.Exit(Main()) }

// Main is the program: it returns the exit status. Tests run it as a command.
func Main() int {
	if len(os.Args) == 2 && os.Args[1] == lane.ConfineName {
		return lane.Confined()
	}
	env := environment{
		args: os.Args[1:], env: os.Environ(),
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
	}
	if len(os.Args) > 1 && os.Args[1] != "launch" {
		handleWriteSignals()
		if status, done := guest.BeCompiler(os.Args, os.Stdin, os.Stdout); done {
			return status
		}
	}
	ctx, listening := listen()
	env.listening = listening
	if status, done := askDaemon(env).wait(ctx); done {
		return status
	}
	return invoke(ctx, env)
}
