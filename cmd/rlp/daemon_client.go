package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/serve/daemon"
	"runloop.dev/rlp/launcher"
)

// daemonVariable is "off" where no daemon is to be used.
const daemonVariable = "RUNLOOP_DAEMON"

// pending is a launch that a daemon was asked for.
type pending struct {
	client *daemon.Client // nil: nobody was asked
	env    environment
}

// askDaemon asks the daemon for a launch, where there is one: that is one
// system call that fails where there is none. The arguments are looked at as far as
// it takes to find the socket, and handed on as they are; the daemon reads them as
// anybody does, and declines what is not for it.
func askDaemon(env environment) pending {
	p := pending{env: env}
	if len(env.args) == 0 || env.args[0] != "launch" || env.getenv(daemonVariable) == "off" {
		return p
	}
	dir, no := daemonFlags(env.args)
	if no {
		return p
	}
	dir, err := home.Locate(dir, env.getenv("RUNLOOP_HOME"), env.getenv("HOME"))
	if err != nil {
		return p
	}
	c, err := daemon.Dial(filepath.Join(dir, "run", daemon.SocketName))
	if err != nil {
		return p
	}
	env.listening() // a signal from here on ends the run, and is no end of this process
	if err := c.Send(daemon.Request{Kind: daemon.Launch, Args: env.args, Env: env.env}, 0, 1, 2); err != nil {
		c.Close()
		return p
	}
	p.client = c
	return p
}

// daemonFlags are the home that the arguments name, and whether no daemon is to be
// used.
func daemonFlags(args []string) (dir string, no bool) {
	for i, arg := range args {
		switch {
		case arg == "--":
			return dir, no
		case arg == "--no-daemon":
			return "", true
		case arg == "--home" && i+1 < len(args):
			dir = args[i+1]
		case strings.HasPrefix(arg, "--home="):
			dir = arg[len("--home="):]
		}
	}
	return dir, no
}

// errDaemonGone is what is left to say of a run whose daemon is gone. Nobody
// launches again what may have begun.
var errDaemonGone = errors.New("the daemon ended before the run did, and the run with it; rlp audit list shows what " +
	"was recorded (it is not launched again)")

// wait waits for the end of the launch; done is false when nobody began it. The
// operator's signal, which ends ctx, ends the run, and not the wait.
func (d pending) wait(ctx context.Context) (status int, done bool) {
	if d.client == nil {
		return 0, false
	}
	defer d.client.Close()
	defer context.AfterFunc(ctx, d.client.Cancel)()
	answer := d.client.Wait()
	switch {
	case answer.Lost:
		a := &app{environment: d.env, launching: true}
		a.json = slices.Contains(d.env.args, "--json")
		return a.finish(&statusError{Status: launcher.StatusUnavailable, Err: errDaemonGone}), true
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
