package main

import (
	"context"
	"errors"
	"os"
	"slices"

	"runloop.dev/rlp/internal/early"
	"runloop.dev/rlp/launcher"
)

// daemonVariable is "off" where no resident helper is to be used.
const daemonVariable = early.Variable

// pending is a launch that a resident helper was asked for.
type pending struct {
	*early.Pending
	env environment
}

// askDaemon asks the resident helper for a launch, where there is one, unless
// that was done before anything else.
func askDaemon(env environment) pending { return pending{early.Asked(env.args, env.env), env} }

// errDaemonGone is what is left to say of a run whose helper is gone. Nobody
// launches again what may have begun.
var errDaemonGone = errors.New("the resident helper ended before the run did, and the run with it; rlp audit list shows what was recorded (it is not launched again)")

// wait waits for what comes of the launch; done is false when nobody began it.
// The operator's signal ends the run, and not the wait.
func (d pending) wait(ctx context.Context) (status int, done bool) {
	if d.Pending == nil {
		return 0, false
	}
	answer := d.Wait(ctx)
	switch {
	case answer.Lost:
		a := &app{environment: d.env, launching: true}
		a.json = slices.Contains(d.env.args, "--json")
		return a.finish(&statusError{launcher.StatusUnavailable, errDaemonGone}), true
	case answer.Taken:
		return answer.Status, true
	}
	return 0, false
}

// isFile reports whether two paths are one file.
func isFile(one, other string) bool {
	a, err := os.Stat(one)
	if err != nil {
		return false
	}
	b, err := os.Stat(other)
	return err == nil && os.SameFile(a, b)
}
