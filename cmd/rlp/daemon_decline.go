package main

import (
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
)

// begin says to a client that its launch is under way, or declines it. Nothing
// was recorded before.
func (a *app) begin(c *compose.Composition, f launchFlags) error {
	s := a.invoker
	if s == nil {
		return nil
	}
	if s.declined = cannot(a, c, f); s.declined != "" {
		return errSilent
	}
	if err := s.call.Begin(); err != nil {
		s.declined = "the client is gone"
		return errSilent
	}
	return nil
}

// cannot says what a helper cannot do as the client itself would; "" if it can
// do all of it.
func cannot(a *app, c *compose.Composition, f launchFlags) string {
	asks := func(families ...caps.Family) bool {
		return slices.ContainsFunc(c.Policy.Base, func(e caps.Entry) bool {
			return slices.Contains(families, e.Grant.Family)
		})
	}
	provider := c.Config.Security.SecretsProvider
	switch {
	case f.noDaemon || a.getenv(daemonVariable) == "off":
		return "it is not to be used"
	case c.Home.Dir() != a.invoker.home:
		return "another home"
	case strayHome(a):
		return "a home that is written relatively"
	case asks(caps.Exec, caps.MCP, caps.Agents), c.Program != nil:
		return "programs, servers of tools or other agents" // their processes would be the helper's
	case slices.ContainsFunc(c.Bundle.Tools, func(t bundles.Tool) bool { return t.Exec != nil }):
		return "a tool that is a program"
	case !hasRoom(a, c):
		return "no memory left for another run"
	case provider != "age" && provider != "env" && asks(caps.Secrets, caps.Model, caps.Net):
		return "secrets that the session keeps"
	case c.Config.Security.Confirm == "ask" && mayAsk(a, c):
		return "a question at the terminal"
	case (f.turns || f.input == "-") && isTerminal(a.stdin):
		return "input from the terminal"
	case f.turns && slices.ContainsFunc(f.Overrides, func(path string) bool { return !filepath.IsAbs(path) }):
		return "an override that is read again"
	case slices.ContainsFunc(c.Config.Audit.Publish, publishesIntoOwn):
		return ownPath
	}
	return foreignVariable(a)
}

// hasRoom reports whether the run need not wait for the memory that it may have.
func hasRoom(a *app, c *compose.Composition) bool {
	plan, err := launcher.NewPlan(c.Policy)
	if err != nil {
		return true // which the launch says
	}
	n, _ := plan.Limits.Get(caps.MemoryBytes)
	return a.kept.Modules.Room(n)
}

// mayAsk reports whether a person may be asked something during the run.
func mayAsk(a *app, c *compose.Composition) bool {
	return c.Config.Security.ConfirmExternalActions || slices.ContainsFunc(c.Bundle.Tools, func(t bundles.Tool) bool {
		return t.Confirm
	})
}

// strayHome reports whether a home depends on where the client is.
func strayHome(a *app) bool {
	for _, dir := range []string{a.homeFlag, a.getenv("RUNLOOP_HOME"), a.getenv("HOME")} {
		if dir != "" && !filepath.IsAbs(dir) {
			return true
		}
	}
	return false
}

// foreignVariable names a variable that the process has read another value of.
func foreignVariable(a *app) string {
	for _, name := range processVariables() {
		mine, set := a.invoker.own.lookup(name)
		theirs, sets := a.lookup(name)
		if set != sets || mine != theirs {
			return "another " + strings.ToUpper(name)
		}
	}
	return ""
}

// publishesIntoOwn reports whether a place that is told of the log is such a path.
func publishesIntoOwn(place string) bool {
	kind, path, _ := strings.Cut(place, ":")
	return (kind == "file" || kind == "git") && eachHas(path)
}
