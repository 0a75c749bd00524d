package main

import (
	"context"

	"runloop.dev/rlp/internal/serve/daemon"
)

// launchFor does one launch for a client: the very same invocation, with what
// is the client's in the place of what is this process's.
func launchFor(ctx context.Context, a *app, call *daemon.Call, s invoker) daemon.Outcome {
	s.call = call
	env := environment{
		args: call.Args, env: call.Env, stdin: call.Stdin, stdout: call.Stdout, stderr: call.Stderr,
		invoker: &s, kept: a.kept,
	}
	if len(call.Args) == 0 || call.Args[0] != "launch" {
		return daemon.Outcome{Declined: "no launch"}
	}
	status := invoke(ctx, env)
	return daemon.Outcome{Status: status, Declined: s.declined}
}
