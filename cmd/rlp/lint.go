package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/lint"
)

func capsLintCommand(a *app) *cobra.Command {
	var agent string
	var profiles []string
	var strict bool
	c := &cobra.Command{
		Use:   "lint PATH...",
		Short: "Check policies, manifests, overrides and bundles, and show what overrides change",
		Long: `Lint checks each PATH: a bundle or agent folder (with the overrides that apply to
it), a policy.caps, a manifest.toml, or an override file. With --agent, override
files are held against that installed agent.

It exits with 1 when there are errors (with --strict, warnings too), and with 65
when a file cannot be read.`,
		Args: atLeastOne("PATH"),
		RunE: func(_ *cobra.Command, paths []string) error {
			l, err := lint.Files(a.reader(), lint.Query{Paths: paths, Profiles: profiles, Agent: agent, Self: selfPath})
			if err != nil {
				return err
			}
			for _, c := range l.Composed {
				unsetNote(a, c)
			}
			return ending(l.Status(strict), printLint(a, l))
		},
	}
	c.Flags().StringArrayVar(&profiles, "profile", nil, "apply the profile `NAME` to bundles")
	c.Flags().StringVar(&agent, "agent", "", "hold override files against the installed agent `ID`")
	c.Flags().BoolVar(&strict, "strict", false, "let warnings fail too")
	return c
}

func printLint(a *app, l *lint.Result) error {
	if a.json {
		if l.Findings == nil {
			l.Findings = []policy.Finding{}
		}
		return a.printJSON(l.Findings)
	}
	for _, f := range l.Findings {
		fmt.Fprintln(a.stdout, fitted(a.stdout, printable(f.String())))
	}
	for _, p := range l.Plans {
		printDiff(a, ask.DiffOf("", p))
	}
	if len(l.Findings) == 0 && !a.quiet {
		fmt.Fprintln(a.stdout, "no findings")
	}
	return nil
}
