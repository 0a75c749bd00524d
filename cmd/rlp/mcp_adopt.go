package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/servers"
)

func mcpAdoptCommand(a *app) *cobra.Command {
	var client string
	var write, undo bool
	c := &cobra.Command{
		Use:   "adopt FILE",
		Short: "Make an assistant or IDE start its MCP servers through rlp",
		Long: `Adopt shows how FILE, the settings of a client, would be changed so that each of its MCP
servers is started by rlp mcp wrap, and changes nothing. With --write it writes a policy for
each, keeps a copy of what the settings were, puts tokens of the servers' variables into the
vault and out of the file, and changes it: comments and all else stay to the byte. --undo
makes the settings what they were.`,
		Example: "  rlp mcp adopt ~/.cursor/mcp.json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || write && undo {
				return usagef("rlp mcp adopt takes one FILE, and --write or --undo")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return adopt(c.Context(), a, servers.Options{Path: args[0], Client: client, Look: exec.LookPath}, write, undo)
		},
	}
	c.Flags().StringVar(&client, "client", "", "whose settings FILE is: `NAME` is "+strings.Join(servers.Clients(), ", "))
	c.Flags().BoolVar(&write, "write", false, "change FILE")
	c.Flags().BoolVar(&undo, "undo", false, "make FILE what it was before --write")
	return c
}

func adopt(ctx context.Context, a *app, o servers.Options, write, undo bool) error {
	vault, h, cfg, err := secretProvider(a)
	if err != nil {
		return err
	}
	if o.Path, err = filepath.Abs(o.Path); err != nil {
		return inputErr(err)
	}
	if err := compose.Own(h, o.Path); err != nil {
		return err
	}
	if undo {
		if err := servers.Undo(ctx, h, o.Path, vault); err != nil || a.quiet {
			return err
		}
		fmt.Fprintf(a.stdout, "%s is what it was; its tokens are in the vault, too (rlp secrets list)\n", printable(o.Path))
		return nil
	}
	if o.Self, err = selfPath(); err != nil {
		return err
	}
	o.Home, o.Config = h, cfg
	if usual, err := home.Locate("", "", a.getenv("HOME")); err != nil || usual != h.Dir() {
		o.HomeFlag = h.Dir()
	}
	ad, err := servers.Plan(o)
	if err != nil {
		return err
	}
	if write {
		if err := ad.Write(ctx, vault); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(ad)
	}
	printAdoption(a, ad)
	return nil
}

// printAdoption shows what changes, a line at a time, and what becomes of each server.
func printAdoption(a *app, ad *servers.Adoption) {
	for _, hunk := range ad.Hunks {
		fmt.Fprintf(a.stdout, "@@ %s:%d\n", printable(ad.Path), hunk.Line)
		for _, line := range hunk.Old {
			fmt.Fprintf(a.stdout, "- %s\n", printable(line))
		}
		for _, line := range hunk.New {
			fmt.Fprintf(a.stdout, "+ %s\n", printable(line))
		}
	}
	for _, s := range ad.Servers {
		why := s.Why
		if s.State == "wrapped" {
			why = "as " + s.Name + ", under " + s.Policy
		}
		fmt.Fprintf(a.stdout, "%-8s %s %s\n", s.State, printable(s.Key), printable(why))
		for _, note := range append(s.Notes, s.Secrets...) {
			fmt.Fprintf(a.stdout, "%-8s %s\n", "", printable(note))
		}
	}
	if !a.quiet && ad.Changed() && !ad.Written {
		fmt.Fprintln(a.stdout, "nothing is changed yet: add --write")
	}
}
