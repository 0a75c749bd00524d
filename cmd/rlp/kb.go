package main

import (
	"github.com/spf13/cobra"
)

func kbCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "kb", Short: "Read, change, search and keep the knowledge base", Args: cobra.NoArgs, RunE: showHelp,
		Long: `What agents know: values under keys, in domains. Every command works beside
running agents.

Personal data is shown masked unless you say --raw. A backup holds it as it is.`,
	}
	c.AddCommand(
		kbDomainsCommand(a), kbGetCommand(a), kbPutCommand(a), kbDeleteCommand(a), kbListCommand(a), kbSearchCommand(a),
		kbWhyCommand(a), kbVerifyCommand(a), kbBackupCommand(a), kbRestoreCommand(a), kbImportCommand(a),
	)
	return c
}
