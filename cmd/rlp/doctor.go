package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/doctor"
)

func doctorCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Look for what is wrong with the home and this machine, and say what mends it", Args: cobra.NoArgs,
		Long: `Doctor looks at the home, its permissions, keys and locks, the settings and what
they name, overrides, profiles and templates, the disk, the clock and the lanes. Of
each problem it prints the command that mends it. It changes nothing and exits 0
when all is well, 1 otherwise.`,
		RunE: func(c *cobra.Command, _ []string) error { return examine(c.Context(), a) },
	}
}

func examine(ctx context.Context, a *app) error {
	dir, err := wantedHome(a)
	if err != nil {
		return inputErr(err)
	}
	list := doctor.Examine(ctx, doctor.Here(a.runner(), dir, time.Now()))
	status := launcher.StatusOK
	if !doctor.Well(list) {
		status = launcher.StatusFinding
	}
	if a.json {
		return ending(status, a.printJSON(map[string]any{"ok": status == launcher.StatusOK, "checks": list}))
	}
	for _, f := range list {
		switch {
		case f.Note != "":
			fmt.Fprintln(a.stdout, fitted(a.stdout, "note     "+f.Check+": "+printable(f.Note)))
			continue
		case f.OK:
			fmt.Fprintf(a.stdout, "ok       %s\n", f.Check)
			continue
		case f.Skipped != "":
			fmt.Fprintf(a.stdout, "skipped  %s: %s\n", f.Check, f.Skipped)
			continue
		}
		fmt.Fprintln(a.stdout, fitted(a.stdout, "problem  "+f.Check+": "+printable(f.Problem)))
		fmt.Fprintf(a.stdout, "         mend: %s\n", printable(f.Mend)) // a command, which is copied whole
	}
	return ending(status, nil)
}
