//go:build !slim

package main

import "github.com/spf13/cobra"

// commands are all there are.
func (a *app) commands() []*cobra.Command {
	all := []*cobra.Command{a.launchCommand(), a.capsCommand(), a.auditCommand(), a.agentCommand(), a.secretsCommand(), a.kbCommand(), a.versionCommand()}
	return append(all, a.modelHostCommands()...)
}

// elsewhere says that another program has done this invocation. The whole
// program does each itself.
func (a *app) elsewhere() (code int, done bool) { return 0, false }

// fit says that another program must launch what was composed.
func (a *app) fit(*composition, bool) error { return nil }
