package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/launcher/agents"
)

func (a *app) agentCommand() *cobra.Command {
	c := &cobra.Command{Use: "agent", Short: "Build, install and inspect agents", Args: cobra.NoArgs, RunE: showHelp}
	c.AddCommand(a.agentBuildCommand(), a.agentInstallCommand(), a.agentListCommand(), a.agentInspectCommand(),
		a.agentRemoveCommand())
	return c
}

func showHelp(c *cobra.Command, _ []string) error { return c.Help() }

func (a *app) agentBuildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build DIR...",
		Short: "Build agent sources into DIR/agent.bundle",
		Long: `Build compiles the Go program in each DIR for wasip1, fills the digests into its
manifest.toml, and writes DIR/agent.bundle.`,
		Example: "  rlp agent build agents/notes_digest",
		Args:    atLeastOne("DIR"),
		RunE: func(c *cobra.Command, dirs []string) error {
			for _, dir := range dirs {
				b, err := agents.Build(c.Context(), a.reader(), dir, selfPath)
				if err == nil && a.json {
					err = a.printJSON(b)
				}
				if err != nil {
					return err
				}
				if !a.json && !a.quiet {
					fmt.Fprintf(a.stdout, "%s %s: %s (%.1f MB)\n", b.Agent, printable(b.Version), b.Bundle, float64(b.WasmBytes)/1e6)
				}
			}
			return nil
		},
	}
}

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
