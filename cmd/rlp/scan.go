package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/record/analysis"
	"runloop.dev/rlp/launcher/lint"
)

func auditScanCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "scan [PATH...|installed|home]",
		Short: "Scan for policy bypasses and risky combinations",
		Long: `Scan looks at the home and at the installed agents, at one of the two, or at
bundles and profiles by their paths:

  regrant      the floors _delegate and _untrusted, and profiles bound to agents
               that others may launch, which leave a dangerous class: delegation,
               programs, secrets, installing (HIGH); writing to the knowledge
               base, removing files (MED)
  malformed    such a file that cannot be used, or a bundle that cannot (HIGH)
  trifecta     private data, untrusted content and a way out in one agent (HIGH),
               or along a chain of delegation (MED)
  inherit      delegates keep what they have, by capability_default (INFO)
  mcp          servers that are programs, or get secrets over a URL (HIGH); others
               that are reached over the network (INFO)
  perm         secrets that others may read, policies that others may write (HIGH)

It exits with 1 when a finding is HIGH.`,
		Example: `  rlp audit scan
  rlp audit scan installed --json
  rlp audit scan agents/mailer`,
		RunE: func(_ *cobra.Command, args []string) error {
			found, err := lint.Scan(a.reader(), args)
			if err != nil {
				return err
			}
			return ending(lint.ScanStatus(found), printScan(a, found))
		},
	}
}

func printScan(a *app, found []analysis.Finding) error {
	if a.json {
		if found == nil {
			found = []analysis.Finding{}
		}
		return a.printJSON(found)
	}
	count := map[analysis.Severity]int{}
	for _, f := range found {
		count[f.Severity]++
		fmt.Fprintln(a.stdout, printable(fmt.Sprintf("%-4s %s  %s: %s", f.Severity, f.Location, f.Rule,
			strings.ReplaceAll(f.Detail, "\n", "; "))))
	}
	if len(found) == 0 {
		fmt.Fprintln(a.stdout, "rlp audit scan: no findings")
		return nil
	}
	_, err := fmt.Fprintf(a.stdout, "rlp audit scan: %s: %d HIGH, %d MED, %d INFO\n", counted(len(found), "finding"),
		count[analysis.High], count[analysis.Med], count[analysis.Info])
	return err
}
