// Package early asks the resident helper for a launch before the rest of the
// program is there.
//
// The law: what is decided here is only whom to ask. The arguments are looked at
// as far as it takes to find the socket, and handed on as they are; the helper
// reads them as anybody does, and declines what is not for it.
//
// Go initializes a package as soon as what it imports is, in the order of their
// names. This one imports little, so that its turn comes before that of the
// engine and of the tables of capabilities, which take longer than asking does:
// a small program whose launch a helper does never initializes them. In another
// order the same is done a little later.
package early

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"runloop.dev/rlp/internal/home"
	"runloop.dev/rlp/internal/resident"
)

const (
	// Variable is "off" where no resident helper is to be used.
	Variable = "RUNLOOP_DAEMON"
	// ProgramVariable says where the file is that the whole program came out of:
	// the small one has asked already.
	ProgramVariable = "RLP_PROGRAM"
)

// SameSignal is how long after a signal another one is taken for the same: who
// ends a group of processes often signals each of them twice. After that a signal
// ends the program at once, whatever it waits for.
const SameSignal = 500 * time.Millisecond

// A Pending is a launch that a resident helper was asked for.
type Pending struct {
	client *resident.Client
	heard  context.Context // the operator's signals end it; nil: they are not heard here
	answer resident.Answer // of a client that is nil
}

// Ask asks the resident helper for a launch, where there is one: that is one
// system call that fails where there is none. It is nil when nobody was asked.
func Ask(args, env []string) *Pending {
	if len(args) == 0 || args[0] != "launch" || lookup(env, Variable) == "off" || lookup(env, ProgramVariable) != "" {
		return nil
	}
	dir, no := flags(args)
	if no {
		return nil
	}
	dir, err := home.Locate(dir, lookup(env, "RUNLOOP_HOME"), lookup(env, "HOME"))
	if err != nil {
		return nil
	}
	c, err := resident.Dial(filepath.Join(dir, "run", resident.SocketName))
	if err != nil {
		return nil
	}
	if err := c.Send(resident.Request{Kind: resident.Launch, Args: args, Env: env}, 0, 1, 2); err != nil {
		c.Close()
		return nil
	}
	return &Pending{client: c}
}

// Wait waits for what comes of the launch. The operator's signal, which ends ctx,
// ends the run, and not the wait.
func (p *Pending) Wait(ctx context.Context) resident.Answer {
	if p.client == nil {
		return p.answer
	}
	return p.wait(ctx, 0, nil)
}

// wait waits, and calls meanwhile once it has for so long.
func (p *Pending) wait(ctx context.Context, long time.Duration, meanwhile func()) resident.Answer {
	defer p.client.Close()
	defer context.AfterFunc(ctx, p.client.Cancel)()
	return p.client.WaitWhile(long, meanwhile)
}

// Heard is over when the operator's signal came before anybody else heard it.
func (p *Pending) Heard() context.Context {
	if p == nil || p.heard == nil {
		return context.Background()
	}
	return p.heard
}

func lookup(env []string, name string) string {
	for _, kv := range env {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v
		}
	}
	return ""
}

// flags are the home that the arguments name, and whether no helper is to be
// used.
func flags(args []string) (dir string, no bool) {
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
