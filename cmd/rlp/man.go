package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"runloop.dev/rlp/launcher"
)

// manCommand writes the manual that packages have. It is what --help prints, so
// nothing is said twice.
func manCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write a manual page of each command into a folder", Hidden: true, Args: exactly("a DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return inputErr(err)
			}
			c.Root().InitDefaultCompletionCmd()
			return writeManual(c.Root(), args[0])
		},
	}
}

// writeManual writes the page of a command, and of those below it.
func writeManual(c *cobra.Command, dir string) error {
	c.InitDefaultHelpFlag()
	name := pageName(c)
	if err := os.WriteFile(filepath.Join(dir, name+".1"), []byte(manPage(c)), 0o644); err != nil {
		return inputErr(err)
	}
	for _, below := range c.Commands() {
		if !below.IsAvailableCommand() || below.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := writeManual(below, dir); err != nil {
			return err
		}
	}
	return nil
}

// pageName is what `man` finds a command by.
func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage is the page of a command, in the macros of man(7).
func manPage(c *cobra.Command) string {
	var p page
	p.line(`.TH "%s" 1 "" "rlp %s" "rlp"`, strings.ToUpper(pageName(c)), version)
	p.section("NAME")
	p.line(`%s \- %s`, roff(pageName(c)), roff(c.Short))
	p.section("SYNOPSIS")
	p.line(`\fB%s\fP%s`, roff(c.CommandPath()), roff(strings.TrimPrefix(c.UseLine(), c.CommandPath())))
	p.section("DESCRIPTION")
	if p.text(c.Long); c.Long == "" {
		p.text(c.Short + ".")
	}
	p.commands(c)
	p.options("OPTIONS", c.NonInheritedFlags())
	p.options("OPTIONS OF EVERY COMMAND", c.InheritedFlags())
	if c.Example != "" {
		p.section("EXAMPLES")
		p.verbatim(c.Example)
	}
	if !c.HasParent() {
		p.surroundings()
	}
	p.section("EXIT STATUS")
	if c.HasParent() && c.Name() != "launch" {
		p.line(`0, or what rlp(1) says.`)
	} else {
		for _, s := range statuses {
			p.item(s.code, s.means)
		}
	}
	p.others(c)
	return p.String()
}

// An exitMeaning is a row of the table of exit codes.
type exitMeaning struct{ code, means string }

// statuses are what rlp ends with.
var statuses = []exitMeaning{
	{fmt.Sprint(launcher.StatusOK), "It went well."},
	{"N", "The agent's own exit code, when it is none of these."},
	{
		fmt.Sprint(launcher.StatusFinding),
		"The agent trapped, or something was found: an error in a file, a log that is not what was recorded.",
	},
	{fmt.Sprint(launcher.StatusUsage), "The command line makes no sense."},
	{fmt.Sprint(launcher.StatusInput), "A bundle, policy, override, profile or JSON is not as it must be."},
	{
		fmt.Sprint(launcher.StatusUnavailable),
		"A component is not available: a provider, a lane, a collector, a service; or rlp itself failed while the agent ran.",
	},
	{fmt.Sprint(launcher.StatusAudit), "The audit record could not be written."},
	{fmt.Sprint(launcher.StatusPolicy), "Refused by policy before any instruction of the agent."},
	{fmt.Sprint(launcher.StatusUnsupported), "A control that was asked for cannot be enforced here."},
	{fmt.Sprint(launcher.StatusTimeout), "The deadline passed."},
	{fmt.Sprint(launcher.StatusCancelled), "Interrupted by the operator."},
	{fmt.Sprint(launcher.StatusFuel), "The fuel was used up."},
	{fmt.Sprint(launcher.StatusMemory), "The memory was used up."},
}

// A page is a manual page as it is written.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *page) section(name string) { p.line(".SH %s", name) }

func (p *page) item(head, text string) { p.line(".TP\n\\fB%s\\fP\n%s", roff(head), roff(text)) }

// text is paragraphs; what is indented stays as it is.
func (p *page) text(s string) {
	for _, paragraph := range strings.Split(strings.TrimSpace(s), "\n\n") {
		p.line(".PP")
		if strings.HasPrefix(paragraph, "  ") {
			p.verbatim(paragraph)
			continue
		}
		p.line("%s", roff(paragraph))
	}
}

func (p *page) verbatim(s string) { p.line(".nf\n%s\n.fi", roff(s)) }

func (p *page) commands(c *cobra.Command) {
	if !c.HasAvailableSubCommands() {
		return
	}
	p.section("COMMANDS")
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			p.item(pageName(below)+"(1)", below.Short)
		}
	}
}

func (p *page) options(name string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.section(name)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		head := "--" + f.Name
		if f.Shorthand != "" {
			head = "-" + f.Shorthand + ", " + head
		}
		p.line(".TP\n\\fB%s\\fP \\fI%s\\fP\n%s", roff(head), roff(value), roff(usage))
		switch f.DefValue {
		case "", "0", "0s", "false", "[]":
		default:
			p.line("(default %s)", roff(f.DefValue))
		}
	})
}

// surroundings are the files and variables of every command.
func (p *page) surroundings() {
	p.section("ENVIRONMENT")
	p.item("RUNLOOP_HOME", "The home folder, where --home says nothing.")
	p.item("RUNLOOP__SECTION__KEY", "A setting, in the place of what config.toml says.")
	p.item("RUNLOOP_DAEMON", `"off" where no daemon is to be asked.`)
	p.item("NO_COLOR", "No colour, if it is set.")
	p.section("FILES")
	p.item("~/.runloop/config.toml", "Settings.")
	p.item("~/.runloop/trust-policy.toml", "Keys that sign bundles, and what each may be granted.")
	p.item("~/.runloop/caps/overrides/AGENT.toml", "What an operator takes away from an agent; _default.toml from all.")
	p.item("~/.runloop/caps/profiles/NAME.toml", "Named profiles.")
	p.item("~/.runloop/agents", "Installed agents.")
	p.item("~/.runloop/kb", "The knowledge base and the audit log.")
	p.item("~/.runloop/log", "Every decision, as JSON lines.")
}

// others are the pages beside this one.
func (p *page) others(c *cobra.Command) {
	var names []string
	if c.HasParent() {
		names = append(names, pageName(c.Parent())+"(1)")
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			names = append(names, pageName(below)+"(1)")
		}
	}
	if len(names) > 0 {
		p.section("SEE ALSO")
		p.line("%s", roff(strings.Join(names, ", ")))
	}
}

// roff is text in which nothing is a command of the formatter's.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
