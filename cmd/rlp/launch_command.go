package main

import (
	"context"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/draft"
)

func launchCommand(a *app) *cobra.Command {
	var f launchFlags
	var r remoteFlags
	c := &cobra.Command{
		Use:   "launch BUNDLE [-- ARGS...]",
		Short: "Launch an agent with the capabilities that are left of its policy",
		Long: `Launch runs an agent. A BUNDLE is a path: of a folder, an archive or a module; or the
name of an installed agent, where nothing here is called so. With --remote it is the
name of one that is installed where the service is, or a path that is sent there.`,
		Example: `  rlp launch agents/notes_digest --param notes=testdata/notes --param out=/tmp/out
  rlp launch agent.tar.gz --deny kb:write:* --limit wall_time_ms=5000 -- --verbose
  rlp launch wordcount.wasm --allow fs:read:/home/user/notes
  rlp launch notes_digest --deny kb:write:*           # once rlp agent install has it
  rlp launch --remote notes_digest --input '{"day":1}'`,
		Args: func(c *cobra.Command, args []string) error {
			if err := r.joined(args); err != nil {
				return err
			}
			return oneBundle(args, c.ArgsLenAtDash())
		},
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("remote") {
				return a.launchRemote(c.Context(), args[0], args[1:], f, r)
			}
			if r != (remoteFlags{}) {
				return usagef("--token-file, --ca, --cert and --key go with --remote; add it, or leave them out")
			}
			return a.launch(c.Context(), args[0], args[1:], f)
		},
	}
	f.register(c.Flags())
	r.register(c.Flags(), "have a running rlp serve launch it")
	return c
}

// runFlags are those of a program that is launched as an agent.
type runFlags struct {
	launchFlags
	program compose.Program
	learn   string
}

func runCommand(a *app) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [flags] -- COMMAND ARGS...",
		Short: "Run any program under a policy, with the network and the files that it grants",
		Long: `Run starts COMMAND in a sandbox that holds what --policy or --preset and --allow
grant, and nothing else: system programs to be read, a home of its own that lasts for
its name, an empty folder to work in. Each connection is judged by name and port and
recorded before anything leaves; no variable, certificate or privilege is needed.
The agent's id is --name, else the program's name: caps/overrides/ID.toml, profiles,
rlp runs and rlp audit list treat the run as that agent's.`,
		Example: `  rlp run --allow network:https:api.github.com -- curl -s https://api.github.com/zen
  rlp run --preset codex --allow fs:write:. -- codex
  rlp run --policy build.caps --name build --dry-run -- /usr/bin/make`,
		Args: func(c *cobra.Command, args []string) error {
			if c.ArgsLenAtDash() != 0 || len(args) == 0 {
				return usagef("rlp run takes its flags first, and the program with its arguments behind --")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			f.program.Command = args
			return runProgram(c.Context(), a, &f)
		},
	}
	registerPolicy(c.Flags(), &f.Flags)
	c.Flags().StringVar(&f.program.Name, "name", "", "the agent's `ID`, which names its overrides and records")
	c.Flags().StringVar(&f.program.Policy, "policy", "", "what the program may have, from `FILE`, beside --allow")
	c.Flags().StringVar(&f.program.Preset, "preset", "", "what the preset `NAME` lets it have; rlp presets lists them")
	c.Flags().UintSliceVar(&f.program.Publish, "publish", nil, "have `PORT` of this host's loopback lead to the program's")
	c.Flags().StringVar(&f.learn, "learn", "", "write the least policy of what the program used to a new `FILE`")
	c.Flags().StringVar(&f.input, "input", "", "the program's stdin: `JSON`, @FILE, or - for this stdin")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would be enforced, and start nothing")
	c.Flags().BoolVar(&f.auditAllow, "audit-allow", false, "store allowed calls in the audit log whatever config.toml says")
	c.Flags().BoolVar(&f.events, "events", false, "print the life of the run as NDJSON on stderr")
	return c
}

// runProgram launches a program as rlp launch does a guest.
func runProgram(ctx context.Context, a *app, f *runFlags) error {
	a.launching = true
	learning, err := learn(a, f)
	if err != nil {
		return err
	}
	defer func() { _ = learning.Close() }()
	c, err := a.reader().Program(&f.program, f.Flags)
	if err != nil {
		return err
	}
	passes(ctx, a, c, f.input != "")
	if f.learning = learning; learning != nil {
		if err := draft.Learnable(c); err != nil {
			return err
		}
	}
	j := &compose.Job{KeepAllowed: f.auditAllow || f.learn != ""}
	if j.Input, j.ReadInput, err = a.input(c.Home, f.input); err != nil {
		return err
	}
	if f.dryRun {
		return dryRun(ctx, a, c, j)
	}
	return a.run(ctx, c, j, f.launchFlags, "")
}
