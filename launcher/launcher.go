package launcher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
)

// Options say where a [Launcher] finds the operator's files, and which program its
// child processes are.
type Options struct {
	// Home is the folder of settings, agents and the log; "": the usual one of Env.
	Home string
	// Tenant is whose store, agents and log are used; "": default.
	Tenant string
	// Env are variables as of a process: HOME, RUNLOOP_HOME, RUNLOOP__SECTION__KEY,
	// and those that agents are granted. Nil: there are none.
	Env []string
	// Helper is the path of rlp, for programs that do not call [Main].
	Helper string
	// HostFuncs are host calls of the program's own, which agents may import.
	HostFuncs []HostFunc
	// Warn is told what the operator should know; nil: nobody is. The report has it
	// too, where there is one.
	Warn func(text string)
}

// A Launcher launches agents of one home. It may be used by several goroutines.
type Launcher struct{ runner compose.Runner }

// A Request is one launch. Nothing in it widens what the bundle asks for.
type Request struct {
	Bundle string // path of a folder, an archive or a module without a bundle, or the name of an installed agent
	// Base are the capabilities that a module without a bundle asks for; without them
	// it holds nothing. A bundle's own policy says what it asks for, and Base is
	// refused. Nobody else than this program should decide it: what a user or a model
	// says belongs into Allow and Deny.
	Base  []string
	Args  []string
	Input []byte // the agent's stdin
	// Overrides are paths of further override files, Profiles names of profiles.
	Overrides, Profiles []string
	// Allow bounds the family of each capability to it; Deny takes capabilities away.
	Allow, Deny []string
	Limits      map[string]int64
	Params      map[string]string // paths for the placeholders of the policy
	Seed        *uint64           // makes random numbers repeatable
	KeepAllowed bool              // stores allowed calls in the audit log whatever the settings say

	// Record receives what is recorded of the run and of those that it launches; nil:
	// nobody does. It does not block.
	Record func(*Record)
	// Event receives the life of the run, in order; nil: nobody does.
	Event func(name string, fields map[string]any)
	// Stdout and Stderr receive what the agent prints as it comes; nil: it is held
	// for the report.
	Stdout, Stderr io.Writer
}

type (
	// A Record is one entry of the audit log: a decision or an event.
	Record = audit.Record
	// A Query is a request that a launch is asked about.
	Query = ask.Query
	// An Explanation says how a request would be decided, and by what.
	Explanation = ask.Explanation
)

// ErrNoHelper says that nothing could be the child processes of a launch.
var ErrNoHelper = errors.New("launches need child processes: call launcher.Main() first in main, or name the program " +
	"rlp by Options.Helper")

// Open is a launcher for a home, which is made if it is not there.
func Open(o Options) (*Launcher, error) {
	if o.Helper == "" && !isMain.Load() {
		return nil, ErrNoHelper
	}
	self := func() (string, error) { return o.Helper, nil }
	if o.Helper == "" {
		self = ownProgram
	} else if info, err := os.Stat(o.Helper); err != nil {
		return nil, fmt.Errorf("Options.Helper: %w", err)
	} else if info.IsDir() || info.Mode()&0o111 == 0 {
		return nil, fmt.Errorf("Options.Helper: %s is not a program", o.Helper)
	}
	if err := hostcalls.CheckAdded(o.HostFuncs); err != nil {
		return nil, fmt.Errorf("Options.HostFuncs: %w", err)
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	if o.Tenant == "" {
		o.Tenant = "default"
	}
	if o.Home != "" {
		var err error
		if o.Home, err = filepath.Abs(o.Home); err != nil {
			return nil, err
		}
	}
	l := &Launcher{compose.Runner{
		Reader: &compose.Reader{
			Env: o.Env, HomeDir: o.Home, HomeSet: o.Home != "", Tenant: o.Tenant, WorkingDir: compose.WorkingDir,
			Files:    compose.Canonical,
			Programs: func() []string { return programs(self) }, Say: o.Warn, Added: o.HostFuncs,
			Origin: compose.Origin{Surface: compose.FromProgram, Warn: o.Warn},
		},
		Helper: o.Helper, Self: self,
		ModelHost: func() (string, []string, error) {
			path, err := self()
			return path, []string{"rlp", modelHost}, err
		},
	}}
	_, err := l.runner.Home()
	return l, err
}

// Launch launches an agent and reports how the run ended. The error says why there
// is no report: nothing was begun.
func (l *Launcher) Launch(ctx context.Context, q Request) (*Report, error) {
	c, err := l.compose(q)
	if err != nil {
		return nil, err
	}
	return l.runner.Launch(ctx, c, &compose.Job{
		Args: q.Args, Input: q.Input, Seed: q.Seed, KeepAllowed: q.KeepAllowed, Event: q.Event, Stdout: q.Stdout,
		Stderr: q.Stderr,
	})
}

// Explain says how a launch of q that were made now would decide what is asked
// about, which layer says so, and which edit would change it.
func (l *Launcher) Explain(_ context.Context, q Request, about Query) (*Explanation, error) {
	c, err := l.compose(q)
	if err != nil {
		return nil, err
	}
	return ask.Explain(c.Subject(), about)
}

// compose reads all that decides what a launch of q may do.
func (l *Launcher) compose(q Request) (*compose.Composition, error) {
	c := &compose.Composition{Path: q.Bundle, Origin: l.runner.Origin}
	c.Origin.Record = q.Record
	return l.runner.Complete(c, q.flags())
}
