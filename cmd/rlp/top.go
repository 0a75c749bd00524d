package main

import (
	"context"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/serve/client"
	"runloop.dev/rlp/internal/serve/top"
)

func topCommand(a *app) *cobra.Command {
	var r remoteFlags
	c := &cobra.Command{
		Use:   "top",
		Short: "Show the runs of a running rlp serve, and their calls, on this terminal",
		Long: `Top shows the runs of the service of the home as they go on, and the calls of one
as they are decided; c cancels one, / filters, ? helps. Where stdout is no
terminal it prints the list once.`,
		Example: "  rlp top\n  rlp top --json\n  rlp top --remote=https://agents.example:8770 --token-file token",
		Args: func(c *cobra.Command, args []string) error {
			if err := r.joined(args); err != nil {
				return err
			}
			return cobra.NoArgs(c, args)
		},
		RunE: func(c *cobra.Command, _ []string) error { return watchRuns(c.Context(), a, r) },
	}
	r.register(c.Flags(), "the service to ask")
	return c
}

// snapshotRuns is how many runs are listed once.
const snapshotRuns = 200

func watchRuns(ctx context.Context, a *app, r remoteFlags) error {
	c, err := a.service(r)
	if err != nil {
		return err
	}
	defer c.Close()
	runs, err := c.Runs(ctx, snapshotRuns) // nobody is shown an empty screen for want of a service
	switch {
	case err != nil:
		return remoteErr(ctx, err)
	case a.json:
		if runs == nil {
			runs = []client.Run{}
		}
		return a.printJSON(map[string]any{"runs": runs})
	case !isTerminal(a.stdout):
		return top.Snapshot(a.stdout, runs)
	}
	return top.Run(ctx, c, top.Terminal{In: a.stdin, Out: a.stdout, Color: a.color(a.stdout)})
}
