package main

import (
	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/effect/model/providers"
	"runloop.dev/rlp/internal/effect/model/remote"
)

const modelHostName = "model-host"

// modelHostCommand is the program that asks providers: this one.
func modelHostCommand() (path string, args []string, err error) {
	path, err = selfPath()
	return path, []string{"rlp", modelHostName}, err
}

// modelHostCommands are the commands that speak to providers. They are for rlp
// itself, and not shown.
func modelHostCommands(a *app) []*cobra.Command {
	return []*cobra.Command{{
		Use: modelHostName, Hidden: true, Args: cobra.NoArgs,
		Short: "Ask providers for rlp, on stdin and stdout",
		RunE: func(c *cobra.Command, _ []string) error {
			return remote.Serve(c.Context(), a.stdin, a.stdout, providers.New(providers.Options{}))
		},
	}}
}
