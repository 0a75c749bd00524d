package ask

import (
	"strings"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
)

// A denial of what the agent's own policy never asked for asks nothing of anybody,
// whoever named it; what an operator took is theirs to decide; what is missing is to be
// mended.
//
//rlp:holds D15
func TestADenialSaysWhetherThereIsAnythingToDo(t *testing.T) {
	for _, c := range []struct {
		capability, reason, layer string
		named                     bool
		act                       Act
		text                      string
	}{
		{"fs.read", "path_not_permitted", "", true, Nothing, "The input of the run names it"},
		{"fs.read", "path_not_permitted", "base", false, Nothing, "If an input, or something that the agent read, named it"},
		{"net.http", "host_not_permitted", "", false, Nothing, "does not ask for this host"},
		{"fs.write", "path_not_permitted", "override:a.toml", true, Decide, "a rule of the operator's takes it away"},
		{"kb.write", "untrusted_context", "_untrusted", false, Nothing, "content that is not trusted"},
		{"net.http", "rate_limited", "", false, Decide, "limit"},
		{"model.use", "unavailable", "", false, Mend, "rlp doctor"},
		{"mcp.call", "server_changed", "", false, Mend, "rlp mcp list"},
		{"time.now", "cap_missing", "", false, Nothing, "Its author would have to"},
		{"fs.read", "a_reason_of_later", "", false, Nothing, "does not ask for this path"},
	} {
		target := map[bool]string{false: "/x"}[c.capability == "time.now"]
		d := &audit.DecisionRecord{Cap: c.capability, Target: target, Reason: c.reason, Layer: c.layer, Deny: true}
		a := Advise(d, c.named)
		if a.Act != c.act || !strings.Contains(a.Text, c.text) {
			t.Errorf("%+v: %+v", c, a)
		}
	}
}
