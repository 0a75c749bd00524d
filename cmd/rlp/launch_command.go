//go:build !slim

package main

import "github.com/spf13/cobra"

func (a *app) launchCommand() *cobra.Command {
	var f launchFlags
	c := &cobra.Command{
		Use:   "launch BUNDLE [-- ARGS...]",
		Short: "Launch an agent with the capabilities that are left of its policy",
		Example: `  rlp launch agents/notes_digest --param notes=testdata/notes --param out=/tmp/out
  rlp launch agent.tar.gz --deny kb:write:* --limit wall_time_ms=5000 -- --verbose`,
		Args: func(c *cobra.Command, args []string) error { return oneBundle(args, c.ArgsLenAtDash()) },
		RunE: func(c *cobra.Command, args []string) error { return a.launch(c.Context(), args[0], args[1:], f) },
	}
	f.register(c.Flags())
	return c
}
