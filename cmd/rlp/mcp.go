package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/effect/mcpclient"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/servers"
	"runloop.dev/rlp/launcher/terminal"
)

func mcpCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Serve agents as tools over stdio (MCP); see the servers of tools that agents may call",
		Long: `Alone, it serves the installed agents as tools to a client of the Model Context
Protocol at the other end of stdin and stdout, such as an IDE or an assistant, and
ends when stdin does. Each call is a run as rlp launch would make it, starting from
the grant of tool calls (security.run_grant; without it, computing alone).

Its subcommands are about the other side. Agents that are granted a server of
config.toml, [mcp.servers.<name>], call its tools.
What a server says of its tools (names, descriptions, schemas) is kept when it is first
used. From then on a server that says anything else is refused until you have seen the
difference and accepted it.`,
		Example: `  {"mcpServers": {"agents": {"command": "rlp", "args": ["mcp"]}}}`,
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return mcpServe(c.Context(), a) },
	}
	c.AddCommand(mcpListCommand(a), mcpAcceptCommand(a), mcpWrapCommand(a), mcpAdoptCommand(a))
	return c
}

func mcpListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List servers, and what they are known by", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return mcpList(a) },
	}
}

func mcpList(a *app) error {
	h, cfg, err := a.settings()
	if err != nil {
		return err
	}
	lines := servers.List(h, cfg)
	if a.json {
		return a.printJSON(lines)
	}
	none(a, len(lines), "no servers: write [mcp.servers.<name>] in "+printable(h.Config()))
	for _, l := range lines {
		way := l.URL + strings.Join(l.Command, " ") // it has one of the two, or is wrapped
		fmt.Fprintf(a.stdout, "%-16s %-14s %s\n", l.Name, l.State, printable(way))
		if l.Since != nil && !a.quiet {
			fmt.Fprintf(a.stdout, "%-16s %s since %s, %s\n", "", counted(l.Tools, "tool"), l.Since.Format(time.RFC3339),
				l.Digest)
		}
		if l.State == "changed" {
			fmt.Fprintf(a.stdout, "%-16s says something else now and is refused: rlp mcp accept %s\n", "", l.Name)
		}
		if l.Problem != "" {
			fmt.Fprintf(a.stdout, "%-16s %s\n", "", printable(l.Problem))
		}
	}
	return nil
}

func mcpAcceptCommand(a *app) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "accept NAME",
		Short: "Review changed tool definitions of an MCP server, and accept them",
		Long: `Accept shows how the names, descriptions and schemas of a server's tools differ from
those that it is known by, as the run saw them that was refused, and takes the new ones in
their place. It asks at a terminal; elsewhere --yes is needed. Nothing is accepted but what
is shown: a server that has changed once more is refused once more.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("rlp mcp accept takes the NAME of one server; rlp mcp list shows them")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return mcpAccept(c.Context(), a, args[0], yes) },
	}
	c.Flags().BoolVar(&yes, "yes", false, "accept without being asked")
	return c
}

func mcpAccept(ctx context.Context, a *app, name string, yes bool) error {
	h, cfg, err := a.settings()
	if err != nil {
		return err
	}
	c, err := servers.Changed(h, cfg, name)
	if err != nil {
		return err
	}
	if c == nil {
		return nothingToAccept(a, name)
	}
	known, seen, changes := c.Known, c.Seen, c.Changes
	if !a.json {
		printChanges(a, name, known, seen, changes)
	}
	if !yes {
		if yes, err = agreed(ctx, a, name); err != nil || !yes {
			return err
		}
	}
	if err := c.Accept(); err != nil {
		return err
	}
	return answer(a, map[string]any{
		"server": name, "before": known.Digest, "after": seen.Digest, "changes": changes,
		"accepted": true,
	}, "accepted: %s is known by %s", name, seen.Digest)
}

func nothingToAccept(a *app, name string) error {
	return answer(a, map[string]any{"server": name, "changes": []any{}, "accepted": false},
		"nothing to accept: no run has heard %s say anything else than it is known by", name)
}

// agreed asks at a terminal.
func agreed(ctx context.Context, a *app, name string) (bool, error) {
	if !isTerminal(a.stdin) {
		return false, usagef("nobody can be asked here: rlp mcp accept %s --yes accepts what is shown above", name)
	}
	fmt.Fprint(a.stderr, "accept? [y/N] ")
	word, err := unlessOver(ctx, func() ([]byte, error) {
		line, err := terminal.ReadLine(a.stdin)
		return []byte(strings.ToLower(strings.TrimSpace(line))), err
	})
	if ctx.Err() != nil {
		return false, &statusError{
			Status: launcher.StatusCancelled,
			Err:    errors.New("interrupted before anything was accepted"),
		}
	}
	if yes := err == nil && (string(word) == "y" || string(word) == "yes"); yes {
		return true, nil
	}
	a.say("nothing is accepted")
	return false, nil
}

// printChanges shows a difference. Every word of it is the server's, and none
// reaches the terminal as anything but a word.
func printChanges(a *app, name string, known, seen *compose.Pin, changes []mcpclient.Change) {
	fmt.Fprintf(a.stdout, "%s\n- known since %s\n+ seen on     %s\n", name, known.At.Format(time.RFC3339),
		seen.At.Format(time.RFC3339))
	for _, c := range changes {
		fmt.Fprintf(a.stdout, "\n%s tool %s\n", c.Kind, printable(c.Tool))
		show := func(sign, what, text string) {
			for line := range strings.Lines(text) {
				fmt.Fprintf(a.stdout, "  %s %s: %s\n", sign, what, printable(strings.TrimRight(line, "\r\n")))
			}
		}
		for _, side := range []struct {
			sign string
			tool *mcpclient.Tool
		}{{"-", c.Before}, {"+", c.After}} {
			if t := side.tool; t != nil {
				if c.Kind != "changed" || c.Before.Description != c.After.Description {
					show(side.sign, "description", t.Description)
				}
				if c.Kind != "changed" || !bytes.Equal(c.Before.Schema, c.After.Schema) {
					show(side.sign, "schema", indented(t.Schema))
				}
			}
		}
	}
	fmt.Fprintln(a.stdout)
}

func indented(schema json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, schema, "", "  "); err != nil {
		return string(schema)
	}
	return b.String()
}
