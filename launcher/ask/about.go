package ask

import (
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
)

// About is what a record was about, as the text of a [Query].
func About(d *audit.DecisionRecord) string {
	if d.Cap == caps.ConnectName || strings.HasPrefix(d.Target, "http://") || strings.HasPrefix(d.Target, "https://") {
		return d.Target
	}
	for f := range caps.NumFamilies {
		for m := range caps.Mode(64) {
			if !caps.AllModes(f).Has(m) || caps.AuditName(f, m) != d.Cap {
				continue
			}
			name := d.Target
			switch f {
			case caps.Time:
				name = "*"
			case caps.KBRead, caps.KBWrite, caps.MCP:
				name, _, _ = strings.Cut(name, "/")
			}
			if name != "" {
				return caps.Request{Family: f, Mode: m, Name: name}.String()
			}
		}
	}
	if d.Tool != "" {
		return d.Tool
	}
	return d.Op
}
