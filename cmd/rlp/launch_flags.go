package main

import (
	"github.com/spf13/pflag"

	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/draft"
)

type launchFlags struct {
	compose.Flags
	input                              string
	stream, dryRun, auditAllow, events bool
	turns, noDaemon                    bool
	seed                               string
	learning                           *draft.Learning
}

// registerPolicy defines the flags by which an invocation narrows.
func registerPolicy(fs *pflag.FlagSet, f *compose.Flags) {
	f.Bare = compose.AllowOfModule
	fs.Var((*textsFlag)(&f.Overrides), "override", "a further override `FILE`; narrows only")
	fs.Var((*textsFlag)(&f.Profiles), "profile", "apply the profile `NAME`; rlp caps profiles lists them")
	fs.Var((*textsFlag)(&f.Allow), "allow", "bound the family of `CAP` to it, such as fs:read:/tmp; a module without a bundle asks for just that")
	fs.Var((*textsFlag)(&f.Deny), "deny", "take `CAP` away, such as kb:write:*; may be given again")
	fs.Var((*textsFlag)(&f.Limits), "limit",
		"set a limit by `KEY=N`, such as wall_time_ms=1000: lowers what others say, lifts a default")
	fs.Var((*textsFlag)(&f.Params), "param", "fill in a placeholder of the policy by `NAME=PATH`")
}

func (f *launchFlags) register(fs *pflag.FlagSet) {
	registerPolicy(fs, &f.Flags)
	fs.StringVar(&f.input, "input", "", "the agent's stdin: `JSON` (or what its manifest takes), @FILE, or - for this stdin")
	fs.BoolVar(&f.stream, "stream", false, "pass the agent's output on as it comes")
	fs.BoolVar(&f.dryRun, "dry-run", false, "say what would be enforced, and launch nothing")
	fs.StringVar(&f.seed, "seed", "", "make random numbers repeatable, from the seed `N`")
	fs.BoolVar(&f.auditAllow, "audit-allow", false, "store allowed calls in the audit log whatever config.toml says")
	fs.BoolVar(&f.turns, "turns", false, "give the agent each line of this stdin as the input of a turn")
	fs.BoolVar(&f.events, "events", false, "print the life of the run as NDJSON on stderr")
	fs.BoolVar(&f.noDaemon, "no-daemon", false, "do not use the daemon (rlp daemon)")
}

// parseLaunch reads the arguments of a launch by the flags that its command has,
// without the commands around it.
func (a *app) parseLaunch() (f launchFlags, fs *pflag.FlagSet, err error) {
	fs = pflag.NewFlagSet("launch", pflag.ContinueOnError)
	fs.Usage = func() {}
	a.register(fs)
	f.register(fs)
	err = fs.Parse(a.args[1:])
	a.homeSet = fs.Changed("home")
	return f, fs, err
}

// oneBundle refuses all but a BUNDLE and what follows --, which stands before
// args[dash]; -1 says that there is none.
func oneBundle(args []string, dash int) error {
	if len(args) == 0 || dash == 0 || dash > 1 || dash < 0 && len(args) > 1 {
		return usagef("rlp launch takes one BUNDLE; arguments for the agent follow --")
	}
	return nil
}
