package main

import (
	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/effect/lane/probe"
)

// commands are all there are.
func commands(a *app) []*cobra.Command {
	if a.invoker != nil { // a client asks for nothing else
		return []*cobra.Command{launchCommand(a)}
	}
	all := []*cobra.Command{
		launchCommand(a), runCommand(a), capsCommand(a), auditCommand(a), agentCommand(a), secretsCommand(a),
		kbCommand(a), lanesCommand(a), mcpCommand(a), daemonCommand(a), serveCommand(a), topCommand(a),
		tokenCommand(a), runsCommand(a), doctorCommand(a), presetsCommand(a), configCommand(a), versionCommand(a),
	}
	return append(append(all, manCommand(a)), modelHostCommands(a)...)
}

// elsewhere does what is no command: to try a lane from inside.
func (a *app) elsewhere() (code int, done bool) {
	if len(a.args) > 0 && a.args[0] == probe.Name && a.invoker == nil {
		return probe.Main(a.args[1:], a.stdout), true
	}
	return 0, false
}
