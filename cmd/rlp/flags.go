package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"runloop.dev/rlp/launcher/auditlog"
)

func showHelp(c *cobra.Command, _ []string) error { return c.Help() }

// atLeastOne is the argument rule of commands that take one thing or more.
func atLeastOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("%s needs a %s; see %s --help", c.CommandPath(), what, c.CommandPath())
		}
		return nil
	}
}

// exactly is the argument rule of commands that take these things and no more.
func exactly(what ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != len(what) {
			return usagef("%s takes %s; see %s --help", c.CommandPath(), strings.Join(what, " and "), c.CommandPath())
		}
		return nil
	}
}

// filterFlags are the flags by which records are asked for.
func filterFlags(f *auditlog.Filter, fs *pflag.FlagSet) {
	fs.StringVar(&f.Run, "run", "", "only the run `ID`")
	fs.StringVar(&f.Agent, "agent", "", "only the agent `NAME`")
	narrowerFlags(f, fs)
}

// narrowerFlags are those that make sense of one run, too.
func narrowerFlags(f *auditlog.Filter, fs *pflag.FlagSet) {
	fs.StringVar(&f.Family, "family", "", "only this family or capability, such as fs or fs.write")
	fs.StringVar(&f.Decision, "decision", "", "only `allow|deny`")
	fs.StringVar(&f.Since, "since", "", "only from then on: a time (2026-01-02T15:04:05Z) or an age (90m, 24h, 7d)")
	fs.IntVar(&f.Limit, "limit", 0, "only the last `N`; 0: all")
}
