//go:build !slim

package main

import (
	"fmt"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/launcher"
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

// attachments says which tools of the bundle a launch would attach.
func (c *composition) attachments(plan launcher.Plan) ([]launcher.Attachment, error) {
	tools, err := c.tools()
	if err != nil {
		return nil, inputErr(err)
	}
	return run.Attachments(plan.Effective, tools), nil
}

// A toolDocument is a tool as `rlp agent inspect --json` shows it.
type toolDocument struct {
	ID                   string   `json:"id"`
	Description          string   `json:"description"`
	Transport            string   `json:"transport"`
	Target               string   `json:"target"`
	Capabilities         []string `json:"capabilities"` // declared, then what the transport needs
	Secrets              []string `json:"secrets"`
	RequiresConfirmation bool     `json:"requires_confirmation"`
	Tags                 []string `json:"tags"`
}

func toolDocuments(tools []bundles.Tool) []toolDocument {
	list := make([]toolDocument, 0, len(tools))
	for i := range tools {
		t := &tools[i]
		d := toolDocument{
			ID: t.ID, Description: t.Description, Secrets: orEmpty(t.Secrets), RequiresConfirmation: t.Confirm, Tags: orEmpty(t.Tags),
			Capabilities: []string{},
		}
		if t.Exec != nil {
			d.Transport, d.Target = "exec", t.Exec.Command
		} else {
			d.Transport, d.Target = "http", t.HTTP.Method+" "+t.HTTP.URL
		}
		for _, p := range t.Placed {
			d.Capabilities = append(d.Capabilities, p.Domain+"{"+p.Param+"}")
		}
		for _, e := range append(t.Capabilities, t.Implied()...) {
			d.Capabilities = append(d.Capabilities, e.Grant.String())
		}
		list = append(list, d)
	}
	return list
}

func (a *app) inspectTools(tools []bundles.Tool) {
	if len(tools) == 0 {
		return
	}
	fmt.Fprintln(a.stdout, "tools")
	for _, t := range toolDocuments(tools) {
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
func lintTools(c *composition, plan launcher.Plan) []policy.Finding {
	attached, err := c.tools()
	if err != nil {
		p := problemOf(err)
		return []policy.Finding{{
			Path: p.Path, Line: p.Line, Column: p.Column, Severity: policy.SeverityError, Code: "tools", Message: p.Message, Hint: p.Hint,
		}}
	}
	var findings []policy.Finding
	for i, t := range run.Attachments(plan.Base, attached) {
		if t.Attached || len(c.unset) > 0 && len(c.bundle.Tools[i].Placed) > 0 {
			continue
		}
		pos := c.bundle.Tools[i].Pos
		findings = append(findings, policy.Finding{
			Path: pos.File, Line: pos.Line, Column: pos.Column, Severity: policy.SeverityWarning, Code: "tool_not_in_base",
			Message: fmt.Sprintf("the tool %s needs %s, which the policy does not ask for, so it is never attached", t.ID, t.Capability),
			Hint:    "add it to [capabilities] of policy.caps, or take the tool out",
		})
	}
	return findings
}
