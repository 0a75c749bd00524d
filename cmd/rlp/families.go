package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/launcher/ask"
)

func capsFamiliesCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "families", Short: "Print what is known of every family: tier, effects, and what it can do", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			list := ask.Families()
			if a.json {
				return a.printJSON(list)
			}
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "family\tcategory\ttier\teffects\tdestructive\tnetwork\tsandbox\tcalls")
			for _, d := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.Family, d.Category, d.Tier, strings.Join(d.Effects, " "),
					yesNo(d.Destructive), yesNo(d.NetworkFacing), yesNo(d.SandboxSafe), strings.Join(d.Tools, " "))
			}
			return w.Flush()
		},
	}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
