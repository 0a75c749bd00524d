package main

import (
	"fmt"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// toolsFile is what the tools of a bundle are usually called.
const toolsFile = "tools.json"

// printTools prints which tools are attached, and what the others lack.
func (a *app) printTools(list []launcher.Attachment) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(a.stdout, "tools")
	for _, t := range list {
		line := "  " + t.ID + "  attached"
		if !t.Attached {
			line = "  " + t.ID + "  not attached: " + t.Reason + " " + t.Capability
			if t.Layer != "" {
				line += "  (" + t.Layer + ")"
			}
		} else if t.RequiresConfirmation {
			line += ", asks before each call"
		}
		fmt.Fprintln(a.stdout, printable(line))
	}
}

func (a *app) inspectTools(tools []ask.Tool) {
	if len(tools) == 0 {
		return
	}
	fmt.Fprintln(a.stdout, "tools")
	for _, t := range tools {
		fmt.Fprintln(a.stdout, printable("  "+t.ID+"  "+t.Transport+" "+t.Target))
		for _, c := range t.Capabilities {
			fmt.Fprintln(a.stdout, printable("    needs "+c))
		}
		if t.RequiresConfirmation {
			fmt.Fprintln(a.stdout, "    asks before each call")
		}
	}
}

// lintTools finds tools that nobody could ever attach: what they need is not in
// the base, or they are no tools.
func lintTools(c *compose.Composition, plan launcher.Plan) []policy.Finding {
	attached, err := c.Tools()
	if err != nil {
		p := compose.ProblemOf(err)
		return []policy.Finding{{
			Path: p.Path, Line: p.Line, Column: p.Column, Severity: policy.SeverityError, Code: "tools", Message: p.Message,
			Hint: p.Hint,
		}}
	}
	var findings []policy.Finding
	for i, t := range run.Attachments(plan.Base, attached) {
		if t.Attached || len(c.Unset) > 0 && len(c.Bundle.Tools[i].Placed) > 0 {
			continue
		}
		pos := c.Bundle.Tools[i].Pos
		findings = append(findings, policy.Finding{
			Path: pos.File, Line: pos.Line, Column: pos.Column, Severity: policy.SeverityWarning, Code: "tool_not_in_base",
			Message: fmt.Sprintf("the tool %s needs %s, which the policy does not ask for, so it is never attached", t.ID,
				t.Capability),
			Hint: "add it to [capabilities] of policy.caps, or take the tool out",
		})
	}
	return findings
}
