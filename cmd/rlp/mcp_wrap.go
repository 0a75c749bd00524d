package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/serve/mcpserver"
	"runloop.dev/rlp/launcher/compose"
)

func mcpWrapCommand(a *app) *cobra.Command {
	var f compose.Flags
	var w compose.Wrap
	var secrets []string
	var dry bool
	j := &compose.Job{}
	c := &cobra.Command{
		Use:   "wrap NAME [flags] (-- COMMAND ARGS... | --url URL)",
		Short: "Stand in front of an MCP server, whose tools are under a policy",
		Long: `Wrap speaks MCP over stdin and stdout with a client, such as an assistant or an IDE,
and has COMMAND, or the server at URL, do what the policy allows. COMMAND runs as
rlp run runs a program: with the files and the network that --policy or --preset and
--allow grant, a home that lasts for NAME, and besides what it names by absolute paths,
to be read. NAME is an agent id: caps/overrides/NAME.toml, profiles, limits, rlp runs
and rlp audit list treat the session as that agent's run.`,
		Example: `  rlp mcp wrap files --allow fs:write:/home/user/notes -- \
    /usr/bin/node /opt/mcp/server-filesystem/dist/index.js /home/user/notes
  rlp mcp wrap fetch --preset mcp-uvx --allow network:https:example.com -- \
    uvx mcp-server-fetch`,
		Args: func(c *cobra.Command, args []string) error {
			if dash := c.ArgsLenAtDash(); len(args) == 0 || dash == 0 || dash > 1 || dash < 0 && len(args) > 1 {
				return usagef("rlp mcp wrap takes one NAME; the command of the server follows --")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			w.Name, w.Command = args[0], args[1:]
			for _, s := range secrets {
				variable, id, named := strings.Cut(s, "=")
				if !named {
					variable, id = "", s
				}
				w.Secrets = append(w.Secrets, config.MCPSecret{Variable: variable, ID: id})
			}
			return a.mcpWrap(c.Context(), &w, f, j, dry)
		},
	}
	registerPolicy(c.Flags(), &f)
	c.Flags().Var((*textsFlag)(&secrets), "secret", "give the server the variable `VAR=ID`, with a secret's value")
	c.Flags().StringVar(&w.URL, "url", "", "the server is at `URL`")
	c.Flags().StringVar(&w.Policy, "policy", "", "what the server may have, from `FILE`, beside --allow")
	c.Flags().StringVar(&w.Preset, "preset", "", "what the preset `NAME` lets it have; rlp presets lists them")
	c.Flags().UintSliceVar(&w.Publish, "publish", nil, "have `PORT` of this host's loopback lead to the server's, for a login")
	c.Flags().BoolVar(&j.KeepAllowed, "audit-allow", false, "store allowed calls in the audit log whatever config.toml says")
	c.Flags().BoolVar(&dry, "dry-run", false, "say what would be enforced, and start nothing")
	return c
}

func (a *app) mcpWrap(ctx context.Context, w *compose.Wrap, f compose.Flags, j *compose.Job, dry bool) error {
	front := &mcpserver.Front{Name: w.Name, Version: version, In: io.NopCloser(a.stdin), Out: unclosed{a.stdout}}
	w.Serve, w.Ask = front.Serve, front.Confirm
	c, err := a.reader().Wrapped(w, f)
	if err != nil {
		return err
	}
	front.Approvers = c.Config.Approvals.Approvers
	if dry {
		return dryRun(ctx, a, c, j)
	}
	report, err := a.runner().Launch(ctx, c, j)
	if err != nil {
		return err
	}
	a.json, a.guestOut = false, &witness{w: io.Discard} // stdout is the client's
	err = a.tell(report, true)
	if !a.quiet && report.Usage.Denied > 0 {
		summarize(ctx, a, report, "", true)
	}
	return err
}
