package main

import "github.com/spf13/cobra"

func (a *app) launchCommand() *cobra.Command {
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
