package lint

import (
	"fmt"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/launcher/compose"
)

// metBySettings warns of grants of a base that meet files which the settings
// name: there the agent is left less than it asks for.
func metBySettings(base, named []caps.Entry) []policy.Finding {
	var findings []policy.Finding
	told := map[string]bool{}
	for _, e := range base {
		for _, n := range named {
			taken := e.Grant.Modes & n.Grant.Modes
			if e.Grant.Family != caps.FS || taken == 0 || !compose.Within(n.Grant.Scope, e.Grant.Scope) &&
				!compose.Within(e.Grant.Scope, n.Grant.Scope) {
				continue
			}
			key := strings.TrimPrefix(n.Pos.File, compose.NamedBy)
			if at := e.Pos.String() + key + n.Grant.Scope; told[at] {
				continue
			} else {
				told[at] = true
			}
			may := "neither write nor remove it"
			if taken.Has(caps.Read) {
				may = "neither read nor write it"
			}
			findings = append(findings, policy.Finding{
				Path: e.Pos.File, Line: e.Pos.Line, Column: e.Pos.Column, Severity: policy.SeverityWarning, Code: "setting_path",
				Message: fmt.Sprintf("the grant of %s meets %s, which the setting %s names: the agent may %s", e.Grant.Scope,
					n.Grant.Scope, key, may),
				Hint: "grant folders without the operator's own files",
			})
		}
	}
	return findings
}
