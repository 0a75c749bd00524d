package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/launcher/compose"
)

func presetsCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "presets",
		Short: "List and show policies for programs that are widely used",
		Long: `A preset is a policy for a program that is widely used: each host, variable and
program in it has its reason beside it. caps/presets/NAME.toml in the home takes the
place of a built-in one. Copy one, edit it, and give it as --policy FILE.`,
		Example: "  rlp presets list\n  rlp presets show mcp-npx > server.caps",
		Args:    cobra.NoArgs, RunE: showHelp,
	}
	c.AddCommand(&cobra.Command{
		Use: "list", Short: "Name the presets and what each is for", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return showPresets(a) },
	}, &cobra.Command{
		Use: "show NAME", Short: "Print the text of a preset", Args: exactly("a NAME"),
		RunE: func(_ *cobra.Command, args []string) error { return showPresets(a, args[0]) },
	})
	return c
}

// showPresets lists the presets, or prints the text of the one that is named.
func showPresets(a *app, names ...string) error {
	list, err := compose.Presets(a.reader(), names...)
	switch {
	case err != nil:
		return err
	case a.json && len(names) > 0:
		return a.printJSON(list[0])
	case a.json:
		return a.printJSON(list)
	case len(names) > 0:
		_, err := io.WriteString(a.stdout, list[0].Text)
		return err
	}
	for _, p := range list {
		fmt.Fprintf(a.stdout, "%-12s %s (%s)\n", p.Name, printable(p.About), printable(p.Source))
	}
	return nil
}
