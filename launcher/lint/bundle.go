package lint

import (
	"fmt"
	"os"
	"path/filepath"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// bundle lints a bundle with everything that applies to it. A source folder
// that was not built yet is linted by its files.
func (l *linter) bundle(path string, overrides []string) {
	c, plan, err := l.reader.Plan(path, compose.Flags{
		Overrides: overrides, Profiles: l.query.Profiles, Bare: compose.AllowOfModule,
	})
	if _, unread := bundles.OpenOrModule(path); err != nil && unread != nil && !isBuilt(path) && l.source(path) {
		return // what is wrong with its files is told by their names
	}
	if err != nil {
		l.refusal(path, err)
		return
	}
	l.Composed = append(l.Composed, c)
	l.Findings = append(l.Findings, c.Findings...)
	for _, f := range c.Bundle.Findings {
		l.Findings = append(l.Findings, policy.Finding{
			Path: f.Path, Line: f.Line, Column: f.Column, Severity: policy.Severity(f.Severity),
			Code: policy.Code(f.Code), Message: f.Message, Hint: f.Hint,
		})
	}
	l.Findings = append(l.Findings, policy.Extras(plan.Changes)...)
	l.Findings = append(l.Findings, metBySettings(c.Policy.Base, l.named)...)
	l.Findings = append(l.Findings, trustedElsewhere(c.Policy.Base, l.trusted)...)
	l.Findings = append(l.Findings, routes(c.Policy.Routes, plan.Base, l.trusted)...)
	l.Findings = append(l.Findings, uselessDenies(c, plan)...)
	l.Findings = append(l.Findings, unaskedImports(c, plan, l.reader.Added, l.query.Self)...)
	l.Findings = append(l.Findings, lintTools(c, plan)...)
	for _, low := range c.Policy.LowerLimits(plan.Limits) {
		l.Findings = append(l.Findings, policy.Finding{
			Path: path, Severity: policy.SeverityInfo, Code: "limit_lower",
			Message: low.String(),
		})
	}
	l.Plans = append(l.Plans, plan)
}

// isBuilt reports whether a source folder holds a bundle.
func isBuilt(path string) bool {
	_, err := os.Lstat(filepath.Join(path, bundles.BuiltName))
	return err == nil
}

// uselessDenies warns of what an operator denies and the base never had: a
// slip there takes nothing away.
func uselessDenies(c *compose.Composition, plan run.Plan) []policy.Finding {
	var findings []policy.Finding
	for _, e := range plan.NoTools {
		findings = append(findings, policy.Finding{
			Path: e.Pos.File, Line: e.Pos.Line, Column: e.Pos.Column, Severity: policy.SeverityWarning,
			Code:    "deny_without_effect",
			Message: fmt.Sprintf("the agent has no tool %s, so denying it takes nothing away", e.Scope),
			Hint:    "rlp agent inspect prints the tools of the bundle; those of servers are called mcp:SERVER/NAME",
		})
	}
	for _, layer := range c.Policy.Layers {
		for _, e := range layer.Deny {
			if e.Pos.Line == 0 || e.Implied || e.Grant.Family == caps.Tool {
				continue
			}
			_, changes, err := plan.Base.Narrow(&caps.Layer{Name: layer.Name, Deny: []caps.Entry{e}})
			if err != nil || len(changes) > 0 {
				continue
			}
			findings = append(findings, policy.Finding{
				Path: e.Pos.File, Line: e.Pos.Line, Column: e.Pos.Column, Severity: policy.SeverityWarning,
				Code:    "deny_without_effect",
				Message: fmt.Sprintf("%s is not in the base, so denying it takes nothing away", e.Grant),
				Hint:    "rlp caps show prints what the base holds",
			})
		}
	}
	return findings
}

// unaskedImports warns of functions that the module imports and whose family
// the bundle does not ask for: they would be denied at every call.
func unaskedImports(c *compose.Composition, plan run.Plan, added []hostcalls.Added,
	self func() (string, error),
) []policy.Finding {
	bad := func(err error) []policy.Finding {
		return []policy.Finding{{Path: c.Bundle.Path, Severity: policy.SeverityError, Code: "module", Message: err.Error()}}
	}
	if c.Bundle.Manifest.Program {
		return nil
	}
	if err := run.CheckModule(c.Bundle.Manifest.Agent.String(), c.Bundle.Wasm, self, added...); err != nil {
		return bad(err)
	}
	imports, err := guest.Imports(c.Bundle.Wasm)
	if err != nil {
		return bad(err)
	}
	var findings []policy.Finding
	for _, known := range hostcalls.Imports(added...) {
		if known.Family == caps.MCP && len(c.Bundle.Tools) > 0 {
			continue // its own tools are called by it
		}
		if !known.Gated || plan.Base.Any(known.Family) || len(c.Unset) > 0 && known.Family == caps.FS {
			continue
		}
		for _, im := range imports {
			if im.Module == known.Module && im.Name == known.Name {
				findings = append(findings, unasked(c.Bundle, im.Name, known.Family))
			}
		}
	}
	return findings
}

func unasked(b *bundles.Bundle, name string, f caps.Family) policy.Finding {
	found := policy.Finding{
		Path: b.PolicyPath, Severity: policy.SeverityWarning, Code: "import_not_asked",
		Message: fmt.Sprintf("the module imports %s, and the policy asks for no %s", name, f),
		Hint:    fmt.Sprintf("add %s to [capabilities], or build without the call", f),
	}
	if b.Bare {
		found.Path, found.Severity = b.Path, policy.SeverityInfo
		found.Message = fmt.Sprintf("the module imports %s, and asks for no %s by itself", name, f)
		found.Hint = fmt.Sprintf("launch it with an --allow of %s, or the call is denied", f)
	}
	return found
}

// lintTools finds tools that nobody could ever attach: what they need is not in
// the base, or they are no tools.
func lintTools(c *compose.Composition, plan run.Plan) []policy.Finding {
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
