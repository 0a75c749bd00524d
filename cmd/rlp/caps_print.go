package main

import (
	"fmt"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
)

// unsetNote says on stderr which placeholders are left out of what is printed.
func unsetNote(a *app, c *compose.Composition) {
	for _, p := range c.Unset {
		a.say(fmt.Sprintf("{%s} has no value, so what it grants is left out (%s); give it with --param %s=PATH",
			p.Name, printable(p.Description), p.Name))
	}
}

// printHolding prints for a person what an agent holds.
func printHolding(a *app, h *ask.Holding, paths launcher.Paths) {
	fmt.Fprintln(a.stdout, "base")
	printScopes(a, beside(h.Plan.Base, paths))
	for _, l := range h.Layers {
		var lines []string
		for _, ch := range l.Changes {
			lines = append(lines, changeLine(ch))
		}
		if len(lines) > 0 {
			fmt.Fprintln(a.stdout, printable(l.Name))
			printScopes(a, lines)
		}
	}
	fmt.Fprintln(a.stdout, "effective")
	printScopes(a, h.Effective)
	for _, s := range h.Except {
		fmt.Fprintf(a.stdout, "  except %s\n", printable(s))
	}
	fmt.Fprintln(a.stdout, "limits")
	for l := range caps.NumLimits {
		if v, ok := h.Limits[l.String()]; ok {
			fmt.Fprintf(a.stdout, "  %s = %d\n", l, v)
		}
	}
	for _, low := range h.Lower {
		fmt.Fprintf(a.stdout, "  %s\n", printable(low.String()))
	}
	for _, section := range []struct {
		name  string
		lines []string
	}{
		{"hidden tools", h.Hidden},
		{"constraints", ask.Conditions(h.Plan.Effective.Constraints())},
		{"leases", h.Leases},
		{"routes", ask.RouteLines(h.Routes)},
	} {
		if len(section.lines) > 0 {
			fmt.Fprintln(a.stdout, section.name)
			printScopes(a, section.lines)
		}
	}
}

// printPlan prints what a launch under p would hold.
func printPlan(a *app, p launcher.Policy, paths launcher.Paths) error {
	h, err := ask.Hold(p)
	if err != nil {
		return err
	}
	printHolding(a, h, paths)
	return nil
}

// beside are the capabilities of a base, each path beside what it was written as
// where links led it elsewhere.
func beside(base caps.Set, paths launcher.Paths) []string {
	var lines []string
	for _, g := range base.Grants() {
		for _, line := range g.Strings() {
			for _, r := range paths.Redirects {
				if r.Family == g.Family && r.Path == g.Scope && r.Layer == "base" {
					line += fmt.Sprintf("  (written %s, %s)", r.Written, r.Pos)
				}
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func printScopes(a *app, lines []string) {
	if len(lines) == 0 {
		lines = []string{"nothing"}
	}
	for _, l := range lines {
		fmt.Fprintf(a.stdout, "  %s\n", printable(l))
	}
}

func changeLine(c launcher.Change) string {
	s := fmt.Sprintf("%-8s %s", c.Kind, c.Capability)
	if c.Source != "" {
		s += "  (" + c.Source + ")"
	}
	return s
}

func printDiff(a *app, d *ask.Diff) {
	for _, s := range d.Kept {
		fmt.Fprintf(a.stdout, "%-8s %s\n", "kept", printable(s))
	}
	for _, c := range d.Changes {
		line := fmt.Sprintf("%-8s %s  (%s", c.Kind, c.Capability, c.Layer)
		if c.Source != "" {
			line += " " + c.Source
		}
		if c.Kind == caps.Ignored.String() {
			line += ": not in the base"
		}
		fmt.Fprintln(a.stdout, printable(line+")"))
	}
	for _, s := range d.Bounded {
		fmt.Fprintf(a.stdout, "%-8s %s\n", "bounded", printable(s))
	}
}
