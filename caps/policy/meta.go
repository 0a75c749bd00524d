package policy

import (
	"path/filepath"
	"strings"

	"runloop.dev/rlp/internal/base/tomlfile"
)

func metaKeys() []string {
	return []string{"schema_version", "name", "description", "intended_use", "orchestrator_expectations"}
}

func (r *reader) meta(e *tomlfile.Entry) {
	if e.Key == "orchestrator_expectations" {
		if r.is(&e.Value, e.Key, tomlfile.Array) {
			r.strings(e.Key, &e.Value, func(item *tomlfile.Value) {
				r.about.Expectations = append(r.about.Expectations,
					item.Str)
			})
		}
		return
	}
	if !r.is(&e.Value, e.Key, tomlfile.String) {
		return
	}
	switch v := &e.Value; e.Key {
	case "schema_version":
		if r.about.SchemaVersion = v.Str; v.Str != "1.0" {
			r.add(v.Pos, CodeBadSchema, `write "1.0"`, "schema_version %q is not known", v.Str)
		}
	case "name":
		if stem := stemOf(v.Pos.File); v.Str != stem {
			r.add(v.Pos, CodeBadName, "a document is called what its file is called, or leave name out",
				"name is %q, and the file %q", v.Str, stem)
		}
	case "description":
		r.about.Description = v.Str
	case "intended_use":
		r.about.IntendedUse = v.Str
	}
}

func stemOf(file string) string {
	base := filepath.Base(filepath.ToSlash(file))
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// foreignKeys are the words of two other systems for what is said differently
// here. There is one spelling: a file that is half understood narrows by half.
func foreignKeys() map[string]string {
	return map[string]string{
		"mcp_allow":         `[capabilities] mcp = ["github"]; leave it out for no restriction`,
		"allowed_mcp":       `[capabilities] mcp = ["github"]; leave it out for no restriction`,
		"mcp_deny":          `[deny] capabilities = ["mcp:call:github"]`,
		"tool_allow":        `[tools] allow = ["net_http"]; leave it out for no restriction`,
		"tool_deny":         `[deny] tools = ["exec_run"]`,
		"categories":        `[visible] categories = ["file", "web"]`,
		"adapter_allowlist": `allowed_adapters = ["fs", "http"], or leave it out for no restriction`,
		"runtime_limits":    `[limits]`,
		"role":              "description, where it is to be read",
		"created_at":        "nowhere: leave it out, the file has its date",
	}
}
