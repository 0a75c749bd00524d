package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
)

func capsCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "caps", Short: "See what an agent asks for, what is left of it, and why", Args: cobra.NoArgs,
		RunE: showHelp,
	}
	c.AddCommand(capsLintCommand(a), capsShowCommand(a), capsDiffCommand(a), capsExplainCommand(a),
		capsSuggestCommand(a), capsWhatifCommand(a), capsOverrideCommand(a), capsProfilesCommand(a),
		capsFamiliesCommand(a), capsSchemaCommand(a))
	return c
}

func capsShowCommand(a *app) *cobra.Command {
	var f compose.Flags
	c := &cobra.Command{
		Use: "show BUNDLE", Short: "Print base, layers and what is left", Args: exactly("a BUNDLE"),
		RunE: func(_ *cobra.Command, args []string) error {
			c, h, err := holdingOf(a, args[0], f)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(h)
			}
			unsetNote(a, c)
			printHolding(a, h, c.Paths)
			printTools(a, h.Tools)
			return nil
		},
	}
	registerPolicy(c.Flags(), &f)
	return c
}

func capsDiffCommand(a *app) *cobra.Command {
	var f compose.Flags
	c := &cobra.Command{
		Use: "diff BUNDLE", Short: "Print what each layer took away, and unused override entries", Args: exactly("a BUNDLE"),
		RunE: func(_ *cobra.Command, args []string) error {
			c, plan, err := a.reader().Plan(args[0], f)
			if err != nil {
				return err
			}
			diff := ask.DiffOf(c.Bundle.Manifest.Agent.String(), plan)
			if a.json {
				return a.printJSON(diff)
			}
			unsetNote(a, c)
			printDiff(a, diff)
			return nil
		},
	}
	registerPolicy(c.Flags(), &f)
	return c
}

func capsExplainCommand(a *app) *cobra.Command {
	var f compose.Flags
	var q ask.Query
	c := &cobra.Command{
		Use:   "explain [BUNDLE] REQUEST",
		Short: "Say why a request would be allowed or denied: every layer's vote",
		Long: `Explain prints the decision on a REQUEST, the scope that holds it, every layer's
vote with file and line, and the smallest edit that would change the decision,
which was tried on a copy of the policy.

With --run it does so for a run that was recorded, from the layers in its record,
as they held at its end, or at one of its records (--at): taint, reloads and
leases narrow a run while it goes on. BUNDLE is left out where it is not at hand, and
is what tells in which lines of policy.caps its grants are.

A REQUEST is ` + ask.RequestForms + `.`,
		Example: `  rlp caps explain agents/notes_digest kb:write:contacts
  rlp caps explain agents/notes_digest /tmp/out/x --write --deny fs:write:/tmp
  rlp caps explain agents/mailer https://api.example.com/send --method POST
  rlp caps explain 'kb_put drafts' --run 0198d2c4-7f1e --at 512`,
		Args: func(c *cobra.Command, args []string) error {
			if q.Run != "" && len(args) == 1 {
				return nil
			}
			return exactly("a BUNDLE", "a REQUEST")(c, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			bundle := ""
			if len(args) == 2 {
				bundle = args[0]
			}
			q.Text = args[len(args)-1]
			if err := q.Check(); err != nil {
				return err
			}
			if q.At > 0 && q.Run == "" {
				return usagef("--at is a record of a run: say which with --run; rlp audit list prints both")
			}
			return explainDecision(cmd.Context(), a, bundle, f, q)
		},
	}
	registerPolicy(c.Flags(), &f)
	c.Flags().BoolVar(&q.Write, "write", false, "of a path: to write it")
	c.Flags().BoolVar(&q.Remove, "delete", false, "of a path: to remove it")
	c.Flags().StringVar(&q.Method, "method", "", "of a URL: by this `METHOD`; otherwise by each")
	c.Flags().StringVar(&q.Run, "run", "", "explain what the recorded run `ID` was answered")
	c.Flags().Uint64Var(&q.At, "at", 0, "as it held at the run's record `N`, as rlp audit show prints it")
	return c
}

func capsSchemaCommand(a *app) *cobra.Command {
	kinds := []string{
		string(policy.KindPolicy), string(policy.KindManifest), string(policy.KindOverride),
		string(policy.KindProfile), string(policy.KindGrant),
	}
	return &cobra.Command{
		Use: "schema [" + strings.Join(kinds, "|") + "]", Short: "Print the JSON Schema of a document, for editors",
		ValidArgs: kinds, Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && !slices.Contains(kinds, args[0]) {
				return usagef("rlp caps schema takes one of %s", strings.Join(kinds, ", "))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			kind := policy.KindPolicy
			if len(args) == 1 {
				kind = policy.Kind(args[0])
			}
			_, err := a.stdout.Write(policy.Schema(kind))
			return err
		},
	}
}

// holding is what a launch of the bundle at a path would hold.
func holdingOf(a *app, path string, f compose.Flags) (*compose.Composition, *ask.Holding, error) {
	c, err := a.compose(path, f)
	if err != nil {
		return nil, nil, err
	}
	s, err := c.Equipped()
	if err != nil {
		return nil, nil, err
	}
	h, err := ask.Show(s)
	return c, h, err
}
