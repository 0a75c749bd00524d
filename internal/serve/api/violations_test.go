package api

import (
	"strings"
	"testing"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

// The command that is advised names a capability: of a path that is not there no
// vote can be shown.
func TestOnlyACapabilityIsExplained(t *testing.T) {
	gone := launcher.Violation{Layer: "base"}
	held := launcher.Violation{Capability: "kb:read:notes"}
	for _, c := range []struct {
		list []launcher.Violation
		want string
	}{
		{nil, ""},
		{[]launcher.Violation{gone}, ""},
		{[]launcher.Violation{gone, held}, "rlp caps explain kb:read:notes --run 01a2"},
	} {
		text := violations(&service.ViolationError{RunID: "01a2", Violations: c.list}).Text
		if said := strings.Contains(text, "caps explain"); said != (c.want != "") || !strings.Contains(text, c.want) {
			t.Errorf("%v: %s", c.list, text)
		}
	}
	named := &service.ViolationError{RunID: "01a2", Agent: "mailer", Violations: []launcher.Violation{held}}
	if text := violations(named).Text; !strings.Contains(text, "rlp caps explain mailer kb:read:notes --run 01a2") {
		t.Error(text)
	}
	named.Tenant = "acme"
	if text := violations(named).Text; !strings.Contains(text, " --run 01a2 --tenant acme") {
		t.Error(text)
	}
}
