package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/launcher/agents"
)

func agentInstallCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "install BUNDLE", Short: "Install an agent, so that other agents can be allowed to launch it",
		Long: `Install verifies a bundle and compiles it as a launch would, so that its first
launch takes no longer than others, and copies it into the home. It takes the
place of what is installed under the same name, in one step, be that newer or
older. Each command that takes a BUNDLE takes its name; other agents launch it by
that, if agents = ["NAME"] is left of their policies.`,
		Example: "  rlp agent install agents/critic\n  rlp agent install critic-1.2.0.tar.gz --tenant acme",
		Args:    exactly("a BUNDLE"),
		RunE:    func(c *cobra.Command, args []string) error { return installAgent(c.Context(), a, args[0]) },
	}
}

func installAgent(ctx context.Context, a *app, path string) error {
	d, old, err := agents.Installer{
		Reader: a.reader(), Self: selfPath, Compiler: a.self,
		Slow: func(name string) func() func() { return progress(a.stderr, "compiling "+name+" ...") },
	}.Install(ctx, path)
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(d)
	case a.quiet:
		return nil
	}
	fmt.Fprintf(a.stdout, "%s %s is installed: %s\n", d.Agent, printable(d.Version), printable(d.Path))
	if old != nil && old.BundleDigest != d.BundleDigest {
		fmt.Fprintf(a.stdout, "it takes the place of %s %s\n", d.Agent, printable(old.Version))
	}
	return nil
}

func agentListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Print the installed agents", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			h, err := a.home()
			if err != nil {
				return err
			}
			list, err := agents.List(h)
			if err != nil {
				return inputErr(err)
			}
			if a.json {
				return a.printJSON(list)
			}
			none(a, len(list), "no agents are installed; rlp agent install BUNDLE installs one")
			for _, d := range list {
				line := fmt.Sprintf("%-20s %-10s %s", printable(d.Agent), printable(d.Version), printable(d.Path))
				if d.Error != "" {
					line += "\n  cannot be launched: " + printable(d.Error)
				}
				fmt.Fprintln(a.stdout, line)
			}
			return nil
		},
	}
}

func agentRemoveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "remove AGENT...", Short: "Remove installed agents", Args: atLeastOne("AGENT"),
		RunE: func(_ *cobra.Command, names []string) error {
			h, err := a.home()
			if err != nil {
				return err
			}
			removed, err := agents.Remove(h, names)
			if !a.json && !a.quiet {
				for _, name := range removed {
					fmt.Fprintf(a.stdout, "%s is removed\n", name)
				}
			}
			if err != nil || !a.json {
				return err
			}
			return a.printJSON(map[string]any{"removed": removed})
		},
	}
}
